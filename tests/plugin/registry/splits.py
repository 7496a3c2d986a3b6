"""Splits and folds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
from dataset_rt import expr

from tests.plugin import definitions as plain
from tests.plugin.registry.row import Example, Row

HALVES = {"train": 0.5, "test": 0.5}
THREE = {"train": 0.6, "valid": 0.3, "test": 0.1}
ENUM = pl.Enum(list(THREE))

KEYS = pl.DataFrame(
    {
        "id": [5, 7, None, 1, 2**62, -3, 4, 11, 12, 13, 14, 15],
        "user": ["a", "b", "a", None, "c", "d", "", "ä", "a", "b", "e", "f"],
    }
)
LABELLED = pl.DataFrame(
    {
        "y": ["a", "b", "a", "a", "c", "b", "a", "d", "a", "b", "a", "a", "b", "b"],
        "id": [*range(100, 114)],
        "user": [1, 1, 2, 2, 3, None, 4, 4, 5, 5, 6, 7, 7, 8],
    }
)
START = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - the column has no zone either
TIMES = pl.DataFrame(
    {
        "t": [START + dt.timedelta(days=(i * 5) % 7, hours=i % 2) for i in range(12)],
        "x": [0.5 * (i * 7 % 5) for i in range(12)],
        "n": [(i * 5) % 9 - 4 for i in range(12)],
    }
)


def hashed(keys: list[str], groups: list[str] | None, shares: dict[str, float], seed: int) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[str | None]:
        del group
        own = plain.hashes(frame, keys, seed)
        grouped = None if groups is None else plain.hashes(frame, groups, seed)
        return plain.spelled(plain.hash_parts(own, grouped, list(shares.values())), shares)

    return definition


def folded(keys: list[str], groups: list[str] | None, k: int, seed: int) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int | None]:
        del group
        own = plain.hashes(frame, keys, seed)
        if groups is not None:
            grouped = plain.hashes(frame, groups, seed)
            own = [key if of is None else of for key, of in zip(own, grouped, strict=True)]
        return [None if number is None else number * k >> 64 for number in own]

    return definition


def stratified(shares: dict[str, float] | int, seed: int, groups: list[str] | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[Any]:
        del group
        labels = plain.whole(plain.hashes(frame, ["y"], seed))
        keys = plain.whole(plain.hashes(frame, ["id"], seed))
        if isinstance(shares, int):
            ends, total = list(range(1, shares + 1)), shares
        else:
            ends, total = plain.quotas(list(shares.values())), 2**64
        if groups is None:
            parts = plain.stratified(labels, keys, ends, total)
        else:
            found = plain.hashes(frame, groups, seed)
            own = [key if of is None else of for key, of in zip(keys, found, strict=True)]
            parts = plain.stratified_groups(labels, own, ends, total)
        return parts if isinstance(shares, int) else plain.spelled(parts, shares)

    return definition


def timed(name: str, shares: dict[str, float]) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[str | None]:
        del group
        times = plain.whole(frame[name].to_list())
        ranks = plain.ranks_of(list(shares.values()), len(times))
        return plain.spelled(plain.cut(times, ranks), shares)

    return definition


def leaking(keys: list[str]) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[bool]:
        del group
        rows = frame.select(keys).iter_rows()
        return plain.leaks(frame["split"].to_list(), [None if None in row else row for row in rows])

    return definition


SPLIT = pl.DataFrame(
    {
        "split": ["x", "y", "x", None, "y", "y", "x", "x"],
        "key": [1, 1, 2, 2, None, 3, 3, 2],
        "more": [0, 0, 1, 1, 1, 2, 3, 1],
    }
)

ROWS = [
    Row(
        "hash_split",
        "elementwise",
        ENUM,
        over=False,
        native=("hash_split",),
        examples=[
            Example(
                KEYS,
                lambda **o: expr.hash_split("id", THREE, seed=3, **o),
                hashed(["id"], None, THREE, 3),
            ),
            Example(
                KEYS,
                lambda **o: expr.hash_split(["user", "id"], HALVES, seed=2**64 - 1, **o),
                hashed(["user", "id"], None, HALVES, 2**64 - 1),
                dtype=pl.Enum(list(HALVES)),
            ),
            Example(
                KEYS,
                lambda **o: expr.hash_split("id", HALVES, seed=0, group="user", **o),
                hashed(["id"], ["user"], HALVES, 0),
                dtype=pl.Enum(list(HALVES)),
            ),
        ],
    ),
    Row(
        "hash_fold",
        "elementwise",
        pl.UInt32,
        over=False,
        native=("hash_fold",),
        examples=[
            Example(
                KEYS,
                lambda **o: expr.hash_fold("user", 5, seed=1, **o),
                folded(["user"], None, 5, 1),
            ),
            Example(
                KEYS,
                lambda **o: expr.hash_fold("id", 40, seed=1, group=["user"], **o),
                folded(["id"], ["user"], 40, 1),
            ),
        ],
    ),
    Row(
        "stratified_split",
        "column",
        ENUM,
        native=("stratified_split",),
        examples=[
            Example(
                LABELLED,
                lambda **o: expr.stratified_split("y", THREE, key="id", seed=5, **o),
                stratified(THREE, 5),
            ),
            Example(
                LABELLED,
                lambda **o: expr.stratified_split("y", THREE, key="id", seed=5, group="user", **o),
                stratified(THREE, 5, ["user"]),
            ),
        ],
    ),
    Row(
        "stratified_fold",
        "column",
        pl.UInt32,
        native=("stratified_fold",),
        examples=[
            Example(
                LABELLED,
                lambda **o: expr.stratified_fold("y", 3, key="id", seed=5, **o),
                stratified(3, 5),
            ),
            Example(
                LABELLED,
                lambda **o: expr.stratified_fold("y", 3, key="id", seed=5, group="user", **o),
                stratified(3, 5, ["user"]),
            ),
        ],
    ),
    Row(
        "time_split",
        "column",
        ENUM,
        native=("time_split",),
        examples=[
            Example(
                TIMES.select(name),
                lambda name=name, **o: expr.time_split(name, THREE, **o),
                timed(name, THREE),
            )
            for name in TIMES.columns
        ],
    ),
    Row(
        "split_leaks",
        "column",
        pl.Boolean,
        native=("split_leaks",),
        examples=[
            Example(SPLIT, lambda **o: expr.split_leaks("split", "key", **o), leaking(["key"])),
            Example(
                SPLIT,
                lambda **o: expr.split_leaks("split", ["key", "more"], **o),
                leaking(["key", "more"]),
            ),
        ],
    ),
]
