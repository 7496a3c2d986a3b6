//! A saved position: what a training job stores in its checkpoint to go on at the same sample, as a small JSON object.
//!
//! It says where the stream was, and enough about what it was read from that another dataset, table or order is
//! refused by name. Rank, number of ranks, workers, batch size and paths are not in it: any of them may change.

use serde::{Deserialize, Serialize};

mod text;

use self::text::{decimal, from_hex, hex, mode, optional_decimal, optional_hex, to_hex};
use super::digest::CACHE_HEADS;
use super::{MAX_ROWS, Mode, POSITIONS, SAMPLING_ALGORITHM, Sampler, caches_digest, window_end};
use crate::error::Error;

/// What a saved position calls itself.
pub const POSITION_FORMAT: &str = "dataset_rt.position";

/// The version of saved positions that is written, and the only one that is read.
pub const POSITION_VERSION: u32 = 1;

/// The longest text that is parsed: far more than any position needs, also when indented.
const MAX_TEXT: usize = 64 * 1024;

/// What a saved position and a dataset can differ in, from cause to effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PositionItem {
    /// The caches that are loaded, or their order.
    Caches,
    /// The number of active rows.
    Rows,
    /// Which samples the active rows are.
    Table,
    /// The mode.
    Mode,
    /// The seed.
    Seed,
    /// The stream word.
    Stream,
    /// The weights of the active rows, in modes that use them.
    Weights,
}

impl PositionItem {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caches => "caches",
            Self::Rows => "rows",
            Self::Table => "table",
            Self::Mode => "mode",
            Self::Seed => "seed",
            Self::Stream => "stream",
            Self::Weights => "weights",
        }
    }
}

/// Why a saved position is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PositionError {
    /// The text is no saved position.
    #[error("this is no saved position: {0}")]
    Invalid(String),
    /// Another version.
    #[error("saved position of version {found}, this library reads version {POSITION_VERSION}")]
    Version {
        /// As found.
        found: u64,
    },
    /// Saved under another definition of the stream.
    #[error(
        "saved position under sampling algorithm {found}, this library has {SAMPLING_ALGORITHM}"
    )]
    Algorithm {
        /// As found.
        found: u64,
    },
    /// A value that no dataset has.
    #[error("saved position: {key} {message}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was found and what is allowed.
        message: String,
    },
    /// The position belongs to another dataset, table or order.
    #[error("the saved position doesn't fit this dataset, {} differ: {message}", item.name())]
    Differs {
        /// The first item that differs.
        item: PositionItem,
        /// What was saved and what is here.
        message: String,
    },
}

impl From<PositionError> for Error {
    fn from(error: PositionError) -> Self {
        Self::Argument {
            argument: "state",
            message: error.to_string(),
        }
    }
}

/// Digests of an active table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDigests {
    /// Which samples the rows are; see [`RowsDigest`](super::RowsDigest).
    #[serde(with = "hex")]
    pub rows: [u8; 32],
    /// Those and their weights, in modes that use weights; see [`WeightsDigest`](super::WeightsDigest).
    #[serde(with = "optional_hex")]
    pub weights: Option<[u8; 32]>,
}

/// A saved position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPosition {
    format: String,
    version: u32,
    algorithm: u32,
    #[serde(with = "mode")]
    mode: Mode,
    #[serde(with = "decimal")]
    seed: u64,
    stream: u32,
    #[serde(with = "decimal")]
    rows: u64,
    #[serde(with = "decimal")]
    window_start: u64,
    #[serde(with = "decimal")]
    window_len: u64,
    #[serde(with = "decimal")]
    delivered: u64,
    #[serde(with = "decimal")]
    next: u64,
    #[serde(with = "optional_decimal")]
    epoch_len: Option<u64>,
    #[serde(with = "hex")]
    caches: [u8; 32],
    cache_heads: Vec<String>,
    table: TableDigests,
}

/// Where a stream is: what changes as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamProgress {
    /// First position of the window that is read.
    pub window_start: u64,
    /// Its number of positions. A window goes on to its own end, so one position would not be enough.
    pub window_len: u64,
    /// Samples of the window that all ranks together delivered; at most `window_len`, the same on every rank.
    pub delivered: u64,
    /// Start of the window after. It is at least the window's end, and more when several windows are open.
    pub next: u64,
    /// Length of the windows to come; None: the number of rows.
    pub epoch_len: Option<u64>,
}

/// The keys that decide whether the others are looked at.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
    algorithm: u64,
}

impl SavedPosition {
    /// The position of a dataset of these caches and this table, read by this sampler.
    ///
    /// # Errors
    /// [`PositionError::Value`] when the numbers don't fit each other.
    pub fn new(
        sampler: &Sampler,
        progress: StreamProgress,
        identities: &[[u8; 32]],
        table: TableDigests,
    ) -> Result<Self, PositionError> {
        let StreamProgress {
            window_start,
            window_len,
            delivered,
            next,
            epoch_len,
        } = progress;
        let position = Self {
            format: POSITION_FORMAT.to_owned(),
            version: POSITION_VERSION,
            algorithm: SAMPLING_ALGORITHM,
            mode: sampler.mode(),
            seed: sampler.seed(),
            stream: sampler.stream(),
            rows: sampler.rows(),
            window_start,
            window_len,
            delivered,
            next,
            epoch_len,
            caches: caches_digest(identities),
            cache_heads: identities
                .iter()
                .take(CACHE_HEADS)
                .map(|id| to_hex(&id[..4]))
                .collect(),
            table,
        };
        position.validate()?;
        Ok(position)
    }

    /// Reads a saved position. It must have the keys of [`to_json`](Self::to_json) and no others, in any order;
    /// integers in strings are decimal digits without a leading zero.
    ///
    /// # Errors
    /// Any [`PositionError`] but [`PositionError::Differs`].
    pub fn parse(text: &str) -> Result<Self, PositionError> {
        if text.len() > MAX_TEXT {
            let message = format!("{} bytes of text, at most {MAX_TEXT} are read", text.len());
            return Err(PositionError::Invalid(message));
        }
        let invalid = |error: serde_json::Error| PositionError::Invalid(error.to_string());
        let head: Head = serde_json::from_str(text).map_err(invalid)?;
        if head.format != POSITION_FORMAT {
            let message = format!("format is {:?}, not {POSITION_FORMAT:?}", head.format);
            return Err(PositionError::Invalid(message));
        }
        if head.version != u64::from(POSITION_VERSION) {
            return Err(PositionError::Version {
                found: head.version,
            });
        }
        if head.algorithm != u64::from(SAMPLING_ALGORITHM) {
            return Err(PositionError::Algorithm {
                found: head.algorithm,
            });
        }
        let position: Self = serde_json::from_str(text).map_err(invalid)?;
        position.validate()?;
        Ok(position)
    }

    /// The JSON text, below 2 KiB.
    ///
    /// # Errors
    /// Never in practice: there is nothing in it that JSON has not.
    pub fn to_json(&self) -> Result<String, PositionError> {
        serde_json::to_string(self).map_err(|error| PositionError::Invalid(error.to_string()))
    }

    /// Compares with the position that the dataset at hand would save.
    ///
    /// # Errors
    /// [`PositionError::Differs`] with the first item that differs. What changes as a stream is read isn't compared.
    pub fn check(&self, current: &Self) -> Result<(), PositionError> {
        let differs = |item, message| Err(PositionError::Differs { item, message });
        let compare = |item, saved: &dyn std::fmt::Display, here: &dyn std::fmt::Display| {
            let (saved, here) = (saved.to_string(), here.to_string());
            if saved == here {
                Ok(())
            } else {
                differs(item, format!("saved {saved}, here {here}"))
            }
        };
        if self.caches != current.caches {
            return differs(PositionItem::Caches, self.compare_heads(current));
        }
        compare(PositionItem::Rows, &self.rows, &current.rows)?;
        let (saved, here) = (self.table.rows, current.table.rows);
        compare(PositionItem::Table, &to_hex(&saved), &to_hex(&here))?;
        compare(PositionItem::Mode, &self.mode.name(), &current.mode.name())?;
        compare(PositionItem::Seed, &self.seed, &current.seed)?;
        compare(PositionItem::Stream, &self.stream, &current.stream)?;
        match (self.table.weights, current.table.weights) {
            (Some(saved), Some(here)) => {
                compare(PositionItem::Weights, &to_hex(&saved), &to_hex(&here))
            }
            _ => Ok(()),
        }
    }

    fn compare_heads(&self, current: &Self) -> String {
        let (saved, here) = (&self.cache_heads, &current.cache_heads);
        if let Some(at) = saved
            .iter()
            .zip(here)
            .position(|(saved, here)| saved != here)
        {
            return format!(
                "cache {at} was {}..., here it is {}...",
                saved[at], here[at]
            );
        }
        if saved.len() == here.len() {
            return format!(
                "the first {} look alike, one of the others is not",
                saved.len()
            );
        }
        let count = |heads: &[String]| match heads.len() {
            CACHE_HEADS => format!("{CACHE_HEADS} or more"),
            fewer => fewer.to_string(),
        };
        format!(
            "{} saved, {} here; those of both are alike",
            count(saved),
            count(here)
        )
    }

    /// Where the stream was, for the dataset that goes on.
    pub fn progress(&self) -> StreamProgress {
        StreamProgress {
            window_start: self.window_start,
            window_len: self.window_len,
            delivered: self.delivered,
            next: self.next,
            epoch_len: self.epoch_len,
        }
    }

    fn validate(&self) -> Result<(), PositionError> {
        let refused = |key, message| Err(PositionError::Value { key, message });
        if self.rows == 0 || self.rows > MAX_ROWS {
            return refused(
                "rows",
                format!("is {}, allowed are 1 to {MAX_ROWS}", self.rows),
            );
        }
        let end = match window_end(self.window_start, self.window_len) {
            Ok(end) => end,
            Err(error) => return refused("window_len", format!("is too large: {error}")),
        };
        if self.delivered > self.window_len {
            let len = self.window_len;
            return refused(
                "delivered",
                format!("is {}, at most window_len {len}", self.delivered),
            );
        }
        if self.next < end || window_end(self.next, 0).is_err() {
            return refused(
                "next",
                format!("is {}, at least the window's end {end}", self.next),
            );
        }
        if let Some(len) = self.epoch_len.filter(|len| !(1..POSITIONS).contains(len)) {
            return refused(
                "epoch_len",
                format!("is {len}, allowed are 1 to {} or null", POSITIONS - 1),
            );
        }
        let heads = &self.cache_heads;
        let is_head = |head: &String| from_hex::<4>(head).is_some();
        if heads.is_empty() || heads.len() > CACHE_HEADS || !heads.iter().all(is_head) {
            let message = format!("must be 1 to {CACHE_HEADS} strings of 8 hexadecimal digits");
            return refused("cache_heads", message);
        }
        match (self.mode.uses_weights(), self.table.weights) {
            (true, None) => refused("table", "has no weights, which the mode uses".to_owned()),
            (false, Some(_)) => refused(
                "table",
                "has weights, which the mode doesn't use".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
