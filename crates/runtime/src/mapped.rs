//! Read-only maps of files, and the guard that keeps a fault inside them from ending the process.
//!
//! A page of a map that can't be read (the file was truncated, the disk failed) raises SIGBUS in whatever thread
//! touches it. The guard's handler answers for addresses inside our own maps alone: it lays a page of zeros over the
//! fault and marks the map broken, so that whoever copied from it learns of it afterwards. Every other SIGBUS goes to
//! the handler that was there before, the default action included.
//!
//! Everything the handler reads is a static of atomics: no lock, no allocation.
//!
//! The guard is Linux code. Elsewhere, and whenever a map is refused, [`Map::new`] gives `None` and the caller reads
//! by position.
#![allow(unsafe_code)] // The maps of the runtime and their signal handler live here and nowhere else.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use memmap2::{Mmap, MmapOptions};

/// Most maps alive at once. The registry is fixed, since a signal handler reads it; the kernel's own default limit is
/// 65,530 maps a process.
const MAX_MAPS: usize = 16_384;

/// Marks a slot that is being filled in; never the address of a map.
const RESERVED: usize = 1;

struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

static SLOTS: [Slot; MAX_MAPS] = [const {
    Slot {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    }
}; MAX_MAPS];

/// Where the search for a free slot starts.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A read-only map of a whole file, known to the guard.
#[derive(Debug)]
pub(crate) struct Map {
    slot: usize,
    map: Mmap,
}

impl Map {
    /// Maps the first `len` bytes of a file, `None` where that is not to be had: the platform has no guard, the
    /// system refuses, the registry is full or `len` is 0.
    pub(crate) fn new(file: &File, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        if !ensure_guard() {
            return None;
        }
        let slot = reserve_slot()?;
        // SAFETY: the map is read-only. Published caches never change; bytes that change all the same, or vanish,
        // are met by checksums and by the guard, and no code relies on a byte of a map having one value twice.
        let map = unsafe { MmapOptions::new().len(len).map(file) };
        let Ok(map) = map else {
            SLOTS[slot].start.store(0, Ordering::Release);
            return None;
        };
        SLOTS[slot].len.store(map.len(), Ordering::Relaxed);
        SLOTS[slot].broken.store(false, Ordering::Relaxed);
        SLOTS[slot]
            .start
            .store(map.as_ptr() as usize, Ordering::Release);
        Some(Self { slot, map })
    }

    /// Whether a page of this map ever failed to load: then what was read from the map may be zeros.
    ///
    /// Ask AFTER copying.
    pub(crate) fn is_broken(&self) -> bool {
        // The handler marks the map before it lays down the zeros: whoever has read one finds the mark, as long as the
        // loads stay in their order.
        std::sync::atomic::fence(Ordering::Acquire);
        SLOTS[self.slot].broken.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The bytes of a range, `None` outside of the map.
    pub(crate) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        self.map.get(start..end)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // BEFORE the map goes: the address may belong to somebody else the moment after.
        SLOTS[self.slot].start.store(0, Ordering::Release);
    }
}

fn reserve_slot() -> Option<usize> {
    let hint = NEXT.load(Ordering::Relaxed);
    for step in 0..MAX_MAPS {
        let slot = (hint + step) % MAX_MAPS;
        let start = &SLOTS[slot].start;
        if start
            .compare_exchange(0, RESERVED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            NEXT.store(slot + 1, Ordering::Relaxed);
            return Some(slot);
        }
    }
    None
}

/// Takes SIGBUS back when somebody else took it. Cheap: one system call, to be called once a block or iterator.
///
/// False when there is no guard on this platform or the system refuses one.
#[cfg(target_os = "linux")]
pub(crate) fn ensure_guard() -> bool {
    guard::ensure()
}

/// There is no guard here, so there are no maps.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ensure_guard() -> bool {
    false
}

#[cfg(target_os = "linux")]
mod guard {
    use super::{AtomicBool, AtomicI32, AtomicUsize, Ordering, RESERVED, SLOTS};
    use libc::{c_int, c_void, siginfo_t};

    /// Handlers that stood where ours stands, oldest first. A process sees one or two.
    const MAX_PREVIOUS: usize = 8;

    struct Previous {
        handler: AtomicUsize,
        flags: AtomicI32,
    }

    static PREVIOUS: [Previous; MAX_PREVIOUS] = [const {
        Previous {
            handler: AtomicUsize::new(0),
            flags: AtomicI32::new(0),
        }
    }; MAX_PREVIOUS];
    static PREVIOUS_LEN: AtomicUsize = AtomicUsize::new(0);
    static INSTALLING: AtomicBool = AtomicBool::new(false);
    static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);

    /// How many earlier handlers are running now for a SIGBUS that is not ours. A handler that puts back the one
    /// before it (ours, from its view) and raises the signal again must not be called twice, or the two would call
    /// each other for ever: so each nested call goes one handler further back, and at last to the default action.
    static DEPTH: AtomicUsize = AtomicUsize::new(0);

    fn ours() -> usize {
        on_sigbus as *const () as usize
    }

    pub(super) fn ensure() -> bool {
        // SAFETY: all zero is a valid sigaction; a null action asks for the current one only.
        let current = unsafe {
            let mut current: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut current) != 0 {
                return false;
            }
            current
        };
        if current.sa_sigaction == ours() {
            return true;
        }
        if INSTALLING.swap(true, Ordering::Acquire) {
            // Another thread is at it; until it is done a fault is in the hands of the handler that is there.
            return true;
        }
        // SAFETY: sysconf reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE_SIZE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
        // BEFORE ours is installed, so that it never meets an empty list.
        remember(&current);
        // SAFETY: all zero is a valid sigaction to start from; the handler has the signature that SA_SIGINFO asks
        // for and does only what a signal handler may do.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ours();
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0
        };
        INSTALLING.store(false, Ordering::Release);
        installed
    }

    fn remember(action: &libc::sigaction) {
        let known = PREVIOUS_LEN.load(Ordering::Acquire);
        if PREVIOUS[..known]
            .iter()
            .any(|previous| previous.handler.load(Ordering::Relaxed) == action.sa_sigaction)
        {
            return;
        }
        // A ninth handler replaces the eighth: by then somebody installs a new one again and again.
        let place = known.min(MAX_PREVIOUS - 1);
        PREVIOUS[place]
            .flags
            .store(action.sa_flags, Ordering::Relaxed);
        PREVIOUS[place]
            .handler
            .store(action.sa_sigaction, Ordering::Relaxed);
        PREVIOUS_LEN.store(place + 1, Ordering::Release);
    }

    extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: errno belongs to this thread; the kernel passes a valid info to a SA_SIGINFO handler. A positive
        // code says that the kernel raised the signal for an address, and then si_addr is that address.
        unsafe {
            let errno = libc::__errno_location();
            let saved = *errno;
            let from_kernel = !info.is_null() && (*info).si_code > 0;
            let mended = from_kernel && mend((*info).si_addr() as usize);
            *errno = saved;
            if mended {
                return;
            }
        }
        pass_on(signal, info, context);
    }

    /// Lays zeros over the page of a fault inside one of our maps.
    fn mend(address: usize) -> bool {
        let page_size = PAGE_SIZE.load(Ordering::Relaxed);
        if page_size == 0 {
            return false;
        }
        let page = address & !(page_size - 1);
        for slot in &SLOTS {
            let start = slot.start.load(Ordering::Acquire);
            if start <= RESERVED || page < start {
                continue;
            }
            let len = slot.len.load(Ordering::Relaxed);
            if page - start >= len || slot.start.load(Ordering::Acquire) != start {
                continue;
            }
            slot.broken.store(true, Ordering::SeqCst);
            // SAFETY: the page lies in a map of ours that is alive, since the faulting thread is reading it. A
            // private page of zeros takes its place; the map's own unmapping covers the whole range later.
            let mapped = unsafe {
                libc::mmap(
                    page as *mut c_void,
                    page_size,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            return mapped != libc::MAP_FAILED;
        }
        false
    }

    fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let depth = DEPTH.fetch_add(1, Ordering::SeqCst);
        let known = PREVIOUS_LEN.load(Ordering::Acquire);
        let (handler, flags) = match known.checked_sub(depth + 1) {
            Some(place) => (
                PREVIOUS[place].handler.load(Ordering::Relaxed),
                PREVIOUS[place].flags.load(Ordering::Relaxed),
            ),
            None => (libc::SIG_DFL, 0),
        };
        // SAFETY: info is null or valid, see on_sigbus.
        let sent_by_somebody = !info.is_null() && unsafe { (*info).si_code } <= 0;
        if handler == libc::SIG_IGN && sent_by_somebody {
            DEPTH.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // The kernel does not let a fault be ignored either. Returning runs the faulting instruction again, now
            // under the default action; a signal that was sent has to be sent again.
            // SAFETY: all zero with SIG_DFL (0) is the default action; raise is allowed in a handler.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &default, std::ptr::null_mut());
                if sent_by_somebody {
                    libc::raise(signal);
                }
            }
            return;
        }
        // SAFETY: the kernel would have called this function with these arguments; its flags say which form it has.
        unsafe {
            if flags & libc::SA_SIGINFO != 0 {
                let call: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                call(signal, info, context);
            } else {
                let call: extern "C" fn(c_int) = std::mem::transmute(handler);
                call(signal);
            }
        }
        DEPTH.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    //! A file that shrinks under a map reads as zeros and marks the map; foreign faults go where they went before.
    use std::fs::File;
    use std::process::Command;

    use super::{Map, ensure_guard};

    /// Set in the child process of a test that must die.
    const CHILD: &str = "DATASET_RT_TEST_CHILD";

    fn truncated_map() -> Map {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7_u8; 64 * 1024]).unwrap();
        let map = Map::new(&File::open(&path).unwrap(), 64 * 1024).unwrap();
        assert_eq!(map.bytes()[10], 7);
        assert!(!map.is_broken());
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(4096)
            .unwrap();
        map
    }

    #[test]
    fn a_truncated_file_reads_as_zeros_and_is_marked() {
        let map = truncated_map();
        assert_eq!(map.bytes()[40_000], 0);
        assert!(map.is_broken());
        assert_eq!(map.bytes()[10], 7);
        assert!(map.bytes()[8192..].iter().all(|&byte| byte == 0));
        assert!(map.get(0..64 * 1024 + 1).is_none());
    }

    #[test]
    fn a_slot_is_free_again_and_clean() {
        for _ in 0..3 {
            drop(truncated_map());
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), b"x").unwrap();
        let map = Map::new(&File::open(dir.path().join("f")).unwrap(), 1).unwrap();
        assert!(!map.is_broken());
    }

    /// Touches a page beyond the end of a file, in a map that is not ours.
    fn foreign_fault() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * 1024).unwrap();
        // SAFETY: nobody relies on the bytes; the process is expected to end here.
        let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
        file.set_len(0).unwrap();
        println!("went on with {}", map[40_000]);
    }

    extern "C" fn put_back_and_raise(signal: libc::c_int) {
        // What a crash reporter does: restore the handler it found (here: ours), report, raise again.
        // SAFETY: a test; the guard is asked to install itself, write and raise are allowed in handlers.
        unsafe {
            ensure_guard();
            libc::write(1, b"reported\n".as_ptr().cast(), 9);
            libc::raise(signal);
        }
    }

    fn install(handler: usize) {
        // SAFETY: a test installs a handler of the plain form.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_NODEFER;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    }

    /// Runs one test of this binary in a process of its own.
    fn run_child(test: &str) -> (Option<i32>, String) {
        use std::os::unix::process::ExitStatusExt;
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        (
            output.status.signal(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    #[test]
    fn a_foreign_fault_reaches_the_earlier_handler_once_and_then_kills() {
        if std::env::var_os(CHILD).is_none() {
            let name =
                "mapped::tests::a_foreign_fault_reaches_the_earlier_handler_once_and_then_kills";
            let (signal, stdout) = run_child(name);
            assert_eq!(signal, Some(libc::SIGBUS), "{stdout}");
            assert_eq!(stdout.matches("reported").count(), 1, "{stdout}");
            return;
        }
        // The other handler comes first, then ours: it is the one before us.
        install(put_back_and_raise as *const () as usize);
        assert!(ensure_guard());
        assert_eq!(truncated_map().bytes()[40_000], 0);
        foreign_fault();
    }

    #[test]
    fn the_guard_comes_back_after_somebody_replaced_it() {
        if std::env::var_os(CHILD).is_none() {
            let name = "mapped::tests::the_guard_comes_back_after_somebody_replaced_it";
            let (signal, stdout) = run_child(name);
            assert_eq!(signal, Some(libc::SIGBUS), "{stdout}");
            assert!(stdout.contains("survived"), "{stdout}");
            assert_eq!(stdout.matches("reported").count(), 1, "{stdout}");
            return;
        }
        assert!(ensure_guard());
        install(put_back_and_raise as *const () as usize);
        assert!(ensure_guard());
        assert_eq!(truncated_map().bytes()[40_000], 0);
        println!("survived");
        foreign_fault();
    }
}
