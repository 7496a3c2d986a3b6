//! What is written reads back: any payloads, any values, however they are packed and cut.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod common;

use common::{Files, Packing, at, same, write};
use dataset_rt_format::{
    ChainLink, Codec, Column, Columns, Field, FieldType, INDEX_FILE, IndexView, MANIFEST_FILE,
    METADATA_FILE, Manifest, MetadataLayout, Schema, ShardFooter, ShardTrailer, TextColumn,
    check_chain, shard_path, verify,
};
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0..2000_usize).prop_map(|(byte, len)| vec![byte; len]),
        proptest::collection::vec(0..3_u8, 0..500),
    ]
}

fn column(field_type: FieldType, rows: usize) -> BoxedStrategy<Column> {
    match field_type {
        FieldType::Bool => proptest::collection::vec(any::<bool>(), rows)
            .prop_map(Column::Bool)
            .boxed(),
        FieldType::Int64 => proptest::collection::vec(any::<i64>(), rows)
            .prop_map(Column::Int64)
            .boxed(),
        FieldType::Float64 => proptest::collection::vec(any::<u64>(), rows)
            .prop_map(|bits| Column::Float64(bits.into_iter().map(f64::from_bits).collect()))
            .boxed(),
        _ => proptest::collection::vec(any::<String>(), rows)
            .prop_map(|texts| {
                let mut column = TextColumn::new();
                texts.iter().for_each(|text| column.push(text));
                Column::Utf8(column)
            })
            .boxed(),
    }
}

fn contents() -> impl Strategy<Value = (Schema, Vec<Vec<u8>>, Columns)> {
    let field_type = proptest::sample::select(FieldType::ALL.to_vec());
    let types = proptest::collection::vec(field_type, 0..5);
    (types, 1..40_usize).prop_flat_map(|(types, rows)| {
        let fields = types
            .iter()
            .enumerate()
            .map(|(i, t)| Field::new(format!("f{i}"), *t));
        let schema = Schema::new(fields.collect()).unwrap();
        let columns: Vec<_> = types.iter().map(|t| column(*t, rows)).collect();
        let payloads = proptest::collection::vec(payload(), rows);
        (Just(schema), payloads, columns).prop_map(move |(schema, payloads, columns)| {
            let columns = Columns::from_columns(&schema, rows, columns).unwrap();
            (schema, payloads, columns)
        })
    })
}

fn packing() -> impl Strategy<Value = Packing> {
    let codec = proptest::sample::select(vec![Codec::None, Codec::Lz4]);
    (codec, 0..=12_u8, 100..20_000_u64).prop_map(|(codec, align, max_shard_bytes)| Packing {
        codec,
        align,
        max_shard_bytes,
    })
}

fn cut(schema: &Schema, columns: &Columns, step: usize) -> Vec<Columns> {
    let starts = (0..columns.rows()).step_by(step);
    starts
        .map(|start| {
            let mut block = Columns::new(schema);
            block
                .extend_range(columns, start, (start + step).min(columns.rows()))
                .unwrap();
            block
        })
        .collect()
}

fn check_contents(files: &Files, payloads: &[Vec<u8>], columns: &Columns) {
    let manifest = verify(files).unwrap();
    let index = IndexView::verify(&files.0[INDEX_FILE], &manifest).unwrap();
    for (sample, payload) in (0..).zip(payloads) {
        let (entry, raw_len) = index.get(sample).unwrap();
        let shard = &manifest.shards[usize::try_from(entry.shard).unwrap()];
        let bytes = &files.0[&shard_path(&shard.name)];
        let stored = &bytes[at(entry.offset)..][..usize::try_from(entry.stored_len).unwrap()];
        let mut raw = vec![0; usize::try_from(raw_len).unwrap()];
        manifest.codec.decode(stored, &mut raw).unwrap();
        assert_eq!(&raw, payload);
    }
    let metadata = &files.0[METADATA_FILE];
    let layout = MetadataLayout::parse_bytes(metadata, &manifest.schema, manifest.samples).unwrap();
    for row in 0..columns.rows() {
        let (batch, in_batch) = layout.locate(row as u64).unwrap();
        for (field, column) in columns.columns().iter().enumerate() {
            let found = layout
                .column(metadata, batch, field)
                .unwrap()
                .value(in_batch)
                .unwrap();
            assert!(same(&found, &column.get(row).unwrap()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn contents_read_back((schema, payloads, columns) in contents(), packing in packing()) {
        let files = write(&schema, packing, &payloads, std::slice::from_ref(&columns));
        check_contents(&files, &payloads, &columns);
    }

    /// Bytes don't depend on how rows came; the identity doesn't depend on how they are packed.
    #[test]
    fn equal_contents_are_equal(
        (schema, payloads, columns) in contents(),
        first in packing(),
        second in packing(),
        step in 1..20_usize,
    ) {
        let whole = write(&schema, first, &payloads, std::slice::from_ref(&columns));
        let parts = write(&schema, first, &payloads, &cut(&schema, &columns, step));
        prop_assert_eq!(&whole, &parts);
        let other = write(&schema, second, &payloads, &[columns]);
        let identity = |files: &Files| Manifest::parse(&files.0[MANIFEST_FILE]).unwrap().identity;
        prop_assert_eq!(identity(&whole), identity(&other));
    }

    /// The arrays of the index are made again from the shards alone.
    #[test]
    fn an_index_from_shards((schema, payloads, columns) in contents(), packing in packing()) {
        let files = write(&schema, packing, &payloads, &[columns]);
        let manifest = Manifest::parse(&files.0[MANIFEST_FILE]).unwrap();
        let index = IndexView::verify(&files.0[INDEX_FILE], &manifest).unwrap();
        let mut sample = 0;
        let mut links = Vec::new();
        for (position, shard) in (0..).zip(&manifest.shards) {
            let bytes = &files.0[&shard_path(&shard.name)];
            let trailer =
                ShardTrailer::decode(bytes, bytes.len() as u64, packing.codec, None).unwrap();
            let range = trailer.footer_range();
            let footer =
                ShardFooter::decode(bytes, &trailer, &bytes[at(range.start)..at(range.end)]);
            let footer = footer.unwrap();
            links.push(ChainLink::new(footer.header(), &trailer));
            for rebuilt in footer.index_entries(position) {
                prop_assert_eq!(index.get(sample), Some(rebuilt));
                sample += 1;
            }
        }
        prop_assert_eq!(sample, manifest.samples);
        prop_assert_eq!(check_chain(&links), Ok(()));
    }

    /// No bytes make a parser panic.
    #[test]
    fn arbitrary_bytes_are_errors(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let schema = Schema::default();
        prop_assert!(Manifest::parse(&bytes).is_err());
        prop_assert!(MetadataLayout::parse_bytes(&bytes, &schema, 1).is_err());
        let len = bytes.len() as u64;
        prop_assert!(dataset_rt_format::IndexHeader::decode(&bytes, len, None).is_err());
        prop_assert!(ShardTrailer::decode(&bytes, len, Codec::None, None).is_err());
        let _ = Codec::Lz4.decode(&bytes, &mut [0; 300]);
    }
}
