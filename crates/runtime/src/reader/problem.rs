//! What is wrong with a cache, as a list.

use std::ops::Range;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Problems that a report lists; more are counted.
pub const MAX_PROBLEMS: usize = 10_000;

/// One thing that is wrong with a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file concerned.
    pub path: PathBuf,
    /// The error code of the specification.
    pub code: &'static str,
    /// What was found and what was expected.
    pub message: String,
    /// Where in the file, as far as known.
    pub offset: Option<u64>,
    /// Samples that can't be read because of this, ascending.
    pub lost: Vec<Range<u64>>,
}

impl Problem {
    /// Adds a sample above those that are there already.
    pub(crate) fn lose(&mut self, sample: u64) {
        match self.lost.last_mut() {
            Some(last) if last.end == sample => last.end += 1,
            Some(last) if last.contains(&sample) => {}
            _ => self.lost.push(sample..sample + 1),
        }
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) list: Vec<Problem>,
    /// Problems that are not in the list.
    pub(crate) omitted: u64,
}

impl Problems {
    /// Takes note of a damage. Which samples it costs is `lost`, as far as known.
    ///
    /// # Errors
    /// What is no damage, but keeps from looking for it.
    pub(crate) fn add(&mut self, error: Error, lost: Range<u64>) -> Result<()> {
        let message = error.to_string();
        let Error::Damaged {
            path,
            offset,
            source,
            ..
        } = error
        else {
            return Err(error);
        };
        if self.list.len() >= MAX_PROBLEMS {
            self.omitted += 1;
            return Ok(());
        }
        self.list.push(Problem {
            path,
            code: source.code(),
            message,
            offset,
            lost: if lost.is_empty() { vec![] } else { vec![lost] },
        });
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.list.len() as u64 + self.omitted
    }
}
