//! Records around 2^31, 2^32 and the end of the largest shard: no offset, length or sum wraps.
//!
//! The shards are sparse: what lies between the records that matter is a hole, which takes no space.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use dataset_rt_format::constants::SHARD_SIZE_LIMIT;
use dataset_rt_format::{
    BlockSums, Codec, Columns, ContentHasher, Crc32c, FileInfo, FooterEntry, INDEX_FILE,
    IndexBuilder, IndexEntry, MANIFEST_FILE, METADATA_FILE, Manifest, MetadataEncoder, SHARD_DIR,
    Schema, ShardHeader, ShardInfo, ShardPlan, SourceInfo, crc32c, crc32c_combine, encode_tail,
    shard_file, shard_name,
};
use dataset_rt_runtime::{
    BlockSizing, CacheOptions, Cancel, Dataset, Pool, ReaderOptions, SampleRef, VecBuffers, verify,
};

use reading::{of_block, read_all};

/// A multiple of the alignment, so that nothing but records lies between the records.
const LONGEST_HOLE: u64 = 4_000_000_000;
const ALIGN: u8 = 3;

enum Content {
    Zeros(u64),
    Bytes(Vec<u8>),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::Zeros(len) => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    fn crc(&self) -> u32 {
        match self {
            Self::Zeros(len) => crc_of_zeros(*len),
            Self::Bytes(bytes) => crc32c(bytes),
        }
    }
}

/// The sum of a run of zeros, by doubling.
fn crc_of_zeros(len: u64) -> u32 {
    let (mut sum, mut power, mut power_len) = (0, crc32c(&[0]), 1);
    let mut rest = len;
    while rest > 0 {
        if rest & 1 == 1 {
            sum = crc32c_combine(sum, power, power_len);
        }
        power = crc32c_combine(power, power, power_len);
        power_len *= 2;
        rest >>= 1;
    }
    sum
}

fn noise(sample: usize, len: u64) -> Vec<u8> {
    let salt = sample as u64 + 3;
    (0..len)
        .map(|i| (i * salt * 131 + i * i + salt) as u8)
        .collect()
}

/// One shard with records that end at, begin at, or lie across each of the offsets.
fn around(offsets: &[(u64, bool)]) -> Vec<Content> {
    let mut plan = ShardPlan::new(Codec::None, ALIGN, u64::MAX);
    let mut contents = Vec::new();
    for &(offset, across) in offsets {
        let start = offset - 2000;
        while plan.next_offset() < start {
            let hole = Content::Zeros((start - plan.next_offset()).min(LONGEST_HOLE));
            plan.place(hole.len() as u32);
            contents.push(hole);
        }
        let lengths: &[u64] = if across {
            &[1000, 2000, 600]
        } else {
            &[1200, 800, 8, 600]
        };
        for &len in lengths {
            plan.place(len as u32);
            contents.push(Content::Bytes(noise(contents.len(), len)));
        }
    }
    contents
}

/// Writes a cache of one shard without metadata.
fn write(dir: &Path, contents: &[Content]) -> Manifest {
    let schema = Schema::new(Vec::new()).unwrap();
    fs::create_dir_all(dir.join(SHARD_DIR)).unwrap();
    let header = ShardHeader {
        codec: Codec::None,
        align: ALIGN,
        part: 0,
        first: 0,
        ordinal: 0,
    };
    let header = header.encode();
    let name = shard_name(0);
    let file = File::create(dir.join(SHARD_DIR).join(shard_file(&name))).unwrap();
    file.write_all_at(&header, 0).unwrap();
    let mut whole = Crc32c::new();
    whole.update(&header);
    let mut plan = ShardPlan::new(Codec::None, ALIGN, u64::MAX);
    let (mut footer, mut entries) = (Vec::new(), Vec::new());
    let mut hasher = ContentHasher::new(&schema);
    let mut columns = Columns::new(&schema);
    let mut payload_bytes = 0;
    for content in contents {
        let (stored_len, crc) = (content.len() as u32, content.crc());
        let offset = plan.place(stored_len);
        whole.append(crc, content.len());
        if let Content::Bytes(bytes) = content {
            file.write_all_at(bytes, offset).unwrap();
        }
        footer.push(FooterEntry {
            stored_len,
            crc,
            raw_len: stored_len,
        });
        let entry = IndexEntry {
            shard: 0,
            offset,
            stored_len,
            crc,
        };
        entries.extend_from_slice(&entry.encode());
        hasher.push_row(stored_len, crc, []).unwrap();
        columns.push_row(&[]).unwrap();
        payload_bytes += content.len();
    }
    let end = plan.records_end();
    let tail = encode_tail(&header, end, &footer, Codec::None, true);
    file.set_len(tail.file_size).unwrap();
    file.write_all_at(&tail.bytes, end).unwrap();
    whole.update(&tail.bytes);

    let mut metadata = MetadataEncoder::new(&schema);
    let mut metadata_bytes = metadata.prefix();
    metadata_bytes.extend(metadata.batch(&columns).unwrap());
    metadata_bytes.extend(metadata.finish());
    fs::write(dir.join(METADATA_FILE), &metadata_bytes).unwrap();

    let identity = hasher.finish();
    let mut sums = BlockSums::new();
    sums.push(&metadata_bytes);
    let mut index = IndexBuilder::new(Codec::None, ALIGN);
    index.push_entries(&entries);
    let parts = index.finish(1, identity, &sums.finish());
    let mut index_bytes = parts.head;
    index_bytes.extend_from_slice(&entries);
    index_bytes.resize(parts.tail_at as usize, 0);
    index_bytes.extend_from_slice(&parts.tail);
    fs::write(dir.join(INDEX_FILE), &index_bytes).unwrap();

    let info = |bytes: &[u8]| FileInfo {
        size: bytes.len() as u64,
        crc32c: crc32c(bytes),
        sha256: None,
    };
    let manifest = Manifest {
        required: vec![],
        optional: vec![],
        identity,
        source: SourceInfo {
            name: "large".to_owned(),
            fingerprint: None,
        },
        created: "2024-01-02T03:04:05Z".to_owned(),
        writer: "a test".to_owned(),
        samples: contents.len() as u64,
        payload_bytes,
        stored_bytes: payload_bytes,
        schema,
        codec: Codec::None,
        user: None,
        media_type: None,
        align: ALIGN,
        metadata: info(&metadata_bytes),
        index: info(&index_bytes),
        shards: vec![ShardInfo {
            name,
            size: tail.file_size,
            samples: contents.len() as u64,
            id: tail.id,
            crc32c: whole.value(),
            sha256: None,
        }],
    };
    fs::write(dir.join(MANIFEST_FILE), manifest.to_bytes()).unwrap();
    manifest
}

#[test]
fn records_on_both_sides_of_large_offsets() {
    let end = SHARD_SIZE_LIMIT - (1 << 20);
    let offsets = [
        (1 << 31, true),
        (1 << 32, false),
        (1 << 33, true),
        (end, false),
    ];
    let contents = around(&offsets);
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("large");
    let manifest = write(&cache, &contents);
    assert!(manifest.shards[0].size > end);
    assert!(manifest.payload_bytes > end - (1 << 20));
    let small: Vec<u64> = (0..)
        .zip(&contents)
        .filter_map(|(i, content)| matches!(content, Content::Bytes(_)).then_some(i))
        .collect();
    assert_eq!(small.len(), 14);
    for use_mmap in [true, false] {
        let options = ReaderOptions {
            use_mmap,
            ..ReaderOptions::new(0)
        };
        let pool = Pool::new(2).unwrap();
        let dataset = Dataset::open(pool, vec![cache.clone()], options, &Cancel::new()).unwrap();
        let samples: Vec<SampleRef> = small
            .iter()
            .map(|&sample| SampleRef { cache: 0, sample })
            .collect();
        let mut stream = dataset
            .blocks_of::<VecBuffers>(samples.clone(), BlockSizing::Exact(5))
            .unwrap();
        let plan = dataset.read(samples, true).unwrap();
        let buffers = VecBuffers::allocate(plan.lengths());
        let direct = of_block(plan.fill(buffers));
        for (sample, payload) in direct.into_iter().chain(read_all(&mut stream)) {
            match &contents[sample.sample as usize] {
                Content::Bytes(bytes) => assert_eq!(payload.as_ref(), Ok(bytes), "{sample:?}"),
                Content::Zeros(_) => unreachable!(),
            }
        }
    }
}

#[test]
#[ignore = "reads 9 GB"]
fn a_shard_of_more_than_eight_gib_verifies() {
    let contents = around(&[(1 << 31, false), (1 << 32, true), (1 << 33, false)]);
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("large");
    let manifest = write(&cache, &contents);
    let options = CacheOptions {
        use_mmap: true,
        follow_links: false,
    };
    assert_eq!(verify(&cache, options, &Cancel::new()).unwrap(), manifest);
}
