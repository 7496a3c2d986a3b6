//! The bytes of a file's section, checked as they are first touched.
//!
//! Sections come with a CRC-32C of each 64 KiB. A block is checked when something in it is first asked for, and a bit
//! remembers that, so that opening reads no array whole and no damage passes. The bytes are a map of the file, or,
//! where maps are off or refused, anonymous memory that is filled block by block with positioned reads.
#![allow(unsafe_code)] // The anonymous memory is written while other blocks of it are read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataset_rt_format::constants::CHECK_BLOCK;
use dataset_rt_format::{FormatError, check_block};
use memmap2::MmapMut;

use crate::error::{Error, Result};
use crate::files::{FileId, Folder, RegularFile};
use crate::forked;
use crate::mapped::Map;

/// Where a section lies and how it is checked.
pub(crate) struct Section {
    /// Offset of the section in its file.
    pub(crate) base: u64,
    /// Bytes of the section, within the file.
    pub(crate) len: u64,
    /// CRC-32C of each [`CHECK_BLOCK`] bytes, the last block shorter.
    pub(crate) sums: Vec<u32>,
    /// What the section is, for the error of a block whose sum is wrong.
    pub(crate) kind: SectionKind,
}

/// Which sums a section has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SectionKind {
    /// A section of the index, by its number.
    Index(u32),
    /// The whole of the metadata.
    Metadata,
}

/// A section of a file.
pub(crate) struct Region {
    folder: Folder,
    name: &'static str,
    id: FileId,
    section: Section,
    bytes: Bytes,
    /// Place and value of the last byte of the map that is not zero.
    last: Option<(usize, u8)>,
    checked: Box<[AtomicU64]>,
}

/// How far from its end a file is searched for a byte that is not zero; ours end in one.
const LAST_BYTES: usize = 4096;

enum Bytes {
    Map(Arc<Map>),
    Memory(Memory),
}

impl Region {
    /// A region over `section` of an open file; `map` is a map of that file, or `None` to read by position.
    pub(crate) fn new(
        folder: &Folder,
        name: &'static str,
        file: &RegularFile,
        map: Option<Arc<Map>>,
        section: Section,
    ) -> Result<Self> {
        let end = section.base.checked_add(section.len);
        let blocks = section.len.div_ceil(CHECK_BLOCK);
        if end.is_none_or(|end| end > file.id().size) || section.sums.len() as u64 != blocks {
            return Err(Error::Internal(format!(
                "a section of {name} does not fit its file"
            )));
        }
        let last = map.as_ref().and_then(|map| last_byte(map.bytes()));
        let bytes = match map {
            Some(map) => Bytes::Map(map),
            None => Bytes::Memory(Memory::new(section.len).map_err(|e| {
                let hint = format!("; {} bytes were asked for", section.len);
                let path = file.path().to_path_buf();
                Error::Io {
                    operation: "allocate memory for",
                    path,
                    hint,
                    source: e,
                }
            })?),
        };
        let words = section.sums.len().div_ceil(64);
        Ok(Self {
            folder: folder.clone(),
            name,
            id: file.id(),
            section,
            bytes,
            last,
            checked: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.section.len
    }

    /// Where the section starts in its file.
    pub(crate) fn base(&self) -> u64 {
        self.section.base
    }

    /// The bytes of a range of the section, their blocks checked.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Result<&[u8]> {
        if range.start >= range.end {
            return Ok(&[]);
        }
        self.check(range.clone())?;
        match &self.bytes {
            Bytes::Map(map) => {
                map.get(self.section.base + range.start..self.section.base + range.end)
            }
            Bytes::Memory(memory) => memory.get(range.clone()),
        }
        .ok_or_else(|| Error::Internal(format!("range {range:?} outside of {}", self.name)))
    }

    /// The bytes of a range whose blocks need not be checked yet; where there is no map they are checked all the same.
    pub(crate) fn unchecked(&self, range: Range<u64>) -> Result<&[u8]> {
        match &self.bytes {
            Bytes::Map(map) if range.end <= self.section.len => map
                .get(self.section.base + range.start..self.section.base + range.end)
                .ok_or_else(|| {
                    Error::Internal(format!("range {range:?} outside of {}", self.name))
                }),
            _ => self.bytes(range),
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Map(_))
    }

    /// Checks the blocks that a range touches.
    #[inline]
    pub(crate) fn check(&self, range: Range<u64>) -> Result<()> {
        if range.end > self.section.len {
            return Err(Error::Internal(format!(
                "range {range:?} outside of {}",
                self.name
            )));
        }
        let last = range.end.saturating_sub(1) / CHECK_BLOCK;
        for block in range.start / CHECK_BLOCK..=last {
            if !self.is_checked(block) {
                self.check_block(block)?;
            }
        }
        Ok(())
    }

    /// Starts to load the cache line of an offset. A hint: any offset will do.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        if let Bytes::Map(map) = &self.bytes
            && let Ok(at) = usize::try_from(self.section.base.wrapping_add(offset))
            && let Some(byte) = map.bytes().get(at)
        {
            prefetch(byte);
        }
    }

    /// An error when a page of the file failed to load, or the file was cut: what was read since the blocks were
    /// checked may be zeros.
    ///
    /// Ask AFTER values were copied out.
    #[inline]
    pub(crate) fn intact(&self) -> Result<()> {
        match &self.bytes {
            Bytes::Map(map) if map.is_broken() || self.is_cut(map) => Err(self.vanished(0)),
            _ => Ok(()),
        }
    }

    /// Whether the file ends earlier by now. Beyond its new end the page that holds it reads as zeros without a fault,
    /// and later pages fault; either way the last byte that was no zero is one now.
    fn is_cut(&self, map: &Map) -> bool {
        self.last.is_some_and(|(at, value)| {
            map.bytes().get(at).is_none_or(|byte| {
                // SAFETY: a reference is valid to read from; volatile, since the file may have changed.
                unsafe { std::ptr::read_volatile(byte) != value }
            })
        })
    }

    #[inline]
    fn is_checked(&self, block: u64) -> bool {
        let (word, bit) = bit(block);
        self.checked
            .get(word)
            .is_some_and(|word| word.load(Ordering::Acquire) & bit != 0)
    }

    #[cold]
    fn check_block(&self, block: u64) -> Result<()> {
        let start = block * CHECK_BLOCK;
        let end = (start + CHECK_BLOCK).min(self.section.len);
        let (word, bit) = bit(block);
        match &self.bytes {
            Bytes::Map(map) => {
                let range = self.section.base + start..self.section.base + end;
                let bytes = map.get(range).unwrap_or_default();
                let sum = check_block(&self.section.sums, block, bytes);
                if map.is_broken() {
                    return Err(self.vanished(start));
                }
                sum.map_err(|sums| self.wrong_sum(block, sums))?;
            }
            Bytes::Memory(memory) => {
                let file = self.folder.open_file(self.name)?;
                if file.id() != self.id {
                    return Err(self.vanished(start));
                }
                let bytes = file.read_vec(self.section.base + start, end - start)?;
                check_block(&self.section.sums, block, &bytes)
                    .map_err(|sums| self.wrong_sum(block, sums))?;
                memory.fill(start, &bytes, || self.is_checked(block));
            }
        }
        if let Some(word) = self.checked.get(word) {
            word.fetch_or(bit, Ordering::Release);
        }
        Ok(())
    }

    fn wrong_sum(&self, block: u64, (stated, found): (u32, u32)) -> Error {
        let source = match self.section.kind {
            SectionKind::Index(kind) => FormatError::IndexBlockChecksum {
                kind,
                block,
                stated,
                found,
            },
            SectionKind::Metadata => FormatError::MetadataBlockChecksum {
                block,
                stated,
                found,
            },
        };
        self.error(source, Some(self.section.base + block * CHECK_BLOCK))
    }

    fn vanished(&self, start: u64) -> Error {
        let found = self.folder.peek(self.name).map_or(0, |id| id.size);
        let name = format!("{} (changed after it was opened)", self.name);
        let source = FormatError::FileSize {
            name,
            stated: self.id.size,
            found,
        };
        self.error(source, Some(self.section.base + start))
    }

    /// An error in this file.
    pub(crate) fn error(&self, source: FormatError, offset: Option<u64>) -> Error {
        Error::Damaged {
            path: self.folder.file_path(self.name),
            sample: None,
            offset,
            source,
        }
    }
}

fn last_byte(bytes: &[u8]) -> Option<(usize, u8)> {
    let ends = bytes.iter().enumerate().rev().take(LAST_BYTES);
    ends.map(|(at, &byte)| (at, byte))
        .find(|&(_, byte)| byte != 0)
}

fn bit(block: u64) -> (usize, u64) {
    (
        usize::try_from(block / 64).unwrap_or(usize::MAX),
        1 << (block % 64),
    )
}

/// Asks the processor to load the cache line that `value` starts in.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is allowed and changes nothing; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Anonymous memory of the size of a section, whose blocks are written once each. Pages cost nothing until then.
struct Memory {
    start: *mut u8,
    len: usize,
    /// Generation of the process that is copying, plus one; 0 = nobody. A lock left by a thread that a fork did not
    /// bring along is taken over.
    copying: AtomicU64,
    _map: MmapMut,
}

// SAFETY: a block is written by one thread at a time under `copying`, before its bit in `checked` is set, and read
// only after that bit was seen.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(len: u64) -> std::io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(len.max(1))?;
        Ok(Self {
            start: map.as_mut_ptr(),
            len,
            copying: AtomicU64::new(0),
            _map: map,
        })
    }

    fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        if start > end || end > self.len {
            return None;
        }
        // SAFETY: the range is inside of the memory; its blocks were filled before (the caller has seen their bits)
        // and are never written again.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(start), end - start) })
    }

    fn fill(&self, start: u64, bytes: &[u8], filled: impl Fn() -> bool) {
        let Ok(start) = usize::try_from(start) else {
            return;
        };
        if start
            .checked_add(bytes.len())
            .is_none_or(|end| end > self.len)
        {
            return;
        }
        let mine = forked::generation() + 1;
        loop {
            let owner = self.copying.load(Ordering::Relaxed);
            let free = owner != mine;
            if free
                && self
                    .copying
                    .compare_exchange_weak(owner, mine, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            std::thread::yield_now();
        }
        if !filled() {
            // SAFETY: bounds checked above; nobody reads the block before its bit is set, and nobody else writes
            // while `copying` is ours. (In a child that took over a lock, the half-done copy had the same bytes.)
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(start), bytes.len());
            }
        }
        self.copying.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    //! Blocks are checked at first touch, with and without maps, and a changed byte is found in its block alone.
    use std::sync::Arc;

    use dataset_rt_format::crc32c;

    use super::{Region, Section, SectionKind};
    use crate::error::Error;
    use crate::files::Folder;
    use crate::mapped::Map;

    const BASE: u64 = 128;
    const LEN: u64 = 3 * 65_536 + 100;

    fn at(offset: u64) -> usize {
        usize::try_from(BASE + offset).unwrap()
    }

    fn region(dir: &std::path::Path, use_map: bool, good: &[u8]) -> Region {
        let folder = Folder::new(dir, false).unwrap();
        let file = folder.open_file("f").unwrap();
        let map = use_map.then(|| Arc::new(Map::new(file.file(), file.id().size).unwrap()));
        let sums = good[at(0)..].chunks(65_536).map(crc32c).collect();
        let section = Section {
            base: BASE,
            len: LEN,
            sums,
            kind: SectionKind::Index(1),
        };
        Region::new(&folder, "f", &file, map, section).unwrap()
    }

    #[test]
    fn damage_is_found_where_it_is() {
        for use_map in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let good: Vec<u8> = (0..BASE + LEN)
                .map(|i| u8::try_from(i * 31 % 251).unwrap())
                .collect();
            let mut bad = good.clone();
            bad[at(2 * 65_536 + 5)] ^= 1;
            std::fs::write(dir.path().join("f"), &bad).unwrap();
            let region = region(dir.path(), use_map, &good);
            let (from, to) = (65_530, 65_550);
            let wanted = &good[at(from)..at(to)];
            assert_eq!(region.bytes(from..to).unwrap(), wanted);
            assert_eq!(region.bytes(LEN - 1..LEN).unwrap(), &good[good.len() - 1..]);
            assert!(region.bytes(LEN - 1..LEN + 1).is_err());
            for _ in 0..2 {
                match region.bytes(2 * 65_536 - 1..2 * 65_536 + 1) {
                    Err(Error::Damaged { offset, source, .. }) => {
                        assert_eq!(offset, Some(BASE + 2 * 65_536));
                        assert_eq!(source.code(), "index_damaged");
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(region.intact().is_ok());
        }
    }

    #[test]
    fn a_shorter_file_is_an_error() {
        for use_map in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let good = vec![9_u8; at(LEN)];
            std::fs::write(dir.path().join("f"), &good).unwrap();
            let region = region(dir.path(), use_map, &good);
            region.bytes(0..10).unwrap();
            let file = std::fs::File::options()
                .write(true)
                .open(dir.path().join("f"))
                .unwrap();
            file.set_len(70_000).unwrap();
            match region.bytes(3 * 65_536..3 * 65_536 + 8) {
                Err(Error::Damaged { source, .. }) => assert_eq!(source.code(), "file_size"),
                other => panic!("{other:?}"),
            }
            assert_eq!(region.intact().is_err(), use_map);
        }
    }

    #[test]
    fn a_file_cut_within_its_last_page_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let good = vec![9_u8; at(LEN)];
        std::fs::write(dir.path().join("f"), &good).unwrap();
        let region = region(dir.path(), true, &good);
        region.bytes(0..LEN).unwrap();
        region.intact().unwrap();
        let file = std::fs::File::options()
            .write(true)
            .open(dir.path().join("f"))
            .unwrap();
        // No page is gone, so nothing faults.
        file.set_len(good.len() as u64 - 10).unwrap();
        assert_eq!(region.bytes(LEN - 5..LEN).unwrap(), [0; 5]);
        match region.intact() {
            Err(Error::Damaged { source, .. }) => assert_eq!(source.code(), "file_size"),
            other => panic!("{other:?}"),
        }
    }
}
