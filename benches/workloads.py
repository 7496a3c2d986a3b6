"""What is measured: three sizes of samples, made from one seeded pool of random bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from dataset_rt import CacheInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

POOL_BYTES = 64 << 20
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
    """A number of samples of one payload size, with four metadata fields each."""

    name: str
    samples: int
    payload_bytes: int

    def __str__(self) -> str:
        size = self.payload_bytes
        text = f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
        return f"{self.name}: {self.samples:,} samples of {text}, {self.total_bytes / 1e6:,.0f} MB"

    @property
    def total_bytes(self) -> int:
        return self.samples * self.payload_bytes

    @cached_property
    def pool(self) -> bytes:
        return np.random.default_rng(1).bytes(min(POOL_BYTES, max(4 << 20, self.total_bytes)))

    @cached_property
    def pool_starts(self) -> NDArray[np.int64]:
        """Where in the pool each payload begins; neighbours don't overlap, so a source reads on."""
        step = self.payload_bytes + 3
        room = len(self.pool) - self.payload_bytes
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

    def inputs(self) -> Iterator[CacheInput]:
        """All samples, as a source yields them."""
        pool, size = self.pool, self.payload_bytes
        for first in range(0, self.samples, CHUNK):
            rows = slice(first, first + CHUNK)
            starts = self.pool_starts[rows].tolist()
            for start, label, score, split, flag in zip(
                starts, *self.columns.lists(rows), strict=True
            ):
                metadata: Fields = {"label": label, "score": score, "split": split, "flag": flag}
                yield CacheInput(pool[start : start + size], metadata)


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


def workloads(*, quick: bool) -> dict[str, Workload]:
    """The workloads by name; `quick` ones only show that everything runs."""
    shapes = {"W1": (200_000, 1024), "W2": (20_000, 100 * 1024), "W3": (1_000_000, 128)}
    share = 50 if quick else 1
    return {name: Workload(name, count // share, size) for name, (count, size) in shapes.items()}
