"""Draws, orders, curricula and buckets."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Any

import polars as pl
from dataset_rt import expr

from tests import oracle
from tests.plugin import definitions as plain
from tests.plugin.registry.row import Example, Row

WEIGHTED = pl.DataFrame(
    {
        "w": [1.0, 2.0, 0.5, 1e-9, 3.0, 1.0, 7.5, 2.0, 1.0, 1e9, 4.0, 1.0],
        "id": [f"row {i}" for i in range(12)],
    }
)
LABELLED = pl.DataFrame({"y": ["a", "b", "a", "a", "c", "b", "a", "a"], "id": [*range(8)]})
NUMBERS = pl.DataFrame(
    {
        "x": [0.5, -1.0, 3.0, 0.5, 2.0, 9.5, -7.0, 0.0, 3.0, 1.0],
        "o": [*range(10)],
        "p": [0, 2, 4, 1, 3, 0, 2, 4, 1, 3],
    }
)
FACTORS = pl.DataFrame({"f": [0.0, 0.5, 1.0, 1.25, 2.5, 3.75, 0.1, 7.9], "id": [*range(8)]})
SOME = pl.DataFrame({"x": [5, 1, None, 3, 3, 9, None, 2]})


def keys_of(frame: pl.DataFrame, key: str | None) -> list[int] | None:
    return None if key is None else plain.whole(plain.hashes(frame, [key]))


def mask(n: int, seed: int, key: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[bool]:
        keys = keys_of(frame, key)
        return plain.sample_mask(frame["w"].to_list(), n, seed, group, keys)

    return definition


def counts(n: int, seed: int, key: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        keys = keys_of(frame, key)
        return plain.sample_counts(frame["w"].to_list(), n, seed, group, keys)

    return definition


def emitted(n: int, seed: int, stream: int, *, replacement: bool) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        weights = plain.check_weights(frame["w"].to_list())
        kept = [row for row, weight in enumerate(weights) if weight > 0]
        if not weights:
            return []
        if not kept:
            raise ValueError("nothing to draw")
        own = [weights[row] for row in kept]
        mode = "weighted" if replacement else "weighted_order"
        if not replacement and len(set(own)) == 1:
            mode = "permutation"
        order = oracle.rows(mode, plain.seed_of(seed, group), stream, own, range(n))
        drawn = Counter(kept[row] for row in order)
        return [drawn[row] for row in range(len(weights))]

    return definition


def shuffled(seed: int, key: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int | None]:
        if key is None:
            return list(plain.words(frame.height, seed, plain.SHUFFLE, group, None))
        keys = plain.hashes(frame, [key])
        if group is not None:
            plain.whole(keys)
        found = [0 if number is None else number for number in keys]
        numbers = plain.words(frame.height, seed, plain.SHUFFLE, group, found)
        return [None if of is None else number for of, number in zip(keys, numbers, strict=True)]

    return definition


def of_class(m: int, seed: int, key: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        labels = plain.whole(frame["y"].to_list())
        return plain.per_class(labels, m, seed, group, keys_of(frame, key))

    return definition


def repeated(seed: int, key: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        factors = plain.check_weights(frame["f"].to_list())
        keys = keys_of(frame, key)
        words = plain.words(len(factors), seed, plain.REPEAT, group, keys)
        return [
            int(factor) + ((word >> 11) / 2**53 < factor % 1)
            for factor, word in zip(factors, words, strict=True)
        ]

    return definition


def easy(competence: float) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[bool]:
        del group
        values = plain.whole(frame["x"].to_list())
        return [
            sum(other <= value for other in values) / len(values) <= competence for value in values
        ]

    return definition


def grouped_by_length(batch_size: int, by: str = "o") -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        del group
        lengths, order = plain.whole(frame["x"].to_list()), plain.whole(frame[by].to_list())
        rows = plain.length_order(lengths, batch_size, order)
        return [place for _, place in sorted(zip(rows, range(len(rows)), strict=True))]

    return definition


def between(edges: list[float]) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int | None]:
        del group
        values = frame["x"].to_list()
        plain.whole([value for value in values if value is not None])
        return [None if value is None else bisect_right(edges, value) for value in values]

    return definition


def evenly(n: int) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int | None]:
        del group
        values = frame["x"].to_list()
        there = plain.whole([value for value in values if value is not None])
        smaller = {value: sum(other < value for other in there) for value in set(there)}
        return [None if value is None else n * smaller[value] // len(there) for value in values]

    return definition


ROWS = [
    Row(
        "sample_weighted",
        "column",
        pl.Boolean,
        native=("sample_mask", "sample_counts"),
        examples=[
            Example(WEIGHTED, lambda **o: expr.sample_weighted("w", 1, seed=4, **o), mask(1, 4)),
            Example(
                WEIGHTED,
                lambda **o: expr.sample_weighted("w", 1, seed=2**63, key="id", **o),
                mask(1, 2**63, "id"),
            ),
            Example(
                WEIGHTED,
                lambda **o: expr.sample_weighted("w", 9, seed=4, replacement=True, **o),
                counts(9, 4),
                dtype=pl.UInt32,
            ),
            Example(
                WEIGHTED,
                lambda **o: expr.sample_weighted("w", 9, seed=4, replacement=True, key="id", **o),
                counts(9, 4, "id"),
                dtype=pl.UInt32,
            ),
        ],
    ),
    Row(
        "draw_counts",
        "column",
        pl.UInt32,
        native=("draw_counts",),
        examples=[
            Example(
                WEIGHTED,
                lambda **o: expr.draw_counts("w", 30, seed=42, **o),
                emitted(30, 42, 0, replacement=True),
            ),
            Example(
                WEIGHTED,
                lambda **o: expr.draw_counts("w", 17, seed=1, stream=3, replacement=False, **o),
                emitted(17, 1, 3, replacement=False),
            ),
        ],
    ),
    Row(
        "shuffle_key",
        "column",
        pl.UInt64,
        native=("shuffle_key", "shuffle_rows"),
        examples=[
            Example(WEIGHTED, lambda **o: expr.shuffle_key(seed=7, **o), shuffled(7)),
            Example(WEIGHTED, lambda **o: expr.shuffle_key("id", seed=7, **o), shuffled(7, "id")),
        ],
    ),
    Row(
        "m_per_class",
        "column",
        pl.UInt32,
        native=("m_per_class",),
        examples=[
            Example(LABELLED, lambda **o: expr.m_per_class("y", 3, seed=6, **o), of_class(3, 6)),
            Example(
                LABELLED,
                lambda **o: expr.m_per_class("y", 2, seed=6, key="id", **o),
                of_class(2, 6, "id"),
            ),
        ],
    ),
    Row(
        "repeat_count",
        "column",
        pl.UInt32,
        native=("repeat_count",),
        examples=[
            Example(FACTORS, lambda **o: expr.repeat_count("f", seed=5, **o), repeated(5)),
            Example(
                FACTORS,
                lambda **o: expr.repeat_count("f", seed=5, key="id", **o),
                repeated(5, "id"),
            ),
        ],
    ),
    Row(
        "curriculum_mask",
        "column",
        pl.Boolean,
        native=("curriculum_mask",),
        examples=[
            Example(NUMBERS, lambda **o: expr.curriculum_mask("x", 0.55, **o), easy(0.55)),
            Example(NUMBERS, lambda **o: expr.curriculum_mask("x", 1, **o), easy(1.0)),
        ],
    ),
    Row(
        "length_group_key",
        "column",
        pl.UInt64,
        native=("length_group_key",),
        examples=[
            Example(
                NUMBERS,
                lambda **o: expr.length_group_key("x", 1, order="p", **o),
                grouped_by_length(1, "p"),
            ),
            Example(
                NUMBERS,
                lambda **o: expr.length_group_key("x", 4, order="o", **o),
                grouped_by_length(4),
            ),
        ],
    ),
    Row(
        "bucket",
        "column",
        pl.UInt32,
        native=("bucket_edges", "bucket_count"),
        examples=[
            Example(
                NUMBERS,
                lambda **o: expr.bucket("x", edges=[-1, 0.5, 3], **o),
                between([-1.0, 0.5, 3.0]),
            ),
            Example(SOME, lambda **o: expr.bucket("x", n=3, **o), evenly(3)),
            Example(NUMBERS, lambda **o: expr.bucket("x", n=20, **o), evenly(20)),
        ],
    ),
]
