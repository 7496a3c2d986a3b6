//! Payloads: from a map or by position, decoded, checked, into the consumer's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dataset_rt_format::{Codec, Crc32c, FormatError, crc32c};

use crate::active::SampleRef;
use crate::error::{Error, Result};
use crate::region::prefetch;

use super::cache::Cache;
use super::loaded::Loaded;
use super::lru::Places;
use super::shards::{ShardMap, clock};
use super::slots::{PayloadBuffers, Slot, Slots};

/// Records whose first lines are asked for before they are copied.
const AHEAD: usize = 6;
/// Lines asked for of each; for longer ones the processor has seen the pattern by then.
const LINES: usize = 16;
const LINE: usize = 64;
/// Longer payloads are copied and checked in pieces that stay in the processor's cache in between.
const PIECE: usize = 32 << 10;

/// Where a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) shard: u32,
    pub(crate) offset: u64,
    pub(crate) stored_len: u32,
    pub(crate) raw_len: u32,
    pub(crate) crc: u32,
}

impl Record {
    /// Stands for a sample whose record could not be found.
    pub(crate) const NONE: Self = Self {
        shard: u32::MAX,
        offset: 0,
        stored_len: 0,
        raw_len: 0,
        crc: 0,
    };

    /// The stored bytes, in those of the shard.
    #[inline]
    fn bytes<'a>(&self, shard: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        shard.get(start..start.checked_add(self.stored_len as usize)?)
    }
}

/// The mapped shards that a block touches, each found once.
#[derive(Default)]
struct Maps {
    maps: Vec<Arc<ShardMap>>,
    places: Places,
    last: Option<(u64, usize)>,
}

/// No map: read by position.
const UNMAPPED: usize = usize::MAX;

impl Maps {
    fn place(&mut self, cache: &Cache, cache_id: u32, shard: u32, now: u64) -> usize {
        let key = u64::from(cache_id) << 32 | u64::from(shard);
        if let Some((last, place)) = self.last
            && last == key
        {
            return place;
        }
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => {
                // An error here is met again, and reported, by the positioned read that follows.
                let place = match cache.shards().map(shard, now) {
                    Ok(Some(map)) => {
                        self.maps.push(map);
                        self.maps.len() - 1
                    }
                    Ok(None) | Err(_) => UNMAPPED,
                };
                self.places.insert(key, place);
                place
            }
        };
        self.last = Some((key, place));
        place
    }

    #[inline]
    fn bytes(&self, place: usize, record: &Record) -> Option<&[u8]> {
        record.bytes(self.maps.get(place)?.bytes())
    }
}

impl Loaded {
    /// Reads the payloads of planned records into their slots. What can't be read is added to `errors`.
    pub(crate) fn read_records(
        &self,
        samples: &[SampleRef],
        records: &[Record],
        resident: bool,
        slots: &mut Slots<'_>,
        errors: &mut Vec<(u32, Error)>,
        stop: Option<&AtomicBool>,
    ) {
        let mut again = Vec::new();
        if resident {
            self.copy_records(samples, records, slots, &mut again);
        } else {
            again.extend(0..records.len());
        }
        for i in again {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return;
            }
            let (Some(&sample), Some(record)) = (samples.get(i), records.get(i)) else {
                continue;
            };
            let Some(cache) = self.cache(sample.cache) else {
                continue;
            };
            if *record == Record::NONE {
                continue;
            }
            if let Err(error) = self.read_record(cache, record, &mut slots.get(i)) {
                let place = u32::try_from(i).unwrap_or(u32::MAX);
                errors.push((place, of_sample(error, sample)));
            }
        }
    }

    /// Reads one payload on the caller's thread. `allocate` makes the memory for its length.
    pub(crate) fn read_one<B: PayloadBuffers, E: From<Error>>(
        &self,
        sample: SampleRef,
        allocate: impl FnOnce(u32) -> Result<B, E>,
    ) -> Result<B, E> {
        let of_sample = |error| of_sample(error, sample);
        let Some(cache) = self.cache(sample.cache) else {
            return Err(Error::Internal("a sample without a cache".to_owned()).into());
        };
        let record = cache.record(sample.sample).map_err(of_sample)?;
        let mut buffers = allocate(record.raw_len)?;
        let lengths = [record.raw_len];
        let Some(mut slots) = Slots::new(&mut buffers, &lengths) else {
            let message = "payload memory of another length than asked for".to_owned();
            return Err(Error::Internal(message).into());
        };
        let mut slot = slots.get(0);
        // Served from its map whether resident or not: asking costs more than it could gain. What is wrong with the
        // map or in it is met again, and reported, by the positioned read.
        let map = cache.shards().map(record.shard, clock()).ok().flatten();
        let copied = map.is_some_and(|map| {
            let codec = cache.manifest().codec;
            let bytes = record.bytes(map.bytes());
            let copied = bytes.is_some_and(|b| self.deliver(codec, &record, b, &mut slot).is_ok());
            // AFTER copying.
            copied && !map.is_broken()
        });
        if !copied {
            self.read_record(cache, &record, &mut slot)
                .map_err(of_sample)?;
        }
        Ok(buffers)
    }

    /// Copies payloads out of maps. Those that are not to be had, or not right, go to `again`.
    fn copy_records(
        &self,
        samples: &[SampleRef],
        records: &[Record],
        slots: &mut Slots<'_>,
        again: &mut Vec<usize>,
    ) {
        let now = clock();
        let mut maps = Maps::default();
        let places: Vec<usize> = samples
            .iter()
            .zip(records)
            .map(|(sample, record)| match self.cache(sample.cache) {
                Some(cache) if *record != Record::NONE && cache.uses_mmap() => {
                    maps.place(cache, sample.cache, record.shard, now)
                }
                _ => UNMAPPED,
            })
            .collect();
        for (i, ((sample, record), &place)) in samples.iter().zip(records).zip(&places).enumerate()
        {
            if let (Some(record), Some(&place)) = (records.get(i + AHEAD), places.get(i + AHEAD))
                && let Some(bytes) = maps.bytes(place, record)
            {
                bytes.iter().step_by(LINE).take(LINES).for_each(prefetch);
            }
            let codec = self
                .cache(sample.cache)
                .map_or(Codec::None, |c| c.manifest().codec);
            let copied = maps.bytes(place, record).is_some_and(|bytes| {
                self.deliver(codec, record, bytes, &mut slots.get(i))
                    .is_ok()
            });
            if !copied {
                again.push(i);
            }
        }
        // AFTER copying. A broken map gives zeros, which have a right checksum when the payload is zeros.
        let broken: Vec<bool> = maps.maps.iter().map(|map| map.is_broken()).collect();
        if broken.contains(&true) {
            let hit = |&(_, &place): &(usize, &usize)| broken.get(place) == Some(&true);
            again.extend(places.iter().enumerate().filter(hit).map(|(i, _)| i));
            again.sort_unstable();
            again.dedup();
        }
    }

    /// Reads one payload by position; what this says of it is the last word.
    fn read_record(&self, cache: &Cache, record: &Record, slot: &mut Slot<'_>) -> Result<()> {
        let codec = cache.manifest().codec;
        let file = cache.shards().file(record.shard)?;
        let delivered = if record.stored_len == record.raw_len {
            slot.read_at(&file, record.offset)
                .map_err(|e| file.read_error(e, record.offset))?;
            self.compare(record, crc32c, slot)
        } else {
            let stored = file.read_vec(record.offset, record.stored_len.into())?;
            self.deliver(codec, record, &stored, slot)
        };
        delivered.map_err(|source| Error::Damaged {
            path: file.path().to_path_buf(),
            sample: None,
            offset: Some(record.offset),
            source,
        })
    }

    /// Brings the stored bytes of a record into its slot.
    #[inline]
    fn deliver(
        &self,
        codec: Codec,
        record: &Record,
        stored: &[u8],
        slot: &mut Slot<'_>,
    ) -> Result<(), FormatError> {
        slot.clear();
        if record.stored_len != record.raw_len {
            codec.decode(stored, slot.zeroed())?;
            return self.compare(record, crc32c, slot);
        }
        if stored.len() <= 2 * PIECE || !self.verifies_payloads() {
            slot.append(stored);
            return self.compare(record, crc32c, slot);
        }
        let mut crc = Crc32c::new();
        for piece in stored.chunks(PIECE) {
            let start = slot.bytes().len();
            slot.append(piece);
            crc.update(slot.bytes().get(start..).unwrap_or_default());
        }
        self.compare(record, |_| crc.value(), slot)
    }

    /// Compares the payload as delivered, not as it was in the file: what the user gets is what was checked.
    #[inline]
    fn compare(
        &self,
        record: &Record,
        crc: impl Fn(&[u8]) -> u32,
        slot: &Slot<'_>,
    ) -> Result<(), FormatError> {
        if !self.verifies_payloads() {
            return Ok(());
        }
        let found = crc(slot.bytes());
        if found == record.crc {
            Ok(())
        } else {
            Err(FormatError::RecordChecksum {
                stated: record.crc,
                found,
            })
        }
    }
}

/// Says which sample an error is about.
pub(crate) fn of_sample(error: Error, sample: SampleRef) -> Error {
    match error {
        Error::Damaged {
            path,
            offset,
            source,
            ..
        } => {
            let sample = Some((u64::from(sample.cache), sample.sample));
            Error::Damaged {
                path,
                sample,
                offset,
                source,
            }
        }
        other => other,
    }
}
