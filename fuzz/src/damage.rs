//! An input as a list of things that happen to the files of a cache.

use crate::caches::Files;

/// Files are never made longer than this.
const MOST: usize = 64 << 10;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn short(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([
            self.byte()?,
            self.byte()?,
        ])))
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        head
    }
}

/// Lets the operations that `input` describes happen to `files`.
pub fn damaged(mut files: Files, input: &[u8]) -> Files {
    let mut input = Reader(input);
    while step(&mut files, &mut input).is_some() {}
    files
}

fn step(files: &mut Files, input: &mut Reader<'_>) -> Option<()> {
    let operation = input.byte()?;
    let count = files.len();
    let file = usize::from(input.byte()?) % count;
    let at = input.short()?;
    if operation % 10 == 8 {
        let other = at % count;
        if files[file].1.is_some() && files[other].1.is_some() {
            let bytes = files[file].1.take();
            files[file].1 = files[other].1.take().or_else(|| bytes.clone());
            files[other].1 = bytes;
        }
        return Some(());
    }
    let slot = &mut files[file].1;
    let Some(bytes) = slot.as_mut() else {
        return Some(());
    };
    let len = bytes.len();
    let place = at % len.max(1);
    match operation % 10 {
        0 => *bytes.get_mut(place)? ^= 1 << (at % 8),
        1 => *bytes.get_mut(place)? = input.byte()?,
        2 | 3 => {
            let count = usize::from(input.byte()?) % 33;
            let new = input.bytes(count);
            let end = (place + new.len()).min(len);
            bytes[place..end].copy_from_slice(&new[..end - place]);
        }
        4 => bytes.truncate(place),
        5 => {
            let count = usize::from(input.byte()?);
            let value = input.byte()?;
            bytes.resize((len + count).min(MOST.max(len)), value);
        }
        6 => {
            // From the end, where trailers and footers are.
            let count = usize::from(input.byte()?) % 33;
            let new = input.bytes(count);
            let start = len.saturating_sub(at % 256 + 1);
            let end = (start + new.len()).min(len);
            bytes[start..end].copy_from_slice(&new[..end - start]);
        }
        7 => {
            // A range moves to another place, over what is there.
            let count = usize::from(input.byte()?).min(len);
            let from = input.short()? % (len - count + 1);
            let to = place.min(len - count);
            bytes.copy_within(from..from + count, to);
        }
        _ => {
            if at % 16 == 0 {
                *slot = None;
            } else {
                bytes.insert(place, input.byte()?);
            }
        }
    }
    Some(())
}
