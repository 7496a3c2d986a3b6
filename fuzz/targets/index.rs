//! `index.bin`: header, section table, sums and entries.
#![no_main]

use dataset_rt_format::{
    Codec, FileInfo, IndexHeader, IndexView, Manifest, Schema, ShardInfo, SourceInfo,
    check_lengths, crc32c, index_head_len,
};
use dataset_rt_fuzz::{Bound, seal};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

fuzz_target!(|data: &[u8]| {
    look(data);
    let mut sealed = data.to_vec();
    seal::index(&mut sealed, None);
    look(&sealed);
});

fn look(bytes: &[u8]) {
    let len = bytes.len() as u64;
    if let Ok(needed) = index_head_len(bytes, len) {
        assert!(needed <= len);
    }
    let Ok(header) = IndexHeader::decode(bytes, len, None) else {
        return;
    };
    assert_eq!(header.file_size, len);
    assert_eq!(header.entries.length, header.samples * 16);
    let sections = [
        Some(header.entries),
        header.raw_lens,
        Some(header.entry_sums),
        header.raw_len_sums,
    ];
    for section in sections.into_iter().flatten().chain([header.metadata_sums]) {
        assert!(section.range().end <= len);
    }
    if header.shards > 64 {
        return;
    }
    let manifest = fitting(bytes, &header);
    let Ok(view) = IndexView::verify(bytes, &manifest) else {
        return;
    };
    assert!(view.get(header.samples).is_none());
    let limits = manifest.records_limits();
    let mut whole = true;
    for sample in 0..header.samples {
        let (entry, raw_len) = view.get(sample).expect("an entry of each sample");
        // What is encoded again is the same, so no bits of an entry are without meaning.
        assert_eq!(
            dataset_rt_format::IndexEntry::decode(&entry.encode()),
            entry
        );
        let placed = entry.check(sample, header.align, &limits).is_ok();
        let fits = check_lengths(sample, header.codec, entry.stored_len, raw_len).is_ok();
        if placed {
            let size = manifest.shards[entry.shard as usize].size;
            assert!(entry.offset + u64::from(entry.stored_len) <= size);
        }
        if fits && header.codec == Codec::None {
            assert_eq!(entry.stored_len, raw_len);
        }
        whole &= placed && fits;
    }
    if view.verify_entries(&manifest).is_ok() {
        assert!(whole);
    }
}

/// A manifest that this index goes with.
fn fitting(bytes: &[u8], header: &IndexHeader) -> Manifest {
    let shard = |ordinal: u64| ShardInfo {
        name: format!("{ordinal:06}"),
        size: 1 << 12,
        samples: if ordinal == 0 {
            header.samples.saturating_sub(header.shards - 1)
        } else {
            1
        },
        id: [0; 16],
        crc32c: 0,
        sha256: None,
    };
    let (mut payload_bytes, mut stored_bytes) = (0, 0);
    let read = |range: std::ops::Range<u64>| {
        bytes
            .get(range.start as usize..range.end as usize)
            .unwrap_or_default()
    };
    for entry in read(header.entries.range()).as_chunks::<16>().0 {
        stored_bytes += u64::from(u32::from_le_bytes([
            entry[8], entry[9], entry[10], entry[11],
        ]));
    }
    match &header.raw_lens {
        None => payload_bytes = stored_bytes,
        Some(section) => {
            for raw_len in read(section.range()).as_chunks::<4>().0 {
                payload_bytes += u64::from(u32::from_le_bytes(*raw_len));
            }
        }
    }
    Manifest {
        required: vec![],
        optional: vec![],
        identity: header.identity,
        source: SourceInfo::default(),
        created: String::new(),
        writer: String::new(),
        samples: header.samples,
        payload_bytes,
        stored_bytes,
        schema: Schema::default(),
        codec: header.codec,
        user: None,
        media_type: None,
        align: header.align,
        metadata: FileInfo {
            size: header.metadata_sums.length / 4 * 65_536,
            ..FileInfo::default()
        },
        index: FileInfo {
            size: header.file_size,
            crc32c: crc32c(bytes),
            sha256: None,
        },
        shards: (0..header.shards).map(shard).collect(),
    }
}
