"""What is measured: samples of several sizes, cut from one seeded pool of random bytes or text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataset_rt import CacheInput
    from numpy.typing import NDArray

Made = TypeVar("Made")

POOL_BYTES = 64 << 20
TEXT_POOL_BYTES = 16 << 20
WORDS = 20_000
FIELDS = ("label", "score", "split", "flag")
SPLITS = ("train", "validation", "test", "holdout")
CHUNK = 8_192
"""Rows that are turned into Python values at once by sources and loops."""


Fields: TypeAlias = dict[str, bool | int | float | str]
"""The metadata of one sample."""


class Sample(NamedTuple):
    """What the limit and the loops build for each row: the fields of a cached sample."""

    data: bytes
    metadata: Fields
    cache_id: int
    sample_id: int


@dataclass(frozen=True)
class Workload:
    """A number of samples of one mean payload size, with four metadata fields each.

    Random bytes of exactly that size, or `text`: words by Zipf's law, half to one and a half times
    that size.
    """

    name: str
    samples: int
    payload_bytes: int
    text: bool = False

    def __str__(self) -> str:
        size = self.payload_bytes
        text = f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
        kind = " of text" if self.text else ""
        mean = "about " if self.text else ""
        return (
            f"{self.name}: {self.samples:,} samples of {mean}{text}{kind}, "
            f"{self.total_bytes / 1e6:,.0f} MB"
        )

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        if not self.text:
            return np.full(self.samples, self.payload_bytes, dtype=np.int64)
        half = self.payload_bytes // 2
        return np.random.default_rng(6).integers(half, 3 * half + 1, self.samples, dtype=np.int64)

    @cached_property
    def total_bytes(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def pool(self) -> bytes:
        if self.text:
            return _words(TEXT_POOL_BYTES)
        return np.random.default_rng(1).bytes(min(POOL_BYTES, max(4 << 20, self.total_bytes)))

    @cached_property
    def pool_starts(self) -> NDArray[np.int64]:
        """Where in the pool each payload begins; neighbours don't overlap, so a source reads on."""
        longest = int(self.sizes.max())
        step, room = longest + 3, len(self.pool) - longest
        starts: NDArray[np.int64] = (np.arange(self.samples, dtype=np.int64) * step) % room
        return starts

    @cached_property
    def columns(self) -> Columns:
        random, count = np.random.default_rng(2), self.samples
        return Columns(
            label=random.integers(0, 1000, count, dtype=np.int64),
            score=random.random(count),
            split=random.integers(0, len(SPLITS), count, dtype=np.uint8),
            flag=random.random(count) < 0.5,
        )

    @cached_property
    def permutation(self) -> NDArray[np.int64]:
        return np.random.default_rng(3).permutation(self.samples).astype(np.int64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        return np.random.default_rng(4).random(self.samples) + 0.01

    @cached_property
    def weighted_rows(self) -> NDArray[np.int64]:
        """As many rows as there are samples, drawn by weight with replacement."""
        ends = np.cumsum(self.weights)
        points: NDArray[np.float64] = np.random.default_rng(5).random(self.samples) * ends[-1]
        rows = np.searchsorted(ends, points, side="right")
        return np.minimum(rows, self.samples - 1).astype(np.int64, copy=False)

    def payload(self, row: int) -> bytes:
        start = int(self.pool_starts[row])
        return self.pool[start : start + int(self.sizes[row])]

    def fields(self, row: int) -> Fields:
        """The metadata of one sample, as Python values."""
        [label], [score], [split], [flag] = self.columns.lists(slice(row, row + 1))
        return {"label": label, "score": score, "split": split, "flag": flag}

    def made(self, make: Callable[[bytes, Fields], Made]) -> Iterator[Made]:
        """All samples, each as `make` of its payload and metadata."""
        pool = self.pool
        for first in range(0, self.samples, CHUNK):
            rows = slice(first, first + CHUNK)
            starts, sizes = self.pool_starts[rows].tolist(), self.sizes[rows].tolist()
            for start, size, label, score, split, flag in zip(
                starts, sizes, *self.columns.lists(rows), strict=True
            ):
                metadata: Fields = {"label": label, "score": score, "split": split, "flag": flag}
                yield make(pool[start : start + size], metadata)

    def inputs(self) -> Iterator[CacheInput]:
        """All samples, as a source yields them."""
        from dataset_rt import CacheInput  # noqa: PLC0415  # peers run where it is not installed

        return self.made(CacheInput)


@dataclass(frozen=True)
class Columns:
    """The four metadata fields of all samples; `split` holds positions in `SPLITS`."""

    label: NDArray[np.int64]
    score: NDArray[np.float64]
    split: NDArray[np.uint8]
    flag: NDArray[np.bool_]

    def lists(
        self, rows: slice | NDArray[np.int64]
    ) -> tuple[list[int], list[float], list[str], list[bool]]:
        """Some rows as Python values."""
        return (
            self.label[rows].tolist(),
            self.score[rows].tolist(),
            [SPLITS[code] for code in self.split[rows].tolist()],
            self.flag[rows].tolist(),
        )


@dataclass
class Source:
    """A workload as the writer takes it."""

    workload: Workload
    name: str

    def __iter__(self) -> Iterator[CacheInput]:
        return self.workload.inputs()


def _words(length: int) -> bytes:
    """Text of words by Zipf's law: the n-th most frequent of 20,000 has a share of about 1/n."""
    random = np.random.default_rng(8)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
    lengths = random.integers(2, 11, WORDS).tolist()
    vocabulary = [random.choice(letters, size).tobytes() for size in lengths]
    ends = np.cumsum(1.0 / np.arange(1, WORDS + 1))
    # Three bytes a word, with its space, are the least there can be.
    points: NDArray[np.float64] = random.random(length // 3) * ends[-1]
    numbers = np.searchsorted(ends, points, side="right").tolist()
    return b" ".join([vocabulary[number] for number in numbers])[:length]


def workloads(*, quick: bool) -> dict[str, Workload]:
    """The workloads by name; `quick` ones only show that everything runs."""
    shapes = {
        "W1": (200_000, 1024, False),
        "W2": (20_000, 100 * 1024, False),
        "W3": (1_000_000, 128, False),
        "W1T": (200_000, 1024, True),
    }
    share = 50 if quick else 1
    return {
        name: Workload(name, count // share, size, text)
        for name, (count, size, text) in shapes.items()
    }
