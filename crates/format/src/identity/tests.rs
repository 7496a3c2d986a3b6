use super::*;
use crate::metadata::{Batcher, MetadataEncoder, MetadataLayout};
use crate::schema::Field;

fn schema(nullable: bool) -> Schema {
    let field = |field_type: FieldType| Field {
        nullable,
        ..Field::new("é", field_type)
    };
    let fields = FieldType::ALL.map(field).to_vec();
    let names = ["é", "b", "", "d"];
    let named = fields.into_iter().zip(names).map(|(f, name)| Field {
        name: name.into(),
        ..f
    });
    Schema::new(named.collect()).unwrap()
}

fn text(row: u32) -> String {
    "é".repeat(usize::try_from(row % 3).unwrap())
}

fn columns(schema: &Schema, rows: std::ops::Range<u32>) -> (Vec<(u32, u32)>, Columns) {
    let mut columns = Columns::new(schema);
    for row in rows.clone() {
        let text = text(row);
        let values = [
            Value::Bool(row % 2 == 1),
            Value::Int64(-i64::from(row)),
            Value::Float64(f64::from(row) / 4.0),
            Value::Utf8(&text),
        ];
        columns.push_row(&values).unwrap();
    }
    (rows.map(|row| (row, !row)).collect(), columns)
}

/// The definition, written out once more for two samples.
#[test]
fn the_bytes_that_are_hashed() {
    let mut block = Vec::new();
    for row in [5_u32, 6] {
        block.extend(row.to_le_bytes());
        block.extend((!row).to_le_bytes());
    }
    block.extend([1, 0]);
    block.extend((-5_i64).to_le_bytes());
    block.extend((-6_i64).to_le_bytes());
    block.extend(1.25_f64.to_le_bytes());
    block.extend(1.5_f64.to_le_bytes());
    block.extend([4, 0, 0, 0, 0, 0, 0, 0]);
    block.extend("éé".as_bytes());
    let mut all = b"dataset_rt content 1\0".to_vec();
    all.extend([2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    all.extend(b"\x02\0\0\0\xC3\xA9\x01\0");
    all.extend(b"\x01\0\0\0b\x02\0");
    all.extend(b"\0\0\0\0\x03\0");
    all.extend(b"\x01\0\0\0d\x04\0");
    all.extend(Sha256::digest(&block));
    let expected: [u8; 32] = Sha256::digest(&all).into();

    let (records, columns) = columns(&schema(false), 5..7);
    let mut hasher = ContentHasher::new(&schema(false));
    hasher.push(&records, &columns).unwrap();
    assert_eq!(hasher.samples(), 2);
    assert_eq!(hasher.finish(), expected);
}

#[test]
fn cuts_and_rows_do_not_matter() {
    for nullable in [false, true] {
        let schema = schema(nullable);
        let rows = 65_536 + 100;
        let (records, all) = columns(&schema, 0..rows);
        let mut whole = ContentHasher::new(&schema);
        whole.push(&records, &all).unwrap();
        let expected = whole.finish();

        let mut parts = ContentHasher::new(&schema);
        for start in (0..rows).step_by(1000) {
            let (records, columns) = columns(&schema, start..(start + 1000).min(rows));
            parts.push(&records, &columns).unwrap();
        }
        assert_eq!(parts.finish(), expected);

        let mut by_row = ContentHasher::new(&schema);
        let mut blocks = [IdentityBlock::new(&schema), IdentityBlock::new(&schema)];
        for row in 0..rows {
            let at = usize::try_from(row).unwrap();
            let values = all.columns().iter().map(|column| column.get(at).unwrap());
            by_row.push_row(row, !row, values.clone()).unwrap();
            blocks[at / 65_536].push_row(row, !row, values).unwrap();
        }
        assert_eq!(by_row.finish(), expected);
        assert!(blocks[0].is_full());
        let digests: Vec<_> = blocks.iter().map(IdentityBlock::digest).collect();
        assert_eq!(identity_of(&schema, u64::from(rows), &digests), expected);
    }
}

#[test]
fn nulls_differ_from_zeros_only_where_they_are_allowed() {
    let zeros = [
        Value::Bool(false),
        Value::Int64(0),
        Value::Float64(0.0),
        Value::Utf8(""),
    ];
    let nulls = [Value::Null; 4];
    let digest = |schema: &Schema, values: &[Value<'_>]| {
        let mut hasher = ContentHasher::new(schema);
        hasher
            .push_row(1, 2, values.iter().copied())
            .map(|()| hasher.finish())
    };
    let zero = digest(&schema(true), &zeros).unwrap();
    let null = digest(&schema(true), &nulls).unwrap();
    assert_ne!(zero, null);
    assert_ne!(zero, digest(&schema(false), &zeros).unwrap());
    assert!(digest(&schema(false), &nulls).is_err());
}

#[test]
fn values_of_another_shape_are_refused() {
    let (records, all) = columns(&schema(false), 0..3);
    let mut hasher = ContentHasher::new(&schema(false));
    assert!(hasher.push(&records[..2], &all).is_err());
    assert!(
        hasher
            .push(&records, &Columns::new(&Schema::default()))
            .is_err()
    );
    assert!(hasher.push_row(0, 0, [Value::Bool(true)]).is_err());
    assert!(
        ContentHasher::new(&Schema::default())
            .push_row(0, 0, [Value::Null])
            .is_err()
    );
}

/// Texts that are asked for when a block ends make the same identity, in whatever pieces they come.
#[test]
fn texts_may_be_elsewhere() {
    let schema = schema(false);
    let rows = 2 * 65_536 + 100;
    let (records, all) = columns(&schema, 0..rows);
    let mut kept = ContentHasher::new(&schema);
    kept.push(&records, &all).unwrap();

    let mut streamed = StreamedHasher::new(&schema);
    let mut texts = String::new();
    let mut start = 0;
    while start < records.len() {
        let end = records.len().min(start + streamed.room().min(1000));
        streamed.push(&records[start..end], &all, start).unwrap();
        texts.extend((start..end).map(|row| text(u32::try_from(row).unwrap())));
        start = end;
        if streamed.room() == 0 || start == records.len() {
            let given = std::mem::take(&mut texts);
            streamed
                .close_block(|field, take| {
                    assert_eq!(field, 3, "the only field of texts");
                    given.as_bytes().chunks(777).for_each(take);
                    Ok::<(), ()>(())
                })
                .unwrap();
        }
    }
    assert_eq!(streamed.samples(), u64::from(rows));
    assert_eq!(streamed.finish(), kept.finish());
}

#[test]
fn a_streamed_block_takes_no_more_than_it_may() {
    let schema = schema(false);
    let (records, all) = columns(&schema, 0..65_537);
    let mut hasher = StreamedHasher::new(&schema);
    let error = hasher.push(&records, &all, 0).unwrap_err();
    assert!(matches!(error, FormatError::ColumnsShape { .. }), "{error}");
    let mut hasher = StreamedHasher::new(&schema);
    assert!(
        hasher.push(&records[..2], &all, 65_536).is_err(),
        "one row is left"
    );
    let mut hasher = StreamedHasher::new(&schema);
    hasher.push(&records[..1], &all, 0).unwrap();
    assert_eq!(
        hasher.close_block(|_, _| Err("unreadable")),
        Err("unreadable")
    );
}

#[test]
fn the_identity_of_a_file() {
    let schema = schema(false);
    let rows = 65_536 + 100;
    let (records, all) = columns(&schema, 0..rows);
    let mut encoder = MetadataEncoder::new(&schema);
    let mut batcher = Batcher::new(&schema);
    let mut file = encoder.prefix();
    // Batches that don't end where blocks do.
    for (start, end) in [(0, 40_000), (40_000, records.len())] {
        batcher.push_range(&all, start, end).unwrap();
        let batch = std::mem::replace(&mut batcher, Batcher::new(&schema)).finish();
        file.extend(encoder.batch(&batch.unwrap()).unwrap());
    }
    file.extend(encoder.finish());
    let layout = MetadataLayout::parse_bytes(&file, &schema, u64::from(rows)).unwrap();
    for samples in [rows, 65_536, 7] {
        let count = usize::try_from(samples).unwrap();
        let (_, some) = columns(&schema, 0..samples);
        let mut kept = ContentHasher::new(&schema);
        kept.push(&records[..count], &some).unwrap();
        let mut given = records[..count].iter().copied();
        let found = identity_of_metadata(&schema, &layout, &file, |_| Ok(given.next()));
        assert_eq!(found.unwrap(), kept.finish(), "{samples} samples");
    }
}
