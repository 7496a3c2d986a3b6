"""Opening a cache and reading samples from it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from .files import CacheFile
from .index import Index
from .manifest import NAME as MANIFEST
from .manifest import Manifest, parse_manifest
from .metadata import Metadata
from .sampling.stream import DrawStream, Mode
from .shard import Shard

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from .manifest import Field
    from .metadata import Value

_OPEN_SHARDS = 32


@dataclass(frozen=True)
class Sample:
    """One sample: its number, its payload, its metadata by field name."""

    index: int
    payload: bytes
    metadata: dict[str, Value]


def read_manifest(root: Path, *, follow_links: bool = False) -> Manifest:
    """Make the checks M1 .. M15 and return the manifest of the cache in folder ``root``."""
    with CacheFile(root, MANIFEST, "M1", follow_links=follow_links) as file:
        return parse_manifest(file.read(0, file.size))


class Cache:
    """A cache that was opened: the checks M, F of two files, and those of opening of I and A.

    What a sample needs is checked when it is read; :func:`dataset_rt_reader.verify` checks
    everything. Use it as a context manager, or call :meth:`close`. Reads from several threads
    are safe.

    Args:
        path: the cache's folder.
        follow_links: whether files may be links that lead out of the folder.

    Raises:
        CacheError: the cache is refused; from every method that reads.
        OSError: the operating system refused to read a file that is there.

    """

    def __init__(self, path: str | os.PathLike[str], *, follow_links: bool = False) -> None:
        self.root = Path(path)
        self._follow_links = follow_links
        self.manifest = read_manifest(self.root, follow_links=follow_links)
        self._shards: OrderedDict[int, Shard] = OrderedDict()
        self._lock = Lock()
        self._files: list[CacheFile] = []
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        manifest = self.manifest
        for info in (manifest.metadata, manifest.index):
            file = CacheFile(self.root, info.name, "F1", follow_links=self._follow_links)
            self._files.append(file)
            file.check_size(info.size)
        metadata, index = self._files
        self._index = Index(index, manifest)
        self._metadata = Metadata.open(metadata, manifest, self._index.metadata_sums)

    @property
    def identity(self) -> bytes:
        """The 32 bytes of the content's identity, as the manifest gives them."""
        return self.manifest.identity

    @property
    def fields(self) -> tuple[Field, ...]:
        """The metadata columns."""
        return self.manifest.fields

    def __len__(self) -> int:
        return self.manifest.samples

    def __getitem__(self, index: int) -> Sample:
        """Read a sample; negative numbers count from the end, as in a list."""
        number = self._number(index)
        return Sample(number, self.payload(number), self.row(number))

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples in order."""
        return (self[number] for number in range(len(self)))

    def payload(self, index: int) -> bytes:
        """Read the payload of a sample."""
        number = self._number(index)
        entry, raw_len = self._index.checked(number)
        with self._lock:
            return self._shard(entry.shard).payload(entry, raw_len, number)

    def row(self, index: int) -> dict[str, Value]:
        """Read the metadata of a sample, by field name; ``None`` is null."""
        values = self._metadata.row(self._number(index))
        return {field.name: v for field, v in zip(self.fields, values, strict=True)}

    def column(self, name: str) -> list[Value]:
        """Read the metadata of all samples in one field.

        Raises:
            KeyError: there is no such field.

        """
        for number, field in enumerate(self.fields):
            if field.name == name:
                return self._metadata.column(number, 0, len(self))
        raise KeyError(name)

    def arrow_table(self) -> Any:  # noqa: ANN401 - pyarrow is optional and has no types
        """Return all metadata as a ``pyarrow.Table``; needs the extra ``arrow``.

        The values come from this reader's own checked reads, never from bytes that the Arrow
        library was left to believe.
        """
        import pyarrow as pa  # noqa: PLC0415 - optional

        kinds = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
        schema = pa.schema(
            [
                pa.field(f.name, kinds.get(f.type.value, pa.string()), f.nullable)
                for f in self.fields
            ]
        )
        columns = [
            pa.array(self._metadata.column(number, 0, len(self)), type=field.type)
            for number, field in enumerate(schema)
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def window(
        self,
        mode: Mode | str,
        count: int | None = None,
        *,
        start: int = 0,
        seed: int = 0,
        stream: int = 0,
        weights: Sequence[float] | None = None,
    ) -> Iterator[Sample]:
        """Yield the samples of positions ``start .. start + count`` of the draw stream.

        The active table is every sample once, in order.

        Args:
            mode: one of the four modes of the sampling algorithm.
            count: length of the window; the number of samples if not given.
            start: first position.
            seed: 0 .. 2^64-1.
            stream: stream word, 0 .. 2^32-1.
            weights: one finite weight above zero a sample; all equal if not given.

        Raises:
            ValueError: an argument is out of range, before anything is yielded.

        """
        draws = DrawStream(Mode(mode), len(self), seed=seed, stream=stream, weights=weights)
        rows = draws.window(start, len(self) if count is None else count)
        return (self[row] for row in rows)

    def check(self) -> None:
        """Make the checks of use on every shard file.

        It costs little however large the cache is, and finds missing, short and foreign files,
        but no damage inside records.
        """
        for number in range(len(self.manifest.shards)):
            with self._lock:
                self._shard(number)

    def close(self) -> None:
        """Close all files; the cache can't be read afterwards."""
        with self._lock:
            for shard in self._shards.values():
                shard.file.close()
            self._shards.clear()
            for file in self._files:
                file.close()

    def __enter__(self) -> Cache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _number(self, index: int) -> int:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return number

    def _shard(self, number: int) -> Shard:
        """Return an open shard that was checked (F1, F2, S1 .. S5); the lock is held."""
        shard = self._shards.get(number)
        if shard is not None:
            self._shards.move_to_end(number)
            return shard
        info = self.manifest.shards[number]
        file = CacheFile(self.root, info.path, "F1", follow_links=self._follow_links)
        try:
            shard = Shard(file, info, self.manifest)
        except BaseException:
            file.close()
            raise
        self._shards[number] = shard
        while len(self._shards) > _OPEN_SHARDS:
            _, oldest = self._shards.popitem(last=False)
            oldest.file.close()
        return shard
