//! The order of shards, and whether one is missing.

use super::header::ShardHeader;
use super::trailer::ShardTrailer;
use crate::error::FormatError;

/// What the order of shards depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// The ordinal of the task that wrote the shard.
    pub part: u64,
    /// Position of the shard in its part.
    pub ordinal: u32,
    /// Samples of this part in earlier shards.
    pub first: u64,
    /// The number of records.
    pub count: u64,
    /// Whether this is the last shard of its part.
    pub last: bool,
}

impl ChainLink {
    /// The link of a shard with this header and trailer.
    #[must_use]
    pub fn new(header: &ShardHeader, trailer: &ShardTrailer) -> Self {
        Self {
            part: header.part,
            ordinal: header.ordinal,
            first: header.first,
            count: trailer.count,
            last: trailer.last,
        }
    }

    /// Shards of a cache are in this order.
    #[must_use]
    pub fn key(&self) -> (u64, u32) {
        (self.part, self.ordinal)
    }
}

/// Checks that shards, in the order of [`ChainLink::key`], are all of their parts: each part counts its
/// shards from 0, each shard starts where the one before it ended, and exactly the last says so.
///
/// # Errors
/// [`FormatError::ShardChain`].
pub fn check_chain(links: &[ChainLink]) -> Result<(), FormatError> {
    let mut before: Option<&ChainLink> = None;
    for link in links {
        let rule = |field, found, allowed: u64| FormatError::ShardChain {
            part: link.part,
            ordinal: link.ordinal,
            field,
            found,
            allowed: allowed.to_string(),
        };
        // The shard before it in the same part; a part that ended has none.
        let same = before.filter(|before| before.part == link.part);
        if let Some(other) = before.filter(|before| before.part > link.part) {
            return Err(rule("part", link.part, other.part));
        }
        if let Some(open) = before.filter(|before| before.part != link.part && !before.last) {
            return Err(unfinished(open));
        }
        let ordinal = same.map_or(0, |same| u64::from(same.ordinal) + 1);
        if u64::from(link.ordinal) != ordinal {
            return Err(rule("ordinal", u64::from(link.ordinal), ordinal));
        }
        let first = same.map_or(0, |same| same.first.saturating_add(same.count));
        if link.first != first {
            return Err(rule("first", link.first, first));
        }
        if let Some(ended) = same.filter(|same| same.last) {
            return Err(FormatError::ShardChain {
                part: ended.part,
                ordinal: ended.ordinal,
                field: "last-of-part flag",
                found: 1,
                allowed: "0, since another shard of the part follows".to_owned(),
            });
        }
        before = Some(link);
    }
    match before {
        Some(open) if !open.last => Err(unfinished(open)),
        _ => Ok(()),
    }
}

fn unfinished(open: &ChainLink) -> FormatError {
    FormatError::ShardChain {
        part: open.part,
        ordinal: open.ordinal,
        field: "last-of-part flag",
        found: 0,
        allowed: "1, since no shard of the part follows".to_owned(),
    }
}
