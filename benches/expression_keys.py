"""Splits, orders, hashes and buckets beside plain Polars, NumPy, scikit-learn and `map_elements`.

Hashes of Polars are other ones than ours, so what is made of them is timed and not compared.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from dataset_rt import expr as drt

from .expression_row import SKLEARN, Other, Row, by_element, by_numpy, by_polars

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
ENDS = (0.8, 0.9)
SEED = 1
FOLDS = 5
EDGES = [number / 10 for number in range(1, 10)]
SKLEARN_ROWS = 1_000_000
SHINGLE = 5

PARTS = pl.Enum(list(SHARES))
score = pl.col("score")
text = pl.col("text")


def rows() -> list[Row]:
    return [*_splits(), *_orders(), *_buckets(), *_texts()]


def split_by_hash(key: str) -> pl.Expr:
    """A split by the hash that Polars has, which is not the same in every release of it."""
    hashed = pl.col(key).hash(SEED)
    train, validation, test = (pl.lit(name, dtype=PARTS) for name in SHARES)
    first, second = (pl.lit(int(end * 2**64), dtype=pl.UInt64) for end in ENDS)
    return (
        pl.when(hashed < first).then(train).when(hashed < second).then(validation).otherwise(test)
    )


def _splits() -> list[Row]:
    place = pl.col("id").hash(SEED).rank("ordinal").over("label") / pl.len().over("label")
    ranked = pl.lit(pl.Series(list(SHARES), dtype=PARTS)).gather(
        sum((place > end).cast(pl.UInt8) for end in ENDS)
    )
    return [
        *(
            Row(
                f"hash_split, {kind}",
                drt.hash_split(key, SHARES, seed=SEED),
                (
                    by_polars(split_by_hash(key), " hash", same=False),
                    by_element(_split_each, key, PARTS, same=False),
                ),
            )
            for key, kind in (("id", "Int64 keys"), ("name", "short String keys"))
        ),
        Row(
            "hash_fold, Int64 keys",
            drt.hash_fold("id", FOLDS, seed=SEED),
            (
                by_polars((pl.col("id").hash(SEED) % FOLDS).cast(pl.UInt32), " hash", same=False),
                by_element(_fold_each, "id", pl.UInt32, same=False),
            ),
        ),
        Row(
            "stratified_split, 1,000 classes",
            drt.stratified_split("label", SHARES, key="id", seed=SEED),
            (
                by_numpy(_stratified, "label", detail=" lexsort", same=False),
                by_polars(ranked, " hash and rank", same=False),
                Other(SKLEARN, _stratified_sklearn, SKLEARN_ROWS, same=False),
            ),
        ),
    ]


def _orders() -> list[Row]:
    return [
        Row(
            "shuffle_key, Int64 keys",
            drt.shuffle_key("id", seed=SEED),
            (by_polars(pl.col("id").hash(SEED), " hash", same=False),),
        ),
        Row(
            "shuffle_key, by place",
            drt.shuffle_key(seed=SEED),
            (
                by_numpy(_random_numbers, "id", detail=" random", same=False),
                by_polars(pl.int_range(pl.len()).hash(SEED), " hash", same=False),
            ),
        ),
    ]


def _buckets() -> list[Row]:
    smaller = score.rank("min").cast(pl.UInt64) - 1
    return [
        Row(
            "bucket, 9 edges",
            drt.bucket("score", edges=EDGES),
            (
                by_numpy(lambda values: np.searchsorted(EDGES, values, side="right"), "score"),
                by_polars(pl.lit(pl.Series(EDGES)).search_sorted(score, "right"), " search_sorted"),
                by_polars(score.cut(EDGES, left_closed=True), " cut, to names", same=False),
                by_polars(pl.sum_horizontal((score >= edge).cast(pl.UInt32) for edge in EDGES)),
            ),
        ),
        Row(
            "bucket, 10 of like size",
            drt.bucket("score", n=10),
            (
                by_numpy(_tenths, "score", detail=" partition"),
                by_polars(smaller * 10 // pl.len(), " rank"),
                by_polars(score.qcut(10, left_closed=True), " qcut, to names", same=False),
            ),
        ),
    ]


def _texts() -> list[Row]:
    return [
        Row(
            "content_hash, texts of 35 bytes",
            drt.content_hash("text"),
            (
                by_polars(text.hash(SEED), " hash", same=False),
                by_element(_hash_each, "text", pl.UInt64),
            ),
        ),
        Row(
            "simhash, texts of 35 bytes",
            drt.simhash("text", shingle=SHINGLE),
            (by_element(_simhash_each, "text", pl.UInt64, most_rows=1_000),),
            most_rows=1_000_000,
        ),
    ]


def _split_each(values: pl.Series) -> Callable[[Any], str]:
    del values
    names = list(SHARES)

    def part(value: object) -> str:
        share = _digest(value) / 2**64
        return names[sum(share >= end for end in ENDS)]

    return part


def _fold_each(values: pl.Series) -> Callable[[Any], int]:
    del values
    return lambda value: _digest(value) % FOLDS


def _digest(value: object) -> int:
    """As scripts split by a hash that lasts."""
    digest = hashlib.md5(str(value).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def _stratified(labels: NDArray[np.int64]) -> NDArray[np.intp]:
    order = np.lexsort((np.random.default_rng(SEED).random(len(labels)), labels))
    counts = np.bincount(labels)
    places = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    parts = np.empty(len(labels), dtype=np.intp)
    parts[order] = np.searchsorted(ENDS, places / np.repeat(counts, counts), side="right")
    return parts


def _stratified_sklearn(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Two parts alone: a third one takes a second split."""
    from sklearn.model_selection import StratifiedShuffleSplit  # noqa: PLC0415  # optional

    labels = frame["label"].to_numpy()
    split = StratifiedShuffleSplit(1, train_size=0.8, test_size=0.2, random_state=SEED)
    [(train, _)] = split.split(labels, labels)
    found: NDArray[np.int64] = train
    return found


def _random_numbers(ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    most = np.iinfo(np.uint64).max
    return np.random.default_rng(SEED).integers(most, size=len(ids), dtype=np.uint64)


def _tenths(values: NDArray[np.float64]) -> NDArray[np.intp]:
    ranks = [-(-part * len(values) // 10) for part in range(1, 10)]
    return np.searchsorted(np.partition(values, ranks)[ranks], values, side="right")


def _hash_each(values: pl.Series) -> Callable[[str], int]:
    from xxhash import xxh3_64_intdigest  # noqa: PLC0415  # optional

    del values
    return lambda value: xxh3_64_intdigest(value.encode())


def _simhash_each(values: pl.Series) -> Callable[[str], int]:
    hashed = _hash_each(values)

    def bits(value: str) -> int:
        runs = range(max(len(value) - SHINGLE, 0) + 1)
        hashes = [hashed(value[start : start + SHINGLE]) for start in runs]
        return sum(
            1 << bit
            for bit in range(64)
            if 2 * sum(number >> bit & 1 for number in hashes) > len(hashes)
        )

    return bits
