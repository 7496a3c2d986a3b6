//! What a power cut may leave of a sequence of changes.
//!
//! The rules are weaker than those of any journaling file system, so what holds here holds there:
//! - a file has what was written before its last sync; of each later write all, a first part or nothing is kept, and
//!   what is missing in front of something kept is zeros;
//! - an entry of a directory is certain once that directory was synced; each later change of entries is kept or lost
//!   for itself, whatever became of earlier ones. A rename or swap is kept or lost as one, and is certain once the
//!   directory of its new name (of a swap: of either) was synced;
//! - a synced file or directory is not reachable for that: each directory above must have its entry.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dataset_rt_runtime::fault::Change;

/// A change, with paths below the root of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    CreateDir(PathBuf),
    CreateFile(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    SyncFile(PathBuf),
    SyncDir(PathBuf),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    RemoveDir(PathBuf),
}

impl Step {
    /// The step that was recorded, if it was below `root`.
    pub fn of(change: &Change<'_>, root: &Path) -> Option<Self> {
        let below = |path: &Path| path.strip_prefix(root).ok().map(Path::to_path_buf);
        Some(match *change {
            Change::CreateDir { path } => Self::CreateDir(below(path)?),
            Change::CreateFile { path } => Self::CreateFile(below(path)?),
            Change::Write {
                path,
                offset,
                bytes,
            } => Self::Write(below(path)?, offset, bytes.to_vec()),
            Change::SyncFile { path } => Self::SyncFile(below(path)?),
            Change::SyncDir { path } => Self::SyncDir(below(path)?),
            Change::Rename { from, to } => Self::Rename(below(from)?, below(to)?),
            Change::Exchange { first, second } => Self::Exchange(below(first)?, below(second)?),
            Change::RemoveFile { path } => Self::RemoveFile(below(path)?),
            Change::RemoveDir { path } => Self::RemoveDir(below(path)?),
            _ => panic!("a change that the model does not know: {change:?}"),
        })
    }

    pub fn is_sync(&self) -> bool {
        matches!(self, Self::SyncFile(_) | Self::SyncDir(_))
    }
}

/// Paths below a directory; `None`: a directory.
pub type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

type Id = usize;
const ROOT: Id = 0;

#[derive(Clone, Debug, Default)]
struct Node {
    is_dir: bool,
    synced: Vec<u8>,
    unsynced: Vec<(u64, Vec<u8>)>,
}

#[derive(Clone, Debug)]
struct EntryChange {
    entries: Vec<((Id, String), Option<Id>)>,
    /// A sync of one of these makes it certain.
    folders: Vec<Id>,
    certain: bool,
}

type Entries = BTreeMap<(Id, String), Id>;

/// What became of the bytes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    Lost,
    Kept,
    /// The lengths were kept, the contents not.
    Zeros,
    /// Each write for itself.
    Torn(u64),
}

/// One outcome of a power cut: which of the uncertain changes of entries were kept, and what of the bytes.
#[derive(Clone, Debug)]
pub struct Cut {
    pub kept: Vec<bool>,
    pub bytes: Bytes,
}

/// The disk while changes come in.
#[derive(Clone, Debug)]
pub struct Disk {
    nodes: Vec<Node>,
    before: Entries,
    seen: Entries,
    changes: Vec<EntryChange>,
}

impl Disk {
    /// A disk with these paths on it, all of them certain.
    pub fn new(tree: &Tree) -> Self {
        let root = Node {
            is_dir: true,
            ..Node::default()
        };
        let mut disk = Self {
            nodes: vec![root],
            before: Entries::new(),
            seen: Entries::new(),
            changes: Vec::new(),
        };
        // Parents come first in this order.
        for (path, content) in tree {
            let place = disk.place(path);
            disk.nodes.push(Node {
                is_dir: content.is_none(),
                synced: content.clone().unwrap_or_default(),
                unsynced: Vec::new(),
            });
            let id = disk.nodes.len() - 1;
            disk.seen.insert(place.clone(), id);
            disk.before.insert(place, id);
        }
        disk
    }

    fn find(&self, path: &Path) -> Id {
        path.components().fold(ROOT, |folder, part| {
            let name = part.as_os_str().to_str().unwrap().to_owned();
            let entry = (folder, name);
            *self
                .seen
                .get(&entry)
                .unwrap_or_else(|| panic!("{} is not there", path.display()))
        })
    }

    fn place(&self, path: &Path) -> (Id, String) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (self.find(path.parent().unwrap()), name)
    }

    fn change(&mut self, entries: Vec<((Id, String), Option<Id>)>, folders: Vec<Id>) {
        for (place, id) in &entries {
            match id {
                Some(id) => self.seen.insert(place.clone(), *id),
                None => self.seen.remove(place),
            };
        }
        self.changes.push(EntryChange {
            entries,
            folders,
            certain: false,
        });
    }

    fn create(&mut self, path: &Path, is_dir: bool) {
        let place = self.place(path);
        assert!(!self.seen.contains_key(&place), "{}", path.display());
        self.nodes.push(Node {
            is_dir,
            ..Node::default()
        });
        let folder = place.0;
        self.change(vec![(place, Some(self.nodes.len() - 1))], vec![folder]);
    }

    fn remove(&mut self, path: &Path) {
        let place = self.place(path);
        let folder = place.0;
        self.change(vec![(place, None)], vec![folder]);
    }

    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::CreateDir(path) => self.create(path, true),
            Step::CreateFile(path) => self.create(path, false),
            Step::RemoveFile(path) | Step::RemoveDir(path) => self.remove(path),
            Step::Write(path, offset, bytes) => {
                let id = self.find(path);
                self.nodes[id].unsynced.push((*offset, bytes.clone()));
            }
            Step::SyncFile(path) => {
                let id = self.find(path);
                let node = &mut self.nodes[id];
                for (offset, bytes) in std::mem::take(&mut node.unsynced) {
                    put(&mut node.synced, offset, &bytes);
                }
            }
            Step::SyncDir(path) => {
                let id = self.find(path);
                for change in &mut self.changes {
                    change.certain |= change.folders.contains(&id);
                }
            }
            Step::Rename(from, to) => {
                let id = self.find(from);
                let (from, to) = (self.place(from), self.place(to));
                let folder = to.0;
                self.change(vec![(from, None), (to, Some(id))], vec![folder]);
            }
            Step::Exchange(first, second) => {
                let ids = (self.find(first), self.find(second));
                let (first, second) = (self.place(first), self.place(second));
                let folders = vec![first.0, second.0];
                let entries = vec![(first, Some(ids.1)), (second, Some(ids.0))];
                self.change(entries, folders);
            }
        }
    }

    /// Changes of entries that a power cut now may keep or lose.
    pub fn uncertain(&self) -> usize {
        self.changes.iter().filter(|change| !change.certain).count()
    }

    /// Whether a file below `path`, as the running system sees it, has bytes that were not synced, or a directory
    /// entries.
    pub fn is_synced_below(&self, path: &Path, except: &str) -> bool {
        let mut folders = vec![self.find(path)];
        while let Some(folder) = folders.pop() {
            for ((parent, name), id) in &self.seen {
                if *parent != folder || name == except {
                    continue;
                }
                if !self.nodes[*id].unsynced.is_empty() {
                    return false;
                }
                if self.nodes[*id].is_dir {
                    folders.push(*id);
                    let open = |change: &EntryChange| {
                        !change.certain && change.entries.iter().any(|((at, _), _)| at == id)
                    };
                    if self.changes.iter().any(open) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The disk after a power cut.
    pub fn after(&self, cut: &Cut) -> Image<'_> {
        let mut entries = self.before.clone();
        let mut kept = cut.kept.iter();
        for change in &self.changes {
            if change.certain || *kept.next().unwrap() {
                for (place, id) in &change.entries {
                    match id {
                        Some(id) => entries.insert(place.clone(), *id),
                        None => entries.remove(place),
                    };
                }
            }
        }
        Image {
            disk: self,
            entries,
            bytes: cut.bytes,
        }
    }

    /// Outcomes of a power cut now: all combinations of uncertain changes up to `most` of them; of more all that have
    /// or lack one of them or all behind one, and `most * 8` mixed ones.
    pub fn cuts(&self, most: usize, seed: u64) -> Vec<Cut> {
        let n = self.uncertain();
        let mut choices: Vec<Vec<bool>> = Vec::new();
        if n <= most {
            for bits in 0..1_u64 << n {
                choices.push((0..n).map(|i| bits >> i & 1 == 1).collect());
            }
        } else {
            for at in 0..=n {
                choices.push((0..n).map(|i| i < at).collect());
                choices.push((0..n).map(|i| i == at).collect());
                choices.push((0..n).map(|i| i != at).collect());
            }
            let mut random = Random(seed);
            for _ in 0..most * 8 {
                choices.push((0..n).map(|_| random.draw() & 1 == 1).collect());
            }
        }
        let uncertain_bytes = self.nodes.iter().any(|node| !node.unsynced.is_empty());
        let contents = [Bytes::Lost, Bytes::Kept, Bytes::Zeros, Bytes::Torn(seed)];
        let contents = &contents[..if uncertain_bytes { 4 } else { 1 }];
        let cut = |kept: &Vec<bool>, bytes| Cut {
            kept: kept.clone(),
            bytes,
        };
        choices
            .iter()
            .flat_map(|kept| contents.iter().map(move |bytes| cut(kept, *bytes)))
            .collect()
    }
}

/// What is on the disk after a power cut.
pub struct Image<'a> {
    disk: &'a Disk,
    entries: Entries,
    bytes: Bytes,
}

impl Image<'_> {
    fn find(&self, path: &Path) -> Option<Id> {
        path.components().try_fold(ROOT, |folder, part| {
            let name = part.as_os_str().to_str().unwrap().to_owned();
            self.entries.get(&(folder, name)).copied()
        })
    }

    fn children(&self, id: Id) -> impl Iterator<Item = (&str, Id)> {
        self.entries
            .range((id, String::new())..(id + 1, String::new()))
            .map(|((_, name), child)| (name.as_str(), *child))
    }

    fn content(&self, id: Id) -> Vec<u8> {
        let node = &self.disk.nodes[id];
        let mut bytes = node.synced.clone();
        let mut random = Random(match self.bytes {
            Bytes::Torn(seed) => seed ^ id as u64,
            _ => 0,
        });
        for (offset, written) in &node.unsynced {
            match self.bytes {
                Bytes::Lost => {}
                Bytes::Kept => put(&mut bytes, *offset, written),
                Bytes::Zeros => put(&mut bytes, *offset, &vec![0; written.len()]),
                Bytes::Torn(_) => {
                    let len = written.len() as u64;
                    let part = match random.draw() % 3 {
                        0 => 0,
                        1 => len,
                        _ => random.draw() % (len + 1),
                    };
                    if part > 0 {
                        let part = usize::try_from(part).unwrap();
                        put(&mut bytes, *offset, &written[..part]);
                    }
                }
            }
        }
        bytes
    }

    /// What stands at a path: its tree, or `None` where nothing does.
    pub fn tree(&self, path: &Path) -> Option<Tree> {
        let mut tree = Tree::new();
        let mut folders = vec![(self.find(path)?, PathBuf::new())];
        while let Some((folder, below)) = folders.pop() {
            for (name, id) in self.children(folder) {
                let path = below.join(name);
                if self.disk.nodes[id].is_dir {
                    tree.insert(path.clone(), None);
                    folders.push((id, path));
                } else {
                    tree.insert(path, Some(self.content(id)));
                }
            }
        }
        Some(tree)
    }

    /// Names in a directory; none where it is not there.
    pub fn names(&self, path: &Path) -> Vec<String> {
        self.find(path).map_or_else(Vec::new, |id| {
            self.children(id).map(|(name, _)| name.to_owned()).collect()
        })
    }
}

/// Makes a tree for real below `root`.
pub fn build(tree: &Tree, root: &Path) {
    for (path, content) in tree {
        let path = root.join(path);
        match content {
            None => fs::create_dir(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
    let start = usize::try_from(offset).unwrap();
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(written);
}

/// Numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}
