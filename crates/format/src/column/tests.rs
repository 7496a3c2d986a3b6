use super::*;
use crate::schema::Field;

fn schema() -> Schema {
    let fields = FieldType::ALL.map(|t| Field::new(t.name(), t)).to_vec();
    Schema::new(fields).unwrap()
}

fn filled(rows: std::ops::Range<i64>) -> Columns {
    let mut columns = Columns::new(&schema());
    for i in rows {
        let text = "é".repeat(usize::try_from(i % 4).unwrap());
        let row = [
            Value::Bool(i % 3 == 0),
            Value::Int64(-i),
            Value::Float64(0.5),
            Value::Utf8(&text),
        ];
        columns.push_row(&row).unwrap();
    }
    columns
}

#[test]
fn rows_come_back() {
    let columns = filled(0..10);
    assert_eq!(columns.rows(), 10);
    assert_eq!(columns.text_bytes(), 2 * (6 + 6 + 1));
    assert_eq!(columns.row_text_bytes(3), 6);
    assert_eq!(columns.columns()[3].get(3), Some(Value::Utf8("ééé")));
    assert_eq!(columns.columns()[1].get(3), Some(Value::Int64(-3)));
    assert_eq!(columns.columns()[0].get(10), None);
}

#[test]
fn ranges_and_appending() {
    let all = filled(0..10);
    let mut parts = Columns::new(&schema());
    parts.extend_range(&all, 0, 3).unwrap();
    parts.extend_range(&all, 3, 3).unwrap();
    parts.append(&filled(3..10)).unwrap();
    assert_eq!(parts, all);
    let taken = parts.take();
    assert_eq!(taken, all);
    assert!(parts.is_empty());
    parts.append(&taken).unwrap();
    parts.clear();
    parts.extend_range(&taken, 9, 10).unwrap();
    assert_eq!(parts, filled(9..10));
    assert!(parts.extend_range(&all, 9, 11).is_err());
    assert!(parts.append(&Columns::new(&Schema::default())).is_err());
}

#[test]
fn a_row_of_other_types_changes_nothing() {
    let mut columns = filled(0..2);
    let before = columns.clone();
    let bad = [
        Value::Bool(true),
        Value::Int64(1),
        Value::Null,
        Value::Utf8("x"),
    ];
    assert!(columns.push_row(&bad).is_err());
    assert!(columns.push_row(&bad[..2]).is_err());
    assert_eq!(columns, before);
}

#[test]
fn columns_filled_one_by_one() {
    let parts = filled(0..4).columns().to_vec();
    assert_eq!(
        Columns::from_columns(&schema(), 4, parts.clone()),
        Ok(filled(0..4))
    );
    assert!(Columns::from_columns(&schema(), 5, parts.clone()).is_err());
    assert!(Columns::from_columns(&schema(), 4, parts[1..].to_vec()).is_err());
    let nothing = Columns::from_columns(&Schema::default(), 7, vec![]).unwrap();
    assert_eq!(nothing.rows(), 7);
}
