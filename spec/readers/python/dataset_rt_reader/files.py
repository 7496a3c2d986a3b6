"""Opening the files of a cache, and reading ranges of them, some under sums of blocks."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from .checksums import BLOCK_SIZE, crc32c
from .errors import CacheError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO
    from pathlib import Path
    from types import TracebackType

    from .manifest import FileInfo

_CHUNK = 1 << 20
_KEPT_BLOCKS = 64


class CacheFile:
    """One regular file of a cache, open for reads at any place.

    Reads from several threads are safe. A link that leads out of the cache's folder counts as
    missing unless ``follow_links``.
    """

    def __init__(self, root: Path, name: str, check: str, *, follow_links: bool = False) -> None:
        """Open ``root / name``; ``check`` names the check that its absence breaks."""
        self.name = name
        self._lock = Lock()
        self._file = _open_regular(root, name, check, follow_links=follow_links)
        self.size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> CacheFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back to the system."""
        self._file.close()

    def check_size(self, size: int) -> None:
        """Make check F2."""
        if self.size != size:
            detail = f"{self.size} bytes, but the manifest says {size}"
            raise CacheError(ErrorCode.FILE_SIZE, "F2", self.name, detail)

    def read(self, offset: int, length: int) -> bytes:
        """Read exactly the bytes of a range that the caller has checked against ``size``."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise ValueError(f"bytes {offset}..{offset + length} of {self.size} of {self.name}")
        with self._lock:
            self._file.seek(offset)
            data = self._file.read(length) or b""
            # One read of the system delivers at most 2 GiB.
            while len(data) < length and (more := self._file.read(length - len(data))):
                data += more
        if len(data) != length:
            detail = f"became shorter than {self.size} bytes while it was read"
            raise CacheError(ErrorCode.FILE_SIZE, "F2", self.name, detail)
        return data

    def pieces(self, offset: int, end: int) -> Iterator[bytes]:
        """Read bytes ``offset .. end`` in pieces of bounded size."""
        for at in range(offset, end, _CHUNK):
            yield self.read(at, min(_CHUNK, end - at))

    def is_zero(self, offset: int, end: int) -> bool:
        """Whether all bytes ``offset .. end`` are zero."""
        return not any(any(piece) for piece in self.pieces(offset, end))

    def check_whole(self, info: FileInfo, check: str) -> None:
        """Compare the whole file with the CRC, and the SHA-256 if any, of the manifest."""
        crc = 0
        digest = hashlib.sha256() if info.sha256 is not None else None
        for piece in self.pieces(0, self.size):
            crc = crc32c(piece, crc)
            if digest is not None:
                digest.update(piece)
        if crc != info.crc32c:
            detail = f"CRC {crc:08x}, but the manifest says {info.crc32c:08x}"
            raise CacheError(ErrorCode.CHECKSUM_MISMATCH, check, self.name, detail)
        if digest is not None and digest.hexdigest() != info.sha256:
            detail = f"SHA-256 {digest.hexdigest()}, but the manifest says {info.sha256}"
            raise CacheError(ErrorCode.CHECKSUM_MISMATCH, check, self.name, detail)


def _open_regular(root: Path, name: str, check: str, *, follow_links: bool) -> FileIO:
    path = root / name

    def missing(detail: str) -> CacheError:
        return CacheError(ErrorCode.FILE_MISSING, check, name, detail)

    try:
        # Before opening: opening a pipe waits, and opening a device may do anything.
        if not stat.S_ISREG(path.stat().st_mode):
            raise missing("isn't a regular file")
        if not follow_links and not path.resolve().is_relative_to(root.resolve()):
            raise missing("is a link that leads out of the cache's folder")
        file = path.open("rb", buffering=0)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise missing("isn't there") from error
    except (RuntimeError, ValueError) as error:
        # A loop of links, or a name that no file can have.
        raise missing(f"can't be found: {error}") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENAMETOOLONG}:
            raise missing(f"can't be found: {error}") from error
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise missing("isn't a regular file")
    return file


class CheckedBlocks:
    """A range of a file whose blocks of 65,536 bytes are checked before any of them is used.

    What was checked is what is delivered: blocks are kept in memory, the latest 64 of them.
    """

    def __init__(
        self,
        file: CacheFile,
        base: int,
        length: int,
        sums: Sequence[int],
        fault: Callable[[int, str], CacheError],
    ) -> None:
        """Cover bytes ``base .. base + length``; ``fault`` makes the error of a block."""
        self.file = file
        self.length = length
        self._base = base
        self._sums = sums
        self._fault = fault
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    def block(self, number: int) -> bytes:
        """Return one block whose sum was checked."""
        with self._lock:
            kept = self._kept.get(number)
            if kept is not None:
                self._kept.move_to_end(number)
                return kept
        start = number * BLOCK_SIZE
        data = self.file.read(self._base + start, min(BLOCK_SIZE, self.length - start))
        crc = crc32c(data)
        if crc != self._sums[number]:
            raise self._fault(number, f"CRC {crc:08x}, but its sum is {self._sums[number]:08x}")
        with self._lock:
            self._kept[number] = data
            while len(self._kept) > _KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return data

    def read(self, offset: int, length: int) -> bytes:
        """Read a range that the caller has checked against ``length``."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise ValueError(f"bytes {offset}..{offset + length} of {self.length}")
        if length == 0:
            return b""
        first, last = offset // BLOCK_SIZE, (offset + length - 1) // BLOCK_SIZE
        start = offset - first * BLOCK_SIZE
        if first == last:
            return self.block(first)[start : start + length]
        joined = b"".join(self.block(number) for number in range(first, last + 1))
        return joined[start : start + length]

    def check_all(self) -> None:
        """Check every block, in order."""
        for number in range(len(self._sums)):
            self.block(number)
