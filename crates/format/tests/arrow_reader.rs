//! The Arrow library reads our metadata files, and we read those that it writes.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use dataset_rt_format::{
    Columns, Field, FieldType, FormatError, MetadataEncoder, MetadataLayout, Schema, Value,
};

fn schema(nullable: bool) -> Schema {
    let field = |t: FieldType| Field {
        nullable,
        ..Field::new(t.name(), t)
    };
    Schema::new(FieldType::ALL.map(field).to_vec()).unwrap()
}

fn arrow_schema(nullable: bool) -> Arc<ArrowSchema> {
    let types = [
        DataType::Boolean,
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
    ];
    let names = FieldType::ALL.map(FieldType::name);
    let fields = names
        .into_iter()
        .zip(types)
        .map(|(n, t)| ArrowField::new(n, t, nullable));
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}

fn encode(schema: &Schema, batches: &[Columns]) -> Vec<u8> {
    let mut encoder = MetadataEncoder::new(schema);
    let mut file = encoder.prefix();
    for batch in batches {
        file.extend(encoder.batch(batch).unwrap());
    }
    file.extend(encoder.finish());
    file
}

#[test]
fn the_library_reads_ours() {
    let mut batches = Vec::new();
    for rows in [3_i64, 17] {
        let mut columns = Columns::new(&schema(false));
        for i in 0..rows {
            let text = "ü".repeat(usize::try_from(i).unwrap());
            let row = [
                Value::Bool(i % 3 == 1),
                Value::Int64(i - 5),
                Value::Float64(0.25),
                Value::Utf8(&text),
            ];
            columns.push_row(&row).unwrap();
        }
        batches.push(columns);
    }
    let file = encode(&schema(false), &batches);
    let reader = FileReader::try_new(Cursor::new(&file), None).unwrap();
    assert_eq!(reader.schema(), arrow_schema(false));
    let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(read.len(), 2);
    for (batch, columns) in read.iter().zip(&batches) {
        assert_eq!(batch.num_rows(), columns.rows());
        let bools = batch
            .column(0)
            .as_any()
            .downcast_ref::<BooleanArray>()
            .unwrap();
        let ints = batch
            .column(1)
            .as_any()
            .downcast_ref::<Int64Array>()
            .unwrap();
        let floats = batch
            .column(2)
            .as_any()
            .downcast_ref::<Float64Array>()
            .unwrap();
        let texts = batch
            .column(3)
            .as_any()
            .downcast_ref::<StringArray>()
            .unwrap();
        for row in 0..columns.rows() {
            let found = [
                Value::Bool(bools.value(row)),
                Value::Int64(ints.value(row)),
                Value::Float64(floats.value(row)),
                Value::Utf8(texts.value(row)),
            ];
            let expected: Vec<_> = columns
                .columns()
                .iter()
                .map(|c| c.get(row).unwrap())
                .collect();
            assert_eq!(&found[..], &expected[..]);
        }
        assert_eq!(batch.column(3).null_count(), 0);
    }
}

#[test]
fn the_library_reads_ours_without_fields() {
    let none = Schema::default();
    let batch = |rows| Columns::from_columns(&none, rows, vec![]).unwrap();
    let file = encode(&none, &[batch(65_536), batch(7)]);
    let reader = FileReader::try_new(Cursor::new(&file), None).unwrap();
    let rows: Vec<usize> = reader.map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(rows, [65_536, 7]);
}

fn library_file(
    options: IpcWriteOptions,
    schema: &ArrowSchema,
    batches: &[RecordBatch],
) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = FileWriter::try_new_with_options(&mut file, schema, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    file
}

fn nullable_batch(start: i64, rows: i64) -> RecordBatch {
    let keep = |i: i64| i % 4 != 1;
    let range = || start..start + rows;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            range()
                .map(|i| keep(i).then_some(i % 2 == 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(
            range()
                .map(|i| keep(i).then_some(i))
                .collect::<Int64Array>(),
        ),
        Arc::new(range().map(|_| Some(0.5)).collect::<Float64Array>()),
        Arc::new(
            range()
                .map(|i| keep(i).then(|| format!("t{i}")))
                .collect::<StringArray>(),
        ),
    ];
    RecordBatch::try_new(arrow_schema(true), columns).unwrap()
}

#[test]
fn we_read_the_librarys_with_nulls_and_slices() {
    for alignment in [8, 64] {
        let options =
            IpcWriteOptions::try_new(alignment, false, arrow_ipc::MetadataVersion::V5).unwrap();
        let whole = nullable_batch(0, 40);
        // A slice's offsets need not start at 0, and its bits not at a byte.
        let batches = [whole.slice(0, 1), whole.slice(1, 20), whole.slice(21, 19)];
        let file = library_file(options, &arrow_schema(true), &batches);
        let layout = MetadataLayout::parse_bytes(&file, &schema(true), 40).unwrap();
        layout.check_values(&file).unwrap();
        for row in 0..40_u64 {
            let (batch, in_batch) = layout.locate(row).unwrap();
            let value = |field| {
                layout
                    .column(&file, batch, field)
                    .unwrap()
                    .value(in_batch)
                    .unwrap()
            };
            assert_eq!(value(2), Value::Float64(0.5));
            if row % 4 == 1 {
                assert_eq!([value(0), value(1), value(3)], [Value::Null; 3]);
            } else {
                let text = format!("t{row}");
                assert_eq!(value(0), Value::Bool(row % 2 == 0));
                assert_eq!(value(1), Value::Int64(i64::try_from(row).unwrap()));
                assert_eq!(value(3), Value::Utf8(&text));
            }
        }
        let strict = MetadataLayout::parse_bytes(&file, &schema(false), 40).unwrap_err();
        assert_eq!(strict.code(), "metadata_invalid");
    }
}

#[test]
fn we_read_the_librarys_without_fields() {
    let empty = Arc::new(ArrowSchema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(5));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&empty), vec![], &options).unwrap();
    let file = library_file(IpcWriteOptions::default(), &empty, &[batch.clone(), batch]);
    let layout = MetadataLayout::parse_bytes(&file, &Schema::default(), 10).unwrap();
    assert_eq!(layout.locate(7), Some((1, 2)));
}

#[test]
fn other_types_are_refused() {
    let ours = Schema::new(vec![Field::new("x", FieldType::Int64)]).unwrap();
    for data_type in [
        DataType::Int32,
        DataType::UInt64,
        DataType::Float32,
        DataType::LargeUtf8,
        DataType::Utf8View,
    ] {
        let field = ArrowField::new("x", data_type.clone(), false);
        let schema = ArrowSchema::new(vec![field]);
        let column = arrow_array::new_empty_array(&data_type);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
        let file = library_file(IpcWriteOptions::default(), &schema, &[batch]);
        let error = MetadataLayout::parse_bytes(&file, &ours, 1).unwrap_err();
        assert!(
            matches!(error, FormatError::MetadataField { field: 0, .. }),
            "{data_type}: {error}"
        );
    }
    let keys: std::collections::HashMap<_, _> =
        [("ARROW:extension:name".to_owned(), "my.type".to_owned())].into();
    let field = ArrowField::new("x", DataType::Int64, false).with_metadata(keys);
    let schema = ArrowSchema::new(vec![field]);
    let column = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
    let file = library_file(IpcWriteOptions::default(), &schema, &[batch]);
    let error = MetadataLayout::parse_bytes(&file, &ours, 1).unwrap_err();
    assert!(error.to_string().contains("extension"), "{error}");
}
