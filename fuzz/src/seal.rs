//! Checksums made to fit, so that what lies behind them is tried.

use dataset_rt_format::{Manifest, ShardTrailer, check_shard_name, crc32c, encode_sums};
use sha2::{Digest, Sha256};

use crate::caches::Files;

/// The end of a manifest: member, digits, quote, brace, line feed.
const TAIL: usize = 78;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(slot) = bytes.get_mut(at..at + value.len()) {
        slot.copy_from_slice(value);
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u64::from_le_bytes(*b))
}

fn short(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}

/// The bytes of a range that a file claims to have.
fn claimed(bytes: &[u8], start: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    let len = usize::try_from(len).ok()?;
    bytes.get(start..start.checked_add(len)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives a manifest the digest of what it says. What is too short for a tail gets one.
pub fn manifest(bytes: &mut Vec<u8>) {
    let body = if bytes.ends_with(b"\"}\n") && bytes.len() > TAIL {
        bytes.len() - TAIL
    } else {
        bytes.len()
    };
    bytes.truncate(body);
    let digest = hex(&Sha256::digest(&*bytes));
    bytes.extend_from_slice(format!(",\"sha256\":\"{digest}\"}}\n").as_bytes());
}

/// Puts the checksums of an index right: of blocks, sections and head. `metadata` is the file they are also about.
pub fn index(bytes: &mut [u8], metadata: Option<&[u8]>) {
    let count = usize::try_from(short(bytes, 40)).unwrap_or(0).min(64);
    let row = |bytes: &[u8], i: usize| {
        let at = 128 + i * 32;
        (
            short(bytes, at),
            number(bytes, at + 8),
            number(bytes, at + 16),
        )
    };
    for i in 0..count {
        let (kind, start, len) = row(bytes, i);
        let sums = match kind {
            17 | 18 => (0..count)
                .map(|j| row(bytes, j))
                .find(|(other, ..)| other.wrapping_add(16) == kind)
                .and_then(|(_, start, len)| claimed(bytes, start, len))
                .map(sums_of),
            32 => metadata.map(sums_of),
            _ => None,
        };
        if let (Some(sums), Ok(start)) = (sums, usize::try_from(start))
            && sums.len() as u64 == len
            && start < bytes.len()
        {
            put(bytes, start, &sums);
        }
        if kind >= 16
            && let Some(crc) = claimed(bytes, start, len).map(crc32c)
        {
            put(bytes, 128 + i * 32 + 24, &crc.to_le_bytes());
        }
    }
    if let (Some(head), Some(table)) = (bytes.get(..124), bytes.get(128..128 + count * 32)) {
        let crc = crc32c(&[head, table].concat());
        put(bytes, 124, &crc.to_le_bytes());
    }
}

fn sums_of(bytes: &[u8]) -> Vec<u8> {
    encode_sums(&bytes.chunks(65_536).map(crc32c).collect::<Vec<_>>())
}

/// Puts the checksums and the id of a shard right.
pub fn shard(bytes: &mut [u8]) {
    let Some(trailer) = bytes.len().checked_sub(64).filter(|at| *at >= 64) else {
        return;
    };
    let crc = crc32c(&bytes[..60]);
    put(bytes, 60, &crc.to_le_bytes());
    let footer = number(bytes, trailer + 8);
    if let Some(footer) = usize::try_from(footer)
        .ok()
        .and_then(|start| bytes.get(start..trailer))
    {
        let id = Sha256::new()
            .chain_update(&bytes[..64])
            .chain_update(footer)
            .chain_update(&bytes[trailer..trailer + 8])
            .finalize();
        let crc = crc32c(footer);
        put(bytes, trailer + 24, &id[..16]);
        put(bytes, trailer + 40, &crc.to_le_bytes());
    }
    let crc = crc32c(&bytes[trailer..trailer + 52]);
    put(bytes, trailer + 52, &crc.to_le_bytes());
}

/// Puts the checksums of a whole cache right, as far as its files still can be told.
pub fn cache(files: &mut Files) {
    let metadata = files
        .iter()
        .find(|(path, _)| path == "metadata.arrow")
        .and_then(|(_, bytes)| bytes.clone());
    for (path, bytes) in files.iter_mut() {
        let Some(bytes) = bytes else { continue };
        match path.as_str() {
            "manifest.json" => manifest(bytes),
            "index.bin" => index(bytes, metadata.as_deref()),
            "metadata.arrow" => {}
            _ => shard(bytes),
        }
    }
    let Some(mut said) = files[0]
        .1
        .as_deref()
        .and_then(|bytes| Manifest::parse(bytes).ok())
    else {
        return;
    };
    let find = |path: &str| files.iter().find(|(name, _)| name == path)?.1.as_deref();
    for (info, path) in [
        (&mut said.metadata, "metadata.arrow"),
        (&mut said.index, "index.bin"),
    ] {
        if let Some(bytes) = find(path) {
            info.size = bytes.len() as u64;
            info.crc32c = crc32c(bytes);
            info.sha256 = None;
        }
    }
    for info in &mut said.shards {
        let found = check_shard_name(&info.name)
            .ok()
            .and_then(|()| find(&format!("shards/{}.bin", info.name)));
        if let Some(bytes) = found {
            info.size = bytes.len() as u64;
            info.crc32c = crc32c(bytes);
            info.sha256 = None;
            if let Ok(trailer) = ShardTrailer::decode(bytes, info.size, said.codec, None) {
                info.id = trailer.id;
                info.samples = trailer.count;
            }
        }
    }
    said.samples = said
        .shards
        .iter()
        .fold(0, |sum, shard| sum.saturating_add(shard.samples));
    if let Some(identity) = find("index.bin")
        .and_then(|bytes| bytes.get(48..80))
        .and_then(|b| b.first_chunk())
    {
        said.identity = *identity;
    }
    files[0].1 = Some(said.to_bytes());
}
