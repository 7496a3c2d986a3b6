//! Small whole caches: those of the specification's vectors.

use std::fs;
use std::path::{Path, PathBuf};

use dataset_rt_format::{CacheFiles, FormatError};

/// The vectors that are damaged: every codec, type and layout, a few hundred bytes to a few KiB a file.
const NAMES: [&str; 9] = [
    "minimal",
    "two-parts",
    "lz4-mixed",
    "lz4-by-hand",
    "nullable",
    "all-types",
    "empty-payloads",
    "many-batches",
    "pyarrow-metadata",
];

/// Files by their paths below the cache's folder; the manifest is the first. `None`: there is none.
pub type Files = Vec<(String, Option<Vec<u8>>)>;

/// A whole cache.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The vector's name.
    pub name: &'static str,
    /// Its files.
    pub files: Files,
}

/// The caches, in the order of the first byte of an input.
pub fn load_all() -> Vec<Cache> {
    NAMES.into_iter().map(load).collect()
}

/// One of the vectors.
///
/// # Panics
/// If there is no such vector.
pub fn load(name: &'static str) -> Cache {
    let folder: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../spec/vectors/v1/valid",
        name,
        "cache",
    ]
    .iter()
    .collect();
    let read = |path: &Path| Some(fs::read(folder.join(path)).expect("a file of the vector"));
    let mut files: Files = ["manifest.json", "index.bin", "metadata.arrow"]
        .map(|path| (path.to_owned(), read(Path::new(path))))
        .to_vec();
    let mut shards: Vec<_> = fs::read_dir(folder.join("shards"))
        .expect("shards of the vector")
        .map(|entry| {
            entry
                .expect("a shard")
                .file_name()
                .into_string()
                .expect("a name of ASCII")
        })
        .map(|name| format!("shards/{name}"))
        .collect();
    shards.sort();
    files.extend(
        shards
            .into_iter()
            .map(|path| (path.clone(), read(Path::new(&path)))),
    );
    Cache { name, files }
}

/// Files of a cache that never was on a disk.
pub struct InMemory<'a>(pub &'a Files);

impl InMemory<'_> {
    fn find(&self, path: &str) -> Option<&[u8]> {
        self.0.iter().find(|(name, _)| name == path)?.1.as_deref()
    }
}

impl<'a> CacheFiles for InMemory<'a> {
    type Bytes = &'a [u8];
    type Error = (String, FormatError);

    fn size(&self, path: &str) -> Result<Option<u64>, Self::Error> {
        Ok(self.find(path).map(|bytes| bytes.len() as u64))
    }

    fn read(&self, path: &str) -> Result<Self::Bytes, Self::Error> {
        let found = self.0.iter().find(|(name, _)| name == path);
        Ok(found
            .and_then(|(_, bytes)| bytes.as_deref())
            .unwrap_or_default())
    }

    fn refuse(&self, path: &str, error: FormatError) -> Self::Error {
        (path.to_owned(), error)
    }
}
