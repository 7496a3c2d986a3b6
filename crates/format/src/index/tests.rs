use super::*;
use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::CHECK_BLOCK;
use crate::error::FormatError;
use crate::sums::{decode_sums, encode_sums};

const IDENTITY: [u8; 32] = [9; 32];

fn entry(sample: u32) -> IndexEntry {
    IndexEntry {
        shard: 1,
        offset: 64 + 8 * u64::from(sample),
        stored_len: 5,
        crc: sample,
    }
}

/// A finished index file of `samples` entries, put together as a writer does.
fn built(codec: Codec, samples: u32) -> Vec<u8> {
    let mut builder = IndexBuilder::new(codec, 3);
    let entries: Vec<u8> = (0..samples)
        .flat_map(|sample| entry(sample).encode())
        .collect();
    let raw_lens: Vec<u8> = (0..samples)
        .flat_map(|sample| (5 + sample).to_le_bytes())
        .collect();
    for part in entries.chunks(1000) {
        builder.push_entries(part);
    }
    if codec.has_raw_lens() {
        builder.push_raw_lens(&raw_lens);
    }
    assert_eq!(builder.samples(), u64::from(samples));
    let entries_at = usize::try_from(builder.entries_offset()).unwrap();
    let parts = builder.finish(2, IDENTITY, &[7, 8]);
    let mut file = vec![0; usize::try_from(parts.file_size).unwrap()];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &parts.head);
    put(entries_at, &entries);
    assert_eq!(parts.raw_lens_at.is_some(), codec.has_raw_lens());
    if let Some(at) = parts.raw_lens_at {
        put(usize::try_from(at).unwrap(), &raw_lens);
    }
    put(usize::try_from(parts.tail_at).unwrap(), &parts.tail);
    assert_eq!(parts.crc, crc32c(&file));
    file
}

fn decode(file: &[u8]) -> Result<IndexHeader, FormatError> {
    IndexHeader::decode(file, file.len() as u64, None)
}

/// Changes bytes of header or table and makes the CRC fit again.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = built(Codec::Lz4, 3);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    let mut covered = file[..124].to_vec();
    covered.extend_from_slice(&file[128..288]);
    file[124..128].copy_from_slice(&crc32c(&covered).to_le_bytes());
    file
}

#[test]
fn an_entry_in_sixteen_bytes() {
    let entry = IndexEntry {
        shard: 0xABCDEF,
        offset: 0x12_3456_7890,
        stored_len: 258,
        crc: 1,
    };
    let bytes = entry.encode();
    assert_eq!(
        bytes,
        [
            0x90, 0x78, 0x56, 0x34, 0x12, 0xEF, 0xCD, 0xAB, 2, 1, 0, 0, 1, 0, 0, 0
        ]
    );
    assert_eq!(IndexEntry::decode(&bytes), entry);
}

#[test]
fn an_entry_out_of_range_is_refused_later() {
    for (shard, offset) in [(1 << 24, 64), (0, 1 << 40), (u32::MAX, u64::MAX)] {
        let bytes = IndexEntry {
            shard,
            offset,
            stored_len: 0,
            crc: 0,
        }
        .encode();
        assert!(
            IndexEntry::decode(&bytes)
                .check(0, 0, &[(1 << 40) - 200])
                .is_err()
        );
    }
}

#[test]
fn bounds_of_entries() {
    let limits = [1000, 2000];
    let code = |shard, offset, stored_len| {
        let entry = IndexEntry {
            shard,
            offset,
            stored_len,
            crc: 0,
        };
        entry
            .check(5, 3, &limits)
            .map_or_else(|error| error.code(), |()| "")
    };
    assert_eq!(code(0, 64, 936), "");
    assert_eq!(code(1, 64, 1936), "");
    assert_eq!(code(1, 2000, 0), "");
    for (shard, offset, stored_len) in [
        (2, 64, 0),
        (0, 56, 0),
        (0, 68, 0),
        (0, 64, 937),
        (0, 1008, 0),
        (0, 64, u32::MAX),
    ] {
        assert_eq!(code(shard, offset, stored_len), "entry_invalid");
    }
    assert_eq!(check_lengths(0, Codec::Lz4, 4, 1020), Ok(()));
    assert_eq!(
        check_lengths(0, Codec::Lz4, 4, 1021).unwrap_err().code(),
        "entry_invalid"
    );
    assert_eq!(
        check_lengths(0, Codec::None, 4, 5).unwrap_err().code(),
        "entry_invalid"
    );
}

#[test]
fn what_is_built_reads_back() {
    for (codec, samples) in [
        (Codec::None, 1),
        (Codec::Lz4, 1),
        (Codec::None, 4096),
        (Codec::Lz4, 20_001),
    ] {
        let file = built(codec, samples);
        let header = decode(&file).unwrap();
        assert_eq!((header.codec, header.align, header.shards), (codec, 3, 2));
        assert_eq!(
            (header.samples, header.identity),
            (u64::from(samples), IDENTITY)
        );
        assert_eq!(header.entries.offset, index_prefix_len(codec));
        assert_eq!(header.check_gaps(&file), Ok(()));
        let bytes = |section: &Section| {
            let range = section.range();
            &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
        };
        let entries = bytes(&header.entries);
        assert_eq!(
            entries.as_chunks().0.last().map(IndexEntry::decode),
            Some(entry(samples - 1))
        );
        header
            .entry_sums
            .check_crc(bytes(&header.entry_sums))
            .unwrap();
        let block = usize::try_from(CHECK_BLOCK).unwrap();
        let sums: Vec<u32> = entries.chunks(block).map(crc32c).collect();
        assert_eq!(decode_sums(bytes(&header.entry_sums)), sums);
        assert_eq!(bytes(&header.metadata_sums), encode_sums(&[7, 8]));
        assert_eq!(
            index_head_len(&file[..128], file.len() as u64).unwrap() % 32,
            0
        );
    }
}

#[test]
fn prefixes() {
    assert_eq!(index_prefix_len(Codec::None), 256);
    assert_eq!(index_prefix_len(Codec::Lz4), 320);
}

#[test]
fn every_truncation_and_every_flip_of_the_head_is_seen() {
    let file = built(Codec::Lz4, 3);
    for len in 0..file.len() {
        assert!(decode(&file[..len]).is_err(), "{len}");
    }
    for at in 0..288 {
        let mut bad = file.clone();
        bad[at] ^= 4;
        assert_eq!(decode(&bad).unwrap_err().code(), "index_damaged", "{at}");
    }
    for at in 288..320 {
        let mut bad = file.clone();
        bad[at] ^= 4;
        let header = decode(&bad).unwrap();
        assert_eq!(
            header.check_gaps(&bad).unwrap_err().code(),
            "index_invalid",
            "{at}"
        );
    }
}

#[test]
fn rules_behind_a_right_checksum() {
    let long = u64::MAX.to_le_bytes();
    // The first row of the table is at 128: kind, flags, offset, length, crc, reserved.
    for (what, at, bytes, code) in [
        ("version 2", 8, &[2, 0][..], "version_unsupported"),
        ("version 0", 8, &[0, 0], "version_unsupported"),
        ("codec", 10, &[2], "index_invalid"),
        ("align", 11, &[13], "index_invalid"),
        ("flags", 12, &[0, 0, 0, 1], "feature_unsupported"),
        ("no samples", 16, &[0; 8], "index_invalid"),
        ("many samples", 16, &long, "index_invalid"),
        ("size", 32, &[1], "index_invalid"),
        ("reserved", 44, &[1], "index_invalid"),
        ("reserved end", 123, &[1], "index_invalid"),
        ("unknown kind", 128, &[3], "index_invalid"),
        ("kind twice", 160, &[1], "index_invalid"),
        ("flag of a known kind", 132, &[1], "index_invalid"),
        ("offset", 136, &[0x80], "index_invalid"),
        ("offset beyond", 136, &long, "index_invalid"),
        ("length", 144, &[49], "index_invalid"),
        ("length beyond", 144, &long, "index_invalid"),
        ("crc of a small kind", 152, &[1], "index_invalid"),
        ("reserved of a row", 156, &[1], "index_invalid"),
        ("another kind", 256, &[33], "feature_unsupported"),
        ("sections missing", 256, &[33, 0, 0, 0, 1], "index_invalid"),
    ] {
        let error = decode(&changed(at, bytes)).unwrap_err();
        assert_eq!(error.code(), code, "{what}: {error}");
    }
}

#[test]
fn many_sections_do_not_fit() {
    let mut file = built(Codec::None, 1);
    file[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(decode(&file), Err(FormatError::IndexShort { .. })));
}
