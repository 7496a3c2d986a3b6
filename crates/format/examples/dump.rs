//! Prints the files of a cache field by field: offset, bytes, meaning, in the notation of section 16 of
//! `spec/format.md`.
//!
//! ```text
//! cargo run -p dataset_rt_format --example dump -- CACHE
//! ```
//!
//! Nothing is checked, so that a damaged cache can be looked at: fields are shown where the layout puts them, and what
//! no field claims is shown as it is.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use arrow_ipc::{MessageHeader, root_as_footer, root_as_message};

/// Bytes shown on one line.
const WIDTH: usize = 16;
/// Shorter runs of zeros are shown.
const SHORTENED: usize = 24;
/// Records, entries and the like are shown up to this number.
const SHOWN: u64 = 64;

/// A file and what its bytes are, front to back.
struct Pieces<'f> {
    file: &'f [u8],
    at: usize,
    list: Vec<(usize, usize, String)>,
}

impl<'f> Pieces<'f> {
    fn new(file: &'f [u8]) -> Self {
        let list = Vec::new();
        Self { file, at: 0, list }
    }

    /// The next bytes, fewer where the file ends.
    fn take(&mut self, len: u64, note: impl Into<String>) -> &'f [u8] {
        let left = self.file.len() - self.at;
        let len = usize::try_from(len).unwrap_or(left).min(left);
        if len > 0 {
            self.list.push((self.at, len, note.into()));
        }
        self.at += len;
        self.file.get(self.at - len..self.at).unwrap_or_default()
    }

    /// The next bytes as a number, which the note gets behind it.
    fn number(&mut self, len: u64, note: &str) -> u64 {
        let bytes = self.take(len, "");
        let value = little(bytes);
        if !bytes.is_empty() {
            let text = if note.ends_with("crc") {
                format!("{note} {value:08x}")
            } else {
                format!("{note} {value}")
            };
            name(self, text);
        }
        value
    }

    /// Everything up to an offset, if it is ahead.
    fn up_to(&mut self, offset: u64, note: &str) {
        let here = self.at as u64;
        self.take(offset.saturating_sub(here), note);
    }

    fn print(&self) {
        for (at, len, note) in &self.list {
            let bytes = self.file.get(*at..at + len).unwrap_or_default();
            if *len >= SHORTENED && bytes.iter().all(|byte| *byte == 0) {
                println!(
                    "    {at:08x}  {:<48} {note} ({len} zero bytes)",
                    "00 ... 00"
                );
                continue;
            }
            let shown = bytes.len().min(WIDTH * 4);
            for (line, chunk) in bytes.chunks(WIDTH).take(4).enumerate() {
                let mut hex = String::new();
                for byte in chunk {
                    let _ = write!(hex, "{byte:02x} ");
                }
                let note = if line == 0 { note.as_str() } else { "" };
                println!("    {:08x}  {hex:<48} {note}", at + line * WIDTH);
            }
            if shown < *len {
                println!("              ... {} more bytes", len - shown);
            }
        }
    }
}

fn little(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    file.get(at..at + 8).map(little)
}

/// Fixed fields one after another: length and name.
fn fields(pieces: &mut Pieces<'_>, fields: &[(u64, &str)]) {
    for (len, name) in fields {
        match len {
            1 | 2 | 4 | 8 => {
                pieces.number(*len, name);
            }
            _ => {
                pieces.take(*len, *name);
            }
        }
    }
}

fn shard(file: &[u8]) -> Pieces<'_> {
    let mut pieces = Pieces::new(file);
    pieces.take(8, "magic");
    let codec = file.get(10).copied().unwrap_or_default();
    fields(
        &mut pieces,
        &[
            (2, "version"),
            (1, "codec"),
            (1, "align"),
            (4, "required flags"),
            (8, "part"),
            (8, "first"),
            (4, "ordinal"),
            (24, "reserved"),
            (4, "crc"),
        ],
    );
    let end = file.len().saturating_sub(64);
    let count = u64_at(file, end).unwrap_or_default();
    let footer = u64_at(file, end + 8).unwrap_or_default();
    let align = 1_u64 << (file.get(11).copied().unwrap_or_default() & 15);
    for record in 0..count.min(SHOWN) {
        let stored = footer
            .checked_add(record * 8)
            .and_then(|at| usize::try_from(at).ok());
        let stored = stored.and_then(|at| file.get(at..at + 4)).map_or(0, little);
        let place = (pieces.at as u64).next_multiple_of(align);
        pieces.up_to(place, "padding");
        pieces.take(stored, format!("record {record}"));
    }
    let more = if count > SHOWN {
        "further records and padding"
    } else {
        "padding"
    };
    pieces.up_to(footer.min(end as u64), more);
    for record in 0..count.min(SHOWN) {
        let pair = pieces.take(8, "");
        let (stored, crc) = (little(pair.get(..4).unwrap_or_default()), pair.get(4..));
        let crc = crc.map_or(0, little);
        name(
            &mut pieces,
            format!("footer of record {record}: stored_len {stored}, crc {crc:08x}"),
        );
    }
    let lengths = footer.saturating_add(count.saturating_mul(8));
    pieces.up_to(lengths.min(end as u64), "further footers");
    for record in (0..count.min(SHOWN)).filter(|_| codec != 0) {
        pieces.number(4, &format!("raw_len of record {record}:"));
    }
    pieces.up_to(end as u64, "rest of the footer");
    fields(
        &mut pieces,
        &[
            (8, "count"),
            (8, "F"),
            (8, "size"),
            (16, "id"),
            (4, "footer crc"),
            (4, "flags"),
            (4, "version"),
            (4, "crc"),
        ],
    );
    pieces.take(8, "magic");
    pieces.take(u64::MAX, "?");
    pieces
}

/// Names the piece that was taken last.
fn name(pieces: &mut Pieces<'_>, note: String) {
    if let Some(piece) = pieces.list.last_mut() {
        piece.2 = note;
    }
}

fn index(file: &[u8]) -> Pieces<'_> {
    let mut pieces = Pieces::new(file);
    pieces.take(8, "magic");
    fields(
        &mut pieces,
        &[
            (2, "version"),
            (1, "codec"),
            (1, "align"),
            (4, "required flags"),
            (8, "samples"),
            (8, "shards"),
            (8, "size"),
        ],
    );
    let sections = pieces.number(4, "sections");
    fields(
        &mut pieces,
        &[
            (4, "reserved"),
            (32, "identity"),
            (44, "reserved"),
            (4, "crc"),
        ],
    );
    let mut places = Vec::new();
    for _ in 0..sections.min(SHOWN) {
        let kind = pieces.number(4, "kind");
        pieces.number(4, "  flags");
        let offset = pieces.number(8, "  offset");
        let length = pieces.number(8, "  length");
        fields(&mut pieces, &[(4, "  crc"), (4, "  reserved")]);
        places.push((kind, offset, length));
    }
    for (kind, offset, length) in places {
        pieces.up_to(offset, "padding");
        let end = offset.saturating_add(length);
        match kind {
            1 => entries(&mut pieces, length / 16),
            2 | 17 | 18 | 32 => {
                let what = if kind == 2 {
                    "raw_len of sample"
                } else {
                    "crc of block"
                };
                for item in 0..(length / 4).min(SHOWN) {
                    let value = little(pieces.take(4, ""));
                    let value = if kind == 2 {
                        value.to_string()
                    } else {
                        format!("{value:08x}")
                    };
                    name(
                        &mut pieces,
                        format!("section {kind}: {what} {item}: {value}"),
                    );
                }
            }
            _ => {}
        }
        pieces.up_to(end, &format!("section {kind}: the rest"));
    }
    pieces.take(u64::MAX, "?");
    pieces
}

fn entries(pieces: &mut Pieces<'_>, count: u64) {
    for sample in 0..count.min(SHOWN) {
        let entry = pieces.take(16, "");
        let part = |range| entry.get(range).map_or(0, little);
        let (shard, offset) = (part(5..8), part(0..5));
        let (stored, crc) = (part(8..12), part(12..16));
        name(
            pieces,
            format!(
                "entry {sample}: shard {shard}, offset {offset}, stored_len {stored}, crc {crc:08x}"
            ),
        );
    }
}

fn metadata(file: &[u8]) -> Pieces<'_> {
    let mut pieces = Pieces::new(file);
    pieces.take(8, "magic");
    let end = file.len().saturating_sub(10);
    let footer_len = file.get(end..end + 4).map_or(0, little);
    let footer = (end as u64).saturating_sub(footer_len);
    loop {
        let start = pieces.at;
        let is_message = file.get(start..start + 4) == Some(&[0xFF; 4]) && (start as u64) < footer;
        if !is_message {
            break;
        }
        let len = file.get(start + 4..start + 8).map_or(0, little);
        if len == 0 {
            pieces.take(8, "end of stream");
            break;
        }
        pieces.take(8, format!("message of {len} bytes"));
        let bytes = pieces.take(len, "flatbuffer");
        let Ok(message) = root_as_message(bytes) else {
            name(&mut pieces, "flatbuffer, not sound".to_owned());
            break;
        };
        let what = match message.header_as_record_batch() {
            Some(batch) => format!("RecordBatch of {} rows", batch.length()),
            None if message.header_type() == MessageHeader::Schema => "Schema".to_owned(),
            None => format!("{:?}", message.header_type()),
        };
        name(
            &mut pieces,
            format!("flatbuffer: Message {:?}, {what}", message.version()),
        );
        let body = u64::try_from(message.bodyLength()).unwrap_or_default();
        let base = pieces.at as u64;
        let buffers = message
            .header_as_record_batch()
            .and_then(|batch| batch.buffers());
        for (number, buffer) in (0..SHOWN).zip(buffers.iter().flatten()) {
            let offset = u64::try_from(buffer.offset()).unwrap_or_default();
            let length = u64::try_from(buffer.length()).unwrap_or_default();
            pieces.up_to(base.saturating_add(offset), "padding");
            pieces.take(length, format!("buffer {number}, {length} bytes"));
        }
        pieces.up_to(base.saturating_add(body), "rest of the body");
    }
    pieces.up_to(footer, "?");
    let bytes = pieces.take(
        footer_len.min(end as u64 - pieces.at.min(end) as u64),
        "footer",
    );
    if let Ok(footer) = root_as_footer(bytes) {
        let blocks = footer.recordBatches();
        let blocks = blocks.iter().flatten().map(|block| {
            format!(
                "({}, {}, {})",
                block.offset(),
                block.metaDataLength(),
                block.bodyLength()
            )
        });
        let blocks: Vec<String> = blocks.take(8).collect();
        let version = footer.version();
        name(
            &mut pieces,
            format!(
                "footer: {version:?}, Schema, Blocks (offset, metaDataLength, bodyLength) {}",
                blocks.join(" ")
            ),
        );
    }
    pieces.up_to(end as u64, "?");
    pieces.number(4, "length of the footer");
    pieces.take(6, "\"ARROW1\"");
    pieces.take(u64::MAX, "?");
    pieces
}

fn manifest(file: &[u8]) -> Pieces<'_> {
    let mut pieces = Pieces::new(file);
    let tail = file.len().saturating_sub(78) as u64;
    pieces.take(tail, "prefix and members");
    pieces.take(u64::MAX, "tail");
    pieces
}

fn pieces_of<'f>(path: &str, file: &'f [u8]) -> Pieces<'f> {
    match path {
        "manifest.json" => manifest(file),
        "metadata.arrow" => metadata(file),
        "index.bin" => index(file),
        _ => shard(file),
    }
}

/// The files of a cache by their paths, shards in the order of their names.
fn files(cache: &Path) -> io::Result<Vec<String>> {
    let mut shards = Vec::new();
    for entry in fs::read_dir(cache.join("shards"))? {
        shards.push(format!("shards/{}", entry?.file_name().to_string_lossy()));
    }
    shards.sort_unstable();
    let own = ["manifest.json", "metadata.arrow", "index.bin"].map(String::from);
    Ok(own.into_iter().chain(shards).collect())
}

fn main() -> ExitCode {
    let Some(cache) = std::env::args_os().nth(1) else {
        eprintln!("usage: dump CACHE");
        return ExitCode::from(2);
    };
    let cache = Path::new(&cache);
    let listed = files(cache).unwrap_or_else(|error| {
        eprintln!("{}: {error}", cache.join("shards").display());
        Vec::new()
    });
    for path in &listed {
        match fs::read(cache.join(path)) {
            Ok(file) if path == "manifest.json" => {
                println!("{path} ({} bytes)\n", file.len());
                println!(
                    "    {}",
                    String::from_utf8_lossy(&file).replace(",\"", ",\n    \"")
                );
            }
            Ok(file) => {
                println!("{path} ({} bytes)\n", file.len());
                pieces_of(path, &file).print();
                println!();
            }
            Err(error) => println!("{path}: {error}\n"),
        }
    }
    ExitCode::from(u8::from(listed.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::{files, pieces_of};
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn every_byte_of_every_vector_is_shown_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/v1");
        let mut caches = 0;
        for kind in ["valid", "invalid"] {
            for entry in fs::read_dir(root.join(kind)).unwrap() {
                let cache: PathBuf = entry.unwrap().path().join("cache");
                for path in files(&cache).unwrap() {
                    let Ok(file) = fs::read(cache.join(&path)) else {
                        continue; // missing or a folder: that is the vector's defect
                    };
                    let pieces = pieces_of(&path, &file);
                    let mut next = 0;
                    for (at, len, _) in &pieces.list {
                        assert_eq!(*at, next, "{cache:?} {path}");
                        next = at + len;
                    }
                    assert_eq!(next, file.len(), "{cache:?} {path}");
                }
                caches += 1;
            }
        }
        assert!(caches > 300);
    }

    #[test]
    fn fields_are_where_section_16_shows_them() {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/v1/valid/minimal/cache");
        let notes = |path: &str| {
            let file = fs::read(root.join(path)).unwrap();
            let pieces = pieces_of(path, &file);
            let notes = pieces
                .list
                .iter()
                .map(|(at, _, note)| format!("{at:x} {note}"));
            notes.collect::<Vec<_>>().join("\n")
        };
        let shard = notes("shards/000000.bin");
        for line in [
            "3c crc 0833628b",
            "40 record 0",
            "88 count 1",
            "90 F 128",
            "98 size 200",
        ] {
            assert!(shard.contains(line), "{line} in\n{shard}");
        }
        let index = notes("index.bin");
        for line in [
            "28 sections 3",
            "100 entry 0: shard 0, offset 64, stored_len 5, crc 9a71bb4c",
        ] {
            assert!(index.contains(line), "{line} in\n{index}");
        }
        let metadata = notes("metadata.arrow");
        for line in [
            "c0 end of stream",
            "130 length of the footer 104",
            "58 flatbuffer: Message V5, RecordBatch of 1 rows",
        ] {
            assert!(metadata.contains(line), "{line} in\n{metadata}");
        }
    }
}
