use std::borrow::Cow;

use super::*;
use crate::column::{Column, Columns, Value};
use crate::constants::{MAX_BATCH_ROWS, MAX_BATCH_TEXT};
use crate::error::FormatError;
use crate::schema::{Field, FieldType, Schema};

fn schema() -> Schema {
    Schema::new(FieldType::ALL.map(|t| Field::new(t.name(), t)).to_vec()).unwrap()
}

fn columns(rows: std::ops::Range<i64>) -> Columns {
    let mut columns = Columns::new(&schema());
    for i in rows {
        let text = "é\0".repeat(usize::try_from(i % 3).unwrap());
        let nan = f64::from_bits(0x7FF0_0000_0000_0001 + u64::try_from(i).unwrap());
        let row = [
            Value::Bool(i % 5 == 2),
            Value::Int64(-i),
            Value::Float64(nan),
            Value::Utf8(&text),
        ];
        columns.push_row(&row).unwrap();
    }
    columns
}

fn file(schema: &Schema, batches: &[Columns]) -> Vec<u8> {
    let mut encoder = MetadataEncoder::new(schema);
    let mut file = encoder.prefix();
    for batch in batches {
        file.extend(encoder.batch(batch).unwrap());
    }
    file.extend(encoder.finish());
    file
}

fn parse(file: &[u8], rows: u64) -> Result<MetadataLayout, FormatError> {
    MetadataLayout::parse_bytes(file, &schema(), rows)
}

/// Equality of values by their bits.
fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Float64(a), Value::Float64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

#[test]
fn values_read_back() {
    let sizes = [1_u64, 7, 8, 9, 30];
    let mut batches = Vec::new();
    let mut next = 0;
    for size in sizes {
        let size = i64::try_from(size).unwrap();
        batches.push(columns(next..next + size));
        next += size;
    }
    let file = file(&schema(), &batches);
    let layout = parse(&file, 55).unwrap();
    layout.check_values(&file).unwrap();
    assert_eq!(layout.rows(), 55);
    assert_eq!(layout.types(), FieldType::ALL);
    let all = columns(0..55);
    for row in 0..55_usize {
        let (batch, in_batch) = layout.locate(row as u64).unwrap();
        assert_eq!(layout.batches()[batch].first_row + in_batch, row as u64);
        for (field, column) in all.columns().iter().enumerate() {
            let found = layout
                .column(&file, batch, field)
                .unwrap()
                .value(in_batch)
                .unwrap();
            assert!(
                same(found, column.get(row).unwrap()),
                "row {row} field {field}"
            );
        }
    }
    assert_eq!(layout.locate(55), None);
    assert_eq!(layout.locate(u64::MAX), None);
    let column = layout.column(&file, 0, 0).unwrap();
    assert_eq!(column.value(1).unwrap_err().code(), "metadata_invalid");
    assert!(layout.column(&file, 5, 0).is_err() && layout.column(&file, 0, 4).is_err());
    for rows in [54, 56] {
        assert_eq!(parse(&file, rows).unwrap_err().code(), "metadata_invalid");
    }
}

#[test]
fn bodies_and_buffers_stand_at_multiples_of_64() {
    let file = file(&schema(), &[columns(0..3), columns(3..10)]);
    assert_eq!(&file[..8], b"ARROW1\0\0");
    let layout = parse(&file, 10).unwrap();
    for column in layout.batches().iter().flat_map(|batch| &batch.columns) {
        assert_eq!(column.values.start % 64, 0);
        assert!(column.nulls.is_none());
        assert!(column.text.iter().all(|text| text.start % 64 == 0));
    }
}

#[test]
fn a_schema_without_fields_counts_rows() {
    let none = Schema::default();
    let batch = |rows| Columns::from_columns(&none, rows, vec![]).unwrap();
    let file = file(&none, &[batch(65_536), batch(3)]);
    let layout = MetadataLayout::parse_bytes(&file, &none, 65_539).unwrap();
    assert_eq!(layout.batches().len(), 2);
    assert_eq!(layout.locate(65_538), Some((1, 2)));
    layout.check_values(&file).unwrap();
}

#[test]
fn batches_out_of_the_rule_are_refused() {
    let mut encoder = MetadataEncoder::new(&schema());
    assert!(encoder.batch(&columns(0..0)).is_err());
    assert!(encoder.batch(&Columns::new(&Schema::default())).is_err());
    assert!(encoder.batch(&columns(0..65_537)).is_err());
    assert_eq!(encoder.rows(), 0);
    encoder.batch(&columns(0..65_536)).unwrap();
    assert_eq!(encoder.rows(), 65_536);
}

#[test]
fn opening_reads_footer_and_headers_only() {
    let file = file(&schema(), &[columns(0..5000), columns(5000..6000)]);
    let mut read_bytes = 0;
    let mut read = |offset: u64, len: u64| -> Result<Cow<'_, [u8]>, FormatError> {
        read_bytes += len;
        let start = usize::try_from(offset).unwrap();
        Ok(Cow::Borrowed(
            &file[start..start + usize::try_from(len).unwrap()],
        ))
    };
    MetadataLayout::parse(file.len() as u64, &schema(), 6000, &mut read).unwrap();
    assert!(read_bytes < 3000, "{read_bytes} of {}", file.len());
}

#[test]
fn errors_of_the_reader_pass_through() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        Format(FormatError),
        Read,
    }
    impl From<FormatError> for Mine {
        fn from(error: FormatError) -> Self {
            Self::Format(error)
        }
    }
    let mut fail = |_: u64, _: u64| -> Result<Cow<'_, [u8]>, Mine> { Err(Mine::Read) };
    assert_eq!(
        MetadataLayout::parse(1000, &schema(), 1, &mut fail).unwrap_err(),
        Mine::Read
    );
    let short = MetadataLayout::parse(25, &schema(), 1, &mut fail).unwrap_err();
    assert_eq!(short, Mine::Format(FormatError::MetadataMagic));
}

#[test]
fn another_schema_is_refused() {
    let file = file(&schema(), &[columns(0..2)]);
    let fields = schema().fields().to_vec();
    let mut others = vec![
        fields[..3].to_vec(),
        [&fields[..], &[Field::new("x", FieldType::Bool)]].concat(),
    ];
    let mut swapped = fields.clone();
    swapped.swap(0, 1);
    others.push(swapped);
    let edits: [fn(&mut Field); 3] = [
        |field| field.name.push('x'),
        |field| field.nullable = true,
        |field| field.field_type = FieldType::Int64,
    ];
    for edit in edits {
        let mut other = fields.clone();
        edit(&mut other[2]);
        others.push(other);
    }
    for other in others {
        let other = Schema::new(other).unwrap();
        let error = MetadataLayout::parse_bytes(&file, &other, 2).unwrap_err();
        assert_eq!(error.code(), "metadata_invalid", "{error}");
    }
    let mut described = fields;
    described[0].description = Some("d".to_owned());
    assert!(MetadataLayout::parse_bytes(&file, &Schema::new(described).unwrap(), 2).is_ok());
}

#[test]
fn text_is_checked_at_access() {
    let offsets = |values: &[i32]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let get = |values: &[i32], text: &[u8], row| {
        let values = offsets(values);
        let rows = values.len() as u64 / 4 - 1;
        let column = ColumnSlices::new(FieldType::Utf8, rows, None, &values, text).unwrap();
        match column.value(row) {
            Ok(Value::Utf8(text)) => Ok(text.to_owned()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert!(column.check(0).is_err());
                Err(error)
            }
        }
    };
    assert_eq!(get(&[1, 2, 4], b"abcd", 1), Ok("cd".to_owned()));
    for offsets in [
        [0, 5, 5],
        [2, 1, 1],
        [-1, 1, 1],
        [0, i32::MIN, 4],
        [i32::MAX, 0, 0],
    ] {
        let error = get(&offsets, b"abcd", 0).unwrap_err();
        assert!(
            matches!(error, FormatError::TextOffsets { row: 0, .. }),
            "{error}"
        );
    }
    assert_eq!(get(&[0, 1, 3], b"a\xC3\xA9", 1), Ok("é".to_owned()));
    // The whole buffer is UTF-8, the values are not.
    assert_eq!(
        get(&[0, 2, 3], b"a\xC3\xA9", 0),
        Err(FormatError::TextUtf8 { row: 0 })
    );
    assert_eq!(
        get(&[0, 1, 1], b"\xED\xA0\x80", 0),
        Err(FormatError::TextUtf8 { row: 0 })
    );
}

#[test]
fn nulls_by_the_validity_buffer() {
    let values = [1_i64, 2, 3].map(i64::to_le_bytes).concat();
    let column =
        ColumnSlices::new(FieldType::Int64, 3, Some(&[0b1111_1101]), &values, &[]).unwrap();
    assert_eq!(column.value(0), Ok(Value::Int64(1)));
    assert_eq!(column.value(1), Ok(Value::Null));
    assert_eq!(column.value(2), Ok(Value::Int64(3)));
    assert!(column.is_null(1) && !column.is_null(2) && column.is_null(3));
    assert_eq!(column.check(1), Ok(()));
    assert_eq!(
        column.check(2),
        Err(FormatError::NullCount {
            stated: 2,
            found: 1
        })
    );
    assert!(ColumnSlices::new(FieldType::Int64, 3, Some(&[]), &values, &[]).is_err());
    assert!(ColumnSlices::new(FieldType::Int64, 4, None, &values, &[]).is_err());
    assert!(ColumnSlices::new(FieldType::Utf8, u64::MAX, None, &values, &[]).is_err());
}

fn texts(lens: &[usize]) -> Columns {
    let schema = Schema::new(vec![Field::new("t", FieldType::Utf8)]).unwrap();
    let mut columns = Columns::new(&schema);
    for len in lens {
        columns.push_row(&[Value::Utf8(&"x".repeat(*len))]).unwrap();
    }
    columns
}

fn batch_rows(blocks: &[Columns]) -> Vec<usize> {
    let schema = Schema::new(vec![Field::new("t", FieldType::Utf8)]).unwrap();
    let mut batcher = Batcher::new(&schema);
    let mut batches = Vec::new();
    for block in blocks {
        batches.extend(batcher.push(block).unwrap());
    }
    batches.extend(batcher.finish());
    for batch in &batches {
        assert!(batch.rows() == 1 || batch.text_bytes() <= MAX_BATCH_TEXT);
    }
    batches.iter().map(Columns::rows).collect()
}

#[test]
fn batches_end_by_rows_and_by_text() {
    let mib = 1 << 20;
    for (lens, expected) in [
        (vec![mib; 16], vec![16]),
        (vec![mib; 17], vec![16, 1]),
        (vec![16 * mib, 0, 0, 1], vec![3, 1]),
        (vec![17 * mib, 0, 17 * mib, 17 * mib], vec![1, 1, 1, 1]),
        (vec![0, 17 * mib, 1], vec![1, 1, 1]),
        (vec![0; MAX_BATCH_ROWS], vec![MAX_BATCH_ROWS]),
        (
            vec![0; 2 * MAX_BATCH_ROWS + 1],
            vec![MAX_BATCH_ROWS, MAX_BATCH_ROWS, 1],
        ),
    ] {
        let whole = texts(&lens);
        assert_eq!(batch_rows(std::slice::from_ref(&whole)), expected);
        for step in [1, 5, 40_000] {
            if lens.len() / step > 70_000 {
                continue;
            }
            let blocks: Vec<Columns> = lens.chunks(step).map(texts).collect();
            assert_eq!(batch_rows(&blocks), expected, "blocks of {step}");
        }
    }
}

#[test]
fn bits_of_bools_beyond_the_last_row_are_zero() {
    let schema = Schema::new(vec![Field::new("b", FieldType::Bool)]).unwrap();
    let bits = Column::Bool(vec![true; 11]);
    let columns = Columns::from_columns(&schema, 11, vec![bits]).unwrap();
    let file = file(&schema, &[columns]);
    let layout = MetadataLayout::parse_bytes(&file, &schema, 11).unwrap();
    let range = layout.batches()[0].columns[0].values.clone();
    assert_eq!(range.end - range.start, 2);
    let start = usize::try_from(range.start).unwrap();
    assert_eq!(&file[start..start + 8], &[0xFF, 7, 0, 0, 0, 0, 0, 0]);
}
