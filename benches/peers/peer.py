"""What an adapter of a library implements, and how the records of libraries are counted."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from benches.tally import Tally
from benches.workloads import SPLITS, Fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from benches.workloads import Workload

Record = TypeVar("Record")
Shuffle = Literal["all", "blocks", "buffer", "draws"]
"""How far a sample may travel: anywhere, with its block and inside it, or within a buffer.
"draws": with replacement, so that a pass misses some."""


class UnsupportedError(Exception):
    """The library has no such way to read. The message says what is missing."""


class Peer(ABC, Generic[Record]):
    """One library over one workload in one folder.

    `ordered`, `shuffled` and `weighted` give records of any kind; `count` is the timed loop over
    them, and touches the payload and the four fields; `plain` takes one apart, for checks.
    """

    shuffle: ClassVar[Shuffle] = "all"
    draws: ClassVar[str] = "NumPy"
    """Who draws the rows of a weighted pass: the library itself, or NumPy outside of it."""

    def __init__(self, folder: Path, workload: Workload) -> None:
        self.folder = folder
        self.workload = workload

    @abstractmethod
    def write(self) -> None:
        """Writes the workload into the folder, which is empty, and closes the files."""

    @abstractmethod
    def open(self) -> None:
        """Opens what was written."""

    @abstractmethod
    def ordered(self) -> Iterator[Record]:
        """One pass in the order of writing."""

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Record]:  # noqa: ARG002
        """These rows in this order."""
        raise UnsupportedError("no access by row")

    def shuffled(self, seed: int) -> Iterator[Record]:
        """One pass in the library's own random order; NumPy's where it has none."""
        return self.by_rows(np.random.default_rng(seed).permutation(self.workload.samples))

    def weighted(self, seed: int) -> Iterator[Record]:
        """As many records as there are samples, drawn by weight with replacement."""
        ends = np.cumsum(self.workload.weights)
        points: NDArray[np.float64] = np.random.default_rng(seed).random(self.workload.samples)
        rows = np.searchsorted(ends, points * ends[-1], side="right")
        return self.by_rows(np.minimum(rows, self.workload.samples - 1))

    def one(self, row: int) -> Record:  # noqa: ARG002
        """A single record, as a user asks for it."""
        raise UnsupportedError("no access by row")

    @staticmethod
    @abstractmethod
    def count(records: Iterable[Record]) -> Tally:
        """Touches payload and metadata of every record."""

    @staticmethod
    @abstractmethod
    def plain(record: Record) -> tuple[bytes, Fields]:
        """Payload and metadata of a record."""

    @classmethod
    def touch(cls, record: Record) -> object:
        """Touches payload and metadata of one record, at the least cost."""
        return cls.count([record])

    def rows_at_once(self, most: int, budget: int = 16 << 20) -> int:
        """How many rows a library that reads several should be asked for: `budget` bytes."""
        return max(1, min(most, budget // self.workload.payload_bytes))


class MappingPeer(Peer["Mapping[str, Any]"]):
    """Records are mappings of `data` and the four fields."""

    @staticmethod
    def count(records: Iterable[Mapping[str, Any]]) -> Tally:
        count = size = labels = 0
        for record in records:
            count += 1
            size += len(record["data"])
            labels += record["label"]
        return Tally(count, size, int(labels))

    @classmethod
    def touch(cls, record: Mapping[str, Any]) -> object:
        return record["data"], record["label"]

    @staticmethod
    def plain(record: Mapping[str, Any]) -> tuple[bytes, Fields]:
        return bytes(record["data"]), {
            "label": int(record["label"]),
            "score": float(record["score"]),
            "split": str(record["split"]),
            "flag": bool(record["flag"]),
        }


HEADER = struct.Struct("<qdBB")
"""Label, score, split and flag in front of the payload, for libraries whose records are bytes."""


def pack(data: bytes, fields: Fields) -> bytes:
    split = SPLITS.index(str(fields["split"]))
    return HEADER.pack(fields["label"], fields["score"], split, fields["flag"]) + data


def unpack(record: bytes) -> tuple[bytes, Fields]:
    label, score, split, flag = HEADER.unpack_from(record)
    fields: Fields = {"label": label, "score": score, "split": SPLITS[split], "flag": bool(flag)}
    return record[HEADER.size :], fields


class BytesPeer(Peer[bytes]):
    """Records are bytes, the fields packed in front; the loop builds their dictionary."""

    @staticmethod
    def count(records: Iterable[bytes]) -> Tally:
        count = size = labels = 0
        take_apart, header, splits = HEADER.unpack_from, HEADER.size, SPLITS
        for record in records:
            label, score, split, flag = take_apart(record)
            fields = {"label": label, "score": score, "split": splits[split], "flag": bool(flag)}
            count += 1
            size += len(record[header:])
            labels += fields["label"]
        return Tally(count, size, labels)

    @classmethod
    def touch(cls, record: bytes) -> object:
        return unpack(record)

    @staticmethod
    def plain(record: bytes) -> tuple[bytes, Fields]:
        return unpack(record)
