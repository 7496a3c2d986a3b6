//! The names that stand in a base folder, to tell which of them could be the folder of a source on some file system.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::writer::names::fold_source_name;
use crate::writer::target::{Target, inspect};

/// A listing of this many entries more serves one more source before the folder is listed again: else a call with as
/// many sources as the folder has caches would look at their square.
const ENTRIES_PER_USE: usize = 64;

/// A listing of a base folder by the folded names. Of a small folder it is always fresh.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    by_fold: HashMap<String, Vec<String>>,
    uses_left: usize,
}

impl Neighbours {
    /// Another entry of `base` whose name could be the same folder as `name` on some file system, and that is of ours.
    /// What other processes stored there since the listing may be missed.
    ///
    /// # Errors
    /// [`Error::Io`] when `base` can't be listed.
    pub(crate) fn clash(
        &mut self,
        base: &Path,
        name: &str,
        cancel: &Cancel,
    ) -> Result<Option<String>> {
        if self.uses_left == 0 {
            self.list(base)?;
        }
        self.uses_left -= 1;
        let candidates = self.by_fold.get(&fold_source_name(name));
        for other in candidates.into_iter().flatten() {
            if other != name
                && matches!(
                    inspect(&base.join(other), false, cancel)?,
                    Target::Whole(..) | Target::Damaged(..) | Target::TooNew(_)
                )
            {
                return Ok(Some(other.clone()));
            }
        }
        Ok(None)
    }

    fn list(&mut self, base: &Path) -> Result<()> {
        let failed = |source| Error::io("list", base, source);
        self.by_fold.clear();
        let mut entries = 0;
        match fs::read_dir(base) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            listing => {
                for entry in listing.map_err(failed)? {
                    if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                        let folded = fold_source_name(&name);
                        self.by_fold.entry(folded).or_default().push(name);
                    }
                    entries += 1;
                }
            }
        }
        self.uses_left = 1 + entries / ENTRIES_PER_USE;
        Ok(())
    }
}
