use super::*;
use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::SHARD_HEADER_LEN;
use crate::error::FormatError;
use crate::manifest::ShardInfo;

fn header(codec: Codec) -> ShardHeader {
    ShardHeader {
        codec,
        align: 3,
        part: 0,
        first: 0,
        ordinal: 0,
    }
}

/// A finished shard of these payloads, put together as a writer does.
fn built(codec: Codec, payloads: &[&[u8]]) -> (Vec<u8>, ShardTail) {
    let head = header(codec).encode();
    let mut file = head.to_vec();
    let mut plan = ShardPlan::new(codec, 3, 1 << 20);
    let mut entries = Vec::new();
    for payload in payloads {
        let mut stored = Vec::new();
        let stored_len = u32::try_from(codec.encode(payload, &mut stored)).unwrap();
        assert!(plan.fits(stored_len));
        file.resize(usize::try_from(plan.place(stored_len)).unwrap(), 0);
        file.extend_from_slice(&stored);
        let (crc, raw_len) = (crc32c(payload), u32::try_from(payload.len()).unwrap());
        entries.push(FooterEntry {
            stored_len,
            crc,
            raw_len,
        });
    }
    let tail = encode_tail(&head, plan.records_end(), &entries, codec, true);
    file.extend_from_slice(&tail.bytes);
    assert_eq!(tail.file_size, file.len() as u64);
    assert_eq!(plan.file_size(), tail.file_size);
    (file, tail)
}

fn open(codec: Codec, file: &[u8]) -> Result<(ShardTrailer, ShardFooter), FormatError> {
    let trailer = ShardTrailer::decode(file, file.len() as u64, codec, None)?;
    let range = trailer.footer_range();
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    let footer = ShardFooter::decode(file, &trailer, &file[range])?;
    footer.check_padding(file)?;
    Ok((trailer, footer))
}

const PAYLOADS: [&[u8]; 4] = [b"abc", b"", &[7; 500], b"0123456789"];

#[test]
fn what_is_built_reads_back() {
    for codec in [Codec::None, Codec::Lz4] {
        let (file, tail) = built(codec, &PAYLOADS);
        let (trailer, footer) = open(codec, &file).unwrap();
        assert_eq!(
            (trailer.count, trailer.last, trailer.id),
            (4, true, tail.id)
        );
        assert_eq!(footer.header(), &header(codec));
        let limit = records_limit(trailer.file_size, trailer.count, codec);
        for ((entry, raw_len), payload) in footer.index_entries(0).zip(PAYLOADS) {
            entry.check(0, 3, &[limit]).unwrap();
            let start = usize::try_from(entry.offset).unwrap();
            let stored = &file[start..start + usize::try_from(entry.stored_len).unwrap()];
            let mut back = vec![0; usize::try_from(raw_len).unwrap()];
            codec.decode(stored, &mut back).unwrap();
            assert_eq!(back, payload);
            assert_eq!(entry.crc, crc32c(payload));
        }
        assert_eq!(footer.entries()[2].stored_len < 500, codec == Codec::Lz4);
    }
}

#[test]
fn an_id_for_each_content() {
    let (_, tail) = built(Codec::None, &PAYLOADS);
    let (_, other) = built(Codec::None, &[b"abd", b"", &[7; 500], b"0123456789"]);
    assert_ne!(tail.id, other.id);
    let expected = ShardInfo {
        name: "000000".to_owned(),
        size: tail.file_size,
        samples: 4,
        id: tail.id,
        crc32c: 0,
        sha256: None,
    };
    let (file, _) = built(Codec::None, &PAYLOADS);
    let check = |expected: &ShardInfo| {
        let result = ShardTrailer::decode(&file, file.len() as u64, Codec::None, Some(expected));
        result.map_or_else(|error| error.code(), |_| "")
    };
    assert_eq!(check(&expected), "");
    assert_eq!(
        check(&ShardInfo {
            id: other.id,
            ..expected.clone()
        }),
        "shard_mismatch"
    );
    assert_eq!(
        check(&ShardInfo {
            samples: 3,
            ..expected
        }),
        "shard_invalid"
    );
}

#[test]
fn every_truncation_and_every_flip_outside_the_records_is_seen() {
    for codec in [Codec::None, Codec::Lz4] {
        let (file, tail) = built(codec, &PAYLOADS);
        for len in 0..file.len() {
            assert!(open(codec, &file[..len]).is_err(), "{len}");
        }
        let records: Vec<_> = open(codec, &file)
            .unwrap()
            .1
            .index_entries(0)
            .map(|(entry, _)| entry.offset..entry.offset + u64::from(entry.stored_len))
            .collect();
        for (at, offset) in (0..file.len()).zip(0_u64..) {
            let mut bad = file.clone();
            bad[at] ^= 0x20;
            let result = open(codec, &bad);
            let in_record = records.iter().any(|record| record.contains(&offset));
            // What is in a record is seen by the payload's CRC, which this test leaves alone.
            assert_eq!(
                result.is_err(),
                !in_record,
                "byte {at} of {}",
                tail.file_size
            );
        }
    }
}

/// Changes the trailer and makes its CRC fit again.
fn with_trailer(at: usize, bytes: &[u8]) -> Result<(ShardTrailer, ShardFooter), FormatError> {
    let (mut file, _) = built(Codec::None, &PAYLOADS);
    let start = file.len() - 64;
    file[start + at..start + at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&file[start..start + 52]);
    file[start + 52..start + 56].copy_from_slice(&crc.to_le_bytes());
    open(Codec::None, &file)
}

#[test]
fn rules_behind_a_right_checksum() {
    let code = |at, bytes: &[u8]| with_trailer(at, bytes).unwrap_err().code();
    assert_eq!(code(0, &[0; 8]), "shard_invalid");
    assert_eq!(code(0, &[3]), "shard_invalid");
    assert_eq!(code(0, &[0xFF; 8]), "shard_invalid");
    assert_eq!(code(8, &[0, 0]), "shard_invalid");
    assert_eq!(code(8, &[0xFF; 8]), "shard_invalid");
    assert_eq!(code(16, &[0xFF; 8]), "shard_invalid");
    assert_eq!(code(24, &[0; 16]), "shard_invalid");
    assert_eq!(code(40, &[0; 4]), "shard_damaged");
    assert_eq!(code(44, &[2]), "shard_invalid");
    assert_eq!(code(48, &[2]), "version_unsupported");
    assert_eq!(code(48, &[0]), "version_unsupported");

    let header_code = |at: usize, byte: u8| {
        let mut bytes = header(Codec::None).encode();
        bytes[at] = byte;
        let crc = crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        ShardHeader::decode(&bytes).map_or_else(|error| error.code(), |_| "")
    };
    assert_eq!(header_code(8, 2), "version_unsupported");
    assert_eq!(header_code(8, 0), "version_unsupported");
    assert_eq!(header_code(10, 2), "shard_invalid");
    assert_eq!(header_code(11, 13), "shard_invalid");
    assert_eq!(header_code(15, 1), "feature_unsupported");
    assert_eq!(header_code(59, 1), "shard_invalid");
    assert_eq!(header_code(0, 0), "shard_damaged");
    assert!(header(Codec::None).check_packing(Codec::Lz4, 3).is_err());
    assert!(header(Codec::None).check_packing(Codec::None, 0).is_err());
}

#[test]
fn header_bytes() {
    let header = ShardHeader {
        codec: Codec::Lz4,
        align: 3,
        part: 0x0102_0304_0506_0708,
        first: 9,
        ordinal: 10,
    };
    let bytes = header.encode();
    assert_eq!(&bytes[..12], b"\x89DRTS\r\n\x1a\x01\x00\x01\x03");
    assert_eq!(&bytes[16..24], &[8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!((bytes[24], bytes[32]), (9, 10));
    assert_eq!(ShardHeader::decode(&bytes), Ok(header));
}

#[test]
fn rotation_counts_everything_in_the_file() {
    for codec in [Codec::None, Codec::Lz4] {
        // Two records of 100 bytes: 64, 164 -> 168, 268 -> 320, footer 16 or 24, trailer 64.
        let size = if codec == Codec::None { 400 } else { 408 };
        let mut plan = ShardPlan::new(codec, 3, size);
        assert_eq!(plan.place(100), 64);
        assert!(plan.fits(100));
        assert!(plan.fits(152));
        assert!(!plan.fits(153));
        assert_eq!(plan.place(100), 168);
        assert_eq!(plan.file_size(), size);
        assert!(!plan.fits(0) || codec == Codec::None && shard_file_size(272, 3, codec) <= size);
        let mut tight = ShardPlan::new(codec, 3, size - 1);
        tight.place(100);
        assert!(!tight.fits(100));
        let empty = ShardPlan::new(codec, 3, 1);
        assert!(empty.fits(u32::MAX), "an empty shard takes any record");
        assert_eq!(empty.next_offset(), SHARD_HEADER_LEN);
    }
    let coarse = ShardPlan::new(Codec::None, 12, 1 << 20);
    assert_eq!(coarse.next_offset(), 4096);
}

#[test]
fn sizes_never_overflow() {
    assert_eq!(shard_file_size(u64::MAX, 1, Codec::None), u64::MAX);
    assert_eq!(footer_len(u64::MAX, Codec::Lz4), u64::MAX);
    assert_eq!(records_limit(100, u64::MAX, Codec::None), 0);
    assert_eq!(
        (footer_len(1, Codec::Lz4), footer_len(2, Codec::Lz4)),
        (16, 24)
    );
}

fn link(part: u64, ordinal: u32, first: u64, count: u64, last: bool) -> ChainLink {
    ChainLink {
        part,
        ordinal,
        first,
        count,
        last,
    }
}

#[test]
fn chains() {
    let good = [
        link(0, 0, 0, 5, false),
        link(0, 1, 5, 1, true),
        link(3, 0, 0, 2, true),
        link(7, 0, 0, 2, false),
        link(7, 1, 2, 9, true),
    ];
    assert_eq!(check_chain(&good), Ok(()));
    assert_eq!(check_chain(&good[..2]), Ok(()));
    for missing in [0, 1, 3, 4] {
        let mut links = good.to_vec();
        links.remove(missing);
        assert_eq!(
            check_chain(&links).unwrap_err().code(),
            "shard_invalid",
            "{missing}"
        );
    }
    for swapped in 0..4 {
        let mut links = good.to_vec();
        links.swap(swapped, swapped + 1);
        assert!(check_chain(&links).is_err(), "{swapped}");
    }
    for change in 0..5 {
        let mut links = good.to_vec();
        links[change].last = !links[change].last;
        assert!(check_chain(&links).is_err(), "{change}");
        let mut links = good.to_vec();
        links[change].first += 1;
        assert!(check_chain(&links).is_err(), "{change}");
    }
}
