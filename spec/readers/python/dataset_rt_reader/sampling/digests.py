"""Digests of caches and table in a saved position (sampling.md section 11)."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PREFIX = b"dataset_rt table 1\0"


@dataclass(frozen=True)
class Run:
    """Consecutive rows of one cache with ascending samples and, if given, equal weights."""

    cache: int
    first: int
    count: int
    weight_bits: int | None


def caches_digest(identities: Iterable[bytes]) -> str:
    """Return the digest of the loaded caches, in order, as 64 digits."""
    return hashlib.sha256(b"".join(identities)).hexdigest()


def table_runs(
    rows: Sequence[tuple[int, int]], weights: Sequence[float] | None = None
) -> list[Run]:
    """Cut rows of ``(cache, sample)`` into runs; weights part them where they are given."""
    runs: list[Run] = []
    for i, (cache, sample) in enumerate(rows):
        bits = None
        if weights is not None:
            (bits,) = struct.unpack("<Q", struct.pack("<d", weights[i]))
        if runs:
            run = runs[-1]
            if (run.cache, run.first + run.count, run.weight_bits) == (cache, sample, bits):
                runs[-1] = replace(run, count=run.count + 1)
                continue
        runs.append(Run(cache, sample, 1, bits))
    return runs


def table_digest(runs: Iterable[Run]) -> str:
    """Return the rows digest, or the weights digest of runs that have weights, as 64 digits."""
    digest = hashlib.sha256(_PREFIX)
    for run in runs:
        digest.update(struct.pack("<QQQ", run.cache, run.first, run.count))
        if run.weight_bits is not None:
            digest.update(struct.pack("<Q", run.weight_bits))
    return digest.hexdigest()
