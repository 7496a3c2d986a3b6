"""Reads that must come from the disk: the product beside sixteen threads of positioned reads."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .measure import Case
from .product import Product, read_payload_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .limit import LimitModule
    from .workloads import Workload

THREADS = 16
RESIDENT_LIMIT = 0.05
LIBC = ctypes.CDLL(None, use_errno=True)
ALL_CACHES = Path("/proc/sys/vm/drop_caches")


class NotColdError(Exception):
    """The page cache keeps the files, whatever it is told."""


def drop(paths: Iterable[Path]) -> None:
    """Takes files out of the page cache; nobody may have them mapped."""
    gc.collect()
    files = [path for path in paths if path.is_file()]
    # Workers let go of the maps of the pass before a moment after its end.
    for patience in (0.0, 0.1, 0.5, 2.0):
        time.sleep(patience)
        for path in files:
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if max(map(resident, files)) <= RESIDENT_LIMIT:
            return
        # Needs to be root; other files suffer too.
        with contextlib.suppress(OSError):
            ALL_CACHES.write_text("1", encoding="ascii")
        if max(map(resident, files)) <= RESIDENT_LIMIT:
            return
    raise NotColdError("files stay in the page cache: another process maps them, or it is tmpfs")


def resident(path: Path) -> float:
    """The share of the file's pages that are in the page cache. Asking brings none in."""
    size = path.stat().st_size
    if not size:
        return 0.0
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    # A private writable map: ctypes takes the address of nothing else.
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        start = ctypes.c_char.from_buffer(view)
        try:
            address = ctypes.c_void_p(ctypes.addressof(start))
            if LIBC.mincore(address, ctypes.c_size_t(size), pages):
                raise OSError(ctypes.get_errno(), "mincore")
        finally:
            del start
    return sum(page & 1 for page in pages) / len(pages)


class ColdFile:
    """The payloads in one file that is not kept open, nor mapped."""

    def __init__(self, workload: Workload, path: Path) -> None:
        self.path = path
        with path.open("wb", buffering=1 << 20) as file:
            for sample in workload.inputs():
                file.write(sample.data)
        self.lengths = workload.sizes
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.order = workload.permutation
        self.total = workload.total_bytes

    def read(self, module: LimitModule) -> float:
        """Samples a second of threads in C that read in random order and build nothing."""
        drop([self.path])
        with self.path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            start = time.perf_counter()
            total = module.read_all(file.fileno(), self.starts, self.lengths, self.order, THREADS)
            seconds = time.perf_counter() - start
        if total != self.total:
            message = f"{total} bytes read, expected {self.total}"
            raise RuntimeError(message)
        return len(self.order) / seconds


def cases(
    product: Product, workload: Workload, cache: Path, flat: ColdFile, module: LimitModule
) -> list[Case]:
    """A shuffled pass from the moment the cache is opened, payloads touched."""

    def ours() -> float:
        drop(cache.rglob("*"))
        start = time.perf_counter()
        found = read_payload_only(product.open(cache, "shuffled"))
        seconds = time.perf_counter() - start
        if found[:2] != (workload.samples, workload.total_bytes):
            message = f"a pass delivered {found}"
            raise RuntimeError(message)
        return workload.samples / seconds

    reader: Callable[[], float] = partial(flat.read, module)
    name = f"pread by {THREADS} threads"
    return [
        Case("shuffled, cold", name, reader),
        Case("shuffled, cold", "dataset_rt", ours, beside=(name,)),
    ]
