"""Splits, draws and fingerprints in plain Python, written from their definitions."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import xxhash

from tests import oracle

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import polars as pl

WORD = 2**64 - 1
TAG_STEP = 0x9E3779B97F4A7C15

GROUP, SELECT, COUNTS, SHUFFLE, PER_CLASS, MIN_HASH, REPEAT = range(16, 23)
"""What the blocks of the generator are used for."""


def written(value: Any) -> tuple[int, bytes]:
    """Tag and bytes of a value of a key."""
    if value is None:
        return 5, b""
    if isinstance(value, str):
        return 0, value.encode()
    if isinstance(value, bool):
        return 3, bytes([value])
    if isinstance(value, int):
        return 1, (value & WORD).to_bytes(8, "little")
    if isinstance(value, bytes):
        return 2, value
    assert isinstance(value, dt.date)
    days = (value - dt.date(1970, 1, 1)).days
    return 4, (days & WORD).to_bytes(8, "little")


def key_hash(key: Sequence[Any], seed: int = 0) -> int:
    """The hash of a key of one value or more."""
    if len(key) == 1:
        tag, data = written(key[0])
    else:
        tag = 15
        data = b"".join(
            bytes([kind]) + len(piece).to_bytes(8, "little") + piece
            for kind, piece in map(written, key)
        )
    return int(xxhash.xxh3_64_intdigest(data, seed ^ (tag * TAG_STEP & WORD)))


def hashes(frame: pl.DataFrame, names: Sequence[str], seed: int = 0) -> list[int | None]:
    rows = frame.select(names).iter_rows()
    return [None if None in row else key_hash(row, seed) for row in rows]


def whole(values: Sequence[Any]) -> list[Any]:
    """The values, none of which may be null or NaN."""
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values):
        raise ValueError("null or NaN")
    return list(values)


def quotas(shares: Sequence[float]) -> list[int]:
    """Where parts end, of 2^64."""
    ends = []
    end = 0
    for share in shares:
        end = min(end + int(share * 2**64), 2**64)
        ends.append(end)
    ends[-1] = 2**64
    return ends


def part_of(number: int, ends: Sequence[int]) -> int:
    return next(part for part, end in enumerate(ends) if end > number)


def hash_parts(
    keys: Sequence[int | None], groups: Sequence[int | None] | None, shares: Sequence[float]
) -> list[int | None]:
    ends = quotas(shares)
    rows = (
        keys
        if groups is None
        else [key if group is None else group for key, group in zip(keys, groups, strict=True)]
    )
    return [None if row is None else part_of(row, ends) for row in rows]


def cut(values: Sequence[Any], ranks: Sequence[int]) -> list[int]:
    """How many of the ranks are reached by the number of smaller values."""
    smaller = {value: sum(other < value for other in values) for value in set(values)}
    return [sum(smaller[value] >= rank for rank in ranks) for value in values]


def stratified(
    labels: Sequence[int], keys: Sequence[int], ends: Sequence[int], total: int
) -> list[int]:
    behind = [0.0] * len(ends)
    parts = [0] * len(labels)
    for label in sorted(set(labels)):
        rows = [row for row, other in enumerate(labels) if other == label]
        counts, fractions, start = [], [], 0
        near = len(rows) << 12 if total == 2**64 else 0
        for part, end in enumerate(ends):
            count, rest = divmod(len(rows) * (end - start), total)
            start = end
            if total - rest < near:
                count, rest = count + 1, 0
            elif rest < near:
                rest = 0
            counts.append(count)
            fractions.append(rest / total)
            behind[part] += rest / total
        left = len(rows) - sum(counts)
        late = sorted(range(len(ends)), key=lambda part: (-behind[part], part))
        for part in [part for part in late if fractions[part] > 0][:left]:
            counts[part] += 1
            behind[part] -= 1.0
        ranks = [sum(counts[: part + 1]) for part in range(len(ends) - 1)]
        for row, part in zip(rows, cut([keys[row] for row in rows], ranks), strict=True):
            parts[row] = part
    return parts


def stratified_groups(
    labels: Sequence[int], groups: Sequence[int], ends: Sequence[int], total: int
) -> list[int]:
    widths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    sizes = Counter(labels)
    lacks = {label: [count * (width / total) for width in widths] for label, count in sizes.items()}
    rows_lacking = [(width / total) * len(labels) for width in widths]
    part_of_group: dict[int, int] = {}
    for group in sorted(set(groups)):
        own = Counter(label for label, other in zip(labels, groups, strict=True) if other == group)
        lack = [
            sum(lacks[label][part] * count for label, count in sorted(own.items()))
            for part in range(len(ends))
        ]
        best = max(range(len(ends)), key=lambda part: (lack[part], rows_lacking[part], -part))
        part_of_group[group] = best
        rows_lacking[best] -= own.total()
        for label, count in own.items():
            lacks[label][best] -= count
    return [part_of_group[group] for group in groups]


def ranks_of(shares: Sequence[float], rows: int) -> list[int]:
    return [(rows * end + 2**63) // 2**64 for end in quotas(shares)[:-1]]


def leaks(parts: Sequence[Any], keys: Sequence[Any]) -> list[bool]:
    seen: dict[Any, set[Any]] = {}
    for part, key in zip(parts, keys, strict=True):
        if part is not None and key is not None:
            seen.setdefault(key, set()).add(part)
    return [
        part is not None and key is not None and len(seen[key]) > 1
        for part, key in zip(parts, keys, strict=True)
    ]


def seed_of(seed: int, group: Sequence[Any] | None) -> int:
    """The seed that a group is drawn under."""
    if group is None:
        return seed
    return oracle.block(seed, key_hash(group), 0, GROUP) & WORD


def places(rows: int, keys: Sequence[int] | None) -> Sequence[int]:
    return range(rows) if keys is None else keys


def words(
    rows: int, seed: int, domain: int, group: Sequence[Any] | None, keys: Sequence[int] | None
) -> list[int]:
    own = seed_of(seed, group)
    return [oracle.block(own, place, 0, domain) & WORD for place in places(rows, keys)]


def check_weights(weights: Sequence[float | None]) -> list[float]:
    found = whole(weights)
    if any(not 0 <= weight < math.inf for weight in found):
        raise ValueError("weight")
    return [float(weight) for weight in found]


def sample_mask(
    weights: Sequence[float | None],
    n: int,
    seed: int,
    group: Sequence[Any] | None,
    keys: Sequence[int] | None = None,
) -> list[bool]:
    found = check_weights(weights)
    if not found:
        return []
    if sum(weight > 0 for weight in found) < n:
        raise ValueError("too few")
    numbers = words(len(found), seed, SELECT, group, keys)
    races = sorted(
        (oracle.race(oracle.exponential(number), weight), row)
        for row, (number, weight) in enumerate(zip(numbers, found, strict=True))
        if weight > 0
    )
    taken = {row for _, row in races[:n]}
    return [row in taken for row in range(len(found))]


def sample_counts(
    weights: Sequence[float | None],
    n: int,
    seed: int,
    group: Sequence[Any] | None,
    keys: Sequence[int] | None = None,
) -> list[int]:
    found = check_weights(weights)
    if not found:
        return []
    order = [row for row, weight in enumerate(found) if weight > 0]
    if keys is not None:
        order.sort(key=lambda row: (keys[row], row))
    if not order and n:
        raise ValueError("nothing to draw")
    counts = [0] * len(found)
    if not n:
        return counts
    own = seed_of(seed, group)
    held = oracle.tickets([found[row] for row in order])
    for position in range(n):
        number = oracle.scale(oracle.block(own, position, 0, COUNTS), sum(held))
        at = 0
        while number >= held[at]:
            number -= held[at]
            at += 1
        counts[order[at]] += 1
    return counts


def per_class(
    labels: Sequence[Hashable],
    m: int,
    seed: int,
    group: Sequence[Any] | None,
    keys: Sequence[int] | None = None,
) -> list[int]:
    numbers = words(len(labels), seed, PER_CLASS, group, keys)
    counts = [0] * len(labels)
    for label in set(labels):
        rows = [row for row, other in enumerate(labels) if other == label]
        times, rest = divmod(m, len(rows))
        for place, row in enumerate(sorted(rows, key=lambda row: (numbers[row], row))):
            counts[row] = times + (place < rest)
    return counts


def length_order(lengths: Sequence[float], batch_size: int, order: Sequence[float]) -> list[int]:
    """Rows in the order of the transformers library, from the permutation on."""
    rows = sorted(range(len(lengths)), key=lambda row: (order[row], row))
    batches = min(len(rows) // (batch_size * 4), 50) or 1
    size = batches * batch_size
    runs = [
        sorted(rows[start : start + size], key=lambda row: lengths[row], reverse=True)
        for start in range(0, len(rows), size)
    ]
    if runs:
        heads = [lengths[run[0]] for run in runs]
        longest = heads.index(max(heads))
        runs[0][0], runs[longest][0] = runs[longest][0], runs[0][0]
    return [row for run in runs for row in run]


def shingles(text: str, size: int, unit: str) -> list[str]:
    """The shingles of a text, in order."""
    units = list(text) if unit == "char" else text.split()
    between = "" if unit == "char" else " "
    if len(units) <= size:
        return [between.join(units)]
    return [between.join(units[at : at + size]) for at in range(len(units) - size + 1)]


def minhash(text: str, k: int, size: int, unit: str, seed: int) -> list[int]:
    found = {key_hash([shingle], seed) for shingle in shingles(text, size, unit)}
    values = []
    for place in range(k):
        step = oracle.block(seed, place, 0, MIN_HASH)
        a, b = step & WORD | 1, step >> 64
        values.append(min((a * number + b) & WORD for number in found) >> 32)
    return values


def bands(signature: Sequence[int], count: int) -> list[int]:
    size = len(signature) // count
    return [
        xxhash.xxh3_64_intdigest(
            b"".join(value.to_bytes(4, "little") for value in signature[at * size :][:size]),
            at ^ (2 * TAG_STEP & WORD),
        )
        for at in range(count)
    ]


def simhash(text: str, size: int, unit: str, seed: int) -> int:
    found = [key_hash([shingle], seed) for shingle in shingles(text, size, unit)]
    return sum(
        1 << bit for bit in range(64) if 2 * sum(number >> bit & 1 for number in found) > len(found)
    )


def duplicate_ranks(keys: Sequence[Any], order: Sequence[Any] | None = None) -> list[int]:
    rows = range(len(keys))
    ranked = rows if order is None else sorted(rows, key=lambda row: (order[row], row))
    seen: Counter[Any] = Counter()
    ranks = [0] * len(keys)
    for row in ranked:
        if keys[row] is not None:
            ranks[row] = seen[keys[row]]
            seen[keys[row]] += 1
    return ranks


def spelled(parts: Sequence[int | None], shares: Mapping[str, float]) -> list[str | None]:
    names = list(shares)
    return [None if part is None else names[part] for part in parts]
