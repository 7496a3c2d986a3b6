//! `metadata.arrow`: an Arrow file by anybody is refused or read, whatever its offsets say.
#![no_main]

use dataset_rt_format::{
    ColumnSlices, Columns, ContentHasher, FieldType, FormatError, MetadataEncoder, MetadataLayout,
    Value, metadata_contents,
};
use dataset_rt_fuzz::Bound;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

fuzz_target!(|data: &[u8]| {
    let Ok((schema, rows)) = metadata_contents(data) else {
        return;
    };
    let Ok(layout) = MetadataLayout::parse_bytes(data, &schema, rows) else {
        return;
    };
    assert_eq!(layout.rows(), rows);
    assert!(MetadataLayout::parse_bytes(data, &schema, rows + 1).is_err());
    let inside = |range: &std::ops::Range<u64>| {
        assert!(range.start <= range.end && range.end <= data.len() as u64)
    };
    for batch in layout.batches() {
        for column in &batch.columns {
            inside(&column.values);
            column.nulls.iter().chain(&column.text).for_each(inside);
        }
    }
    let sound = layout.check_values(data).is_ok();
    // Columns without bytes have any number of rows.
    if rows > 10_000 || schema.len() > 64 {
        return;
    }
    let mut hasher = ContentHasher::new(&schema);
    let mut failed = false;
    let mut again = Columns::new(&schema);
    for (position, batch) in layout.batches().iter().enumerate() {
        let columns: Result<Vec<ColumnSlices<'_>>, FormatError> = (0..schema.len())
            .map(|field| layout.column(data, position, field))
            .collect();
        let columns = columns.expect("columns were found");
        for row in 0..batch.rows {
            assert_eq!(layout.locate(batch.first_row + row), Some((position, row)));
            let values: Result<Vec<Value<'_>>, _> =
                columns.iter().map(|column| column.value(row)).collect();
            match values {
                Ok(values) => {
                    let _any = hasher.push_row(0, 0, values.iter().copied());
                    if !values.contains(&Value::Null) {
                        let _any = again.push_row(&values);
                    }
                }
                Err(_) => failed = true,
            }
        }
    }
    assert!(!(sound && failed), "values that were checked are refused");
    // What was read is written and read again.
    if again.rows() as u64 == rows && rows > 0 {
        let mut encoder = MetadataEncoder::new(&schema);
        let mut file = encoder.prefix();
        file.extend(encoder.batch(&again).expect("a batch of values"));
        file.extend(encoder.finish());
        let layout = MetadataLayout::parse_bytes(&file, &schema, rows).expect("our own file");
        layout.check_values(&file).expect("our own values");
        assert!(
            layout
                .types()
                .iter()
                .zip(schema.fields())
                .all(|(t, field): (&FieldType, _)| *t == field.field_type)
        );
    }
});
