"""Fingerprints of texts and duplicates."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
from dataset_rt import expr

from tests.plugin import definitions as plain
from tests.plugin.registry.row import Example, Row

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = pl.DataFrame(
    {
        "text": [
            "the quick brown fox",
            "The quick",
            "",
            None,
            "näïve café ☕ text",
            "the quick brown fox jumps",
        ],
    }
)
KEYS = pl.DataFrame(
    {
        "a": [1, 2, 1, None, 1, 2, 1, None],
        "b": ["x", "x", "x", "x", "y", "x", "x", "x"],
        "o": [3.5, 1.0, 0.0, 2.0, 9.0, -1.0, 3.5, 0.0],
    }
)
MIXED = pl.DataFrame(
    {
        "d": [dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)],
        "f": [True, False, None],
        "n": [b"", b"a", b"\xff\x00"],
    }
)


def each(of_text: Callable[[str], Any]) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[Any]:
        del group
        return [None if text is None else of_text(text) for text in frame["text"].to_list()]

    return definition


def hashed(names: list[str], seed: int) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int | None]:
        del group
        return plain.hashes(frame, names, seed)

    return definition


def ranked(names: list[str], order: str | None = None) -> Any:
    def definition(frame: pl.DataFrame, group: Any) -> list[int]:
        del group
        rows = frame.select(names).iter_rows()
        keys = [None if None in row else row for row in rows]
        return plain.duplicate_ranks(
            keys, None if order is None else plain.whole(frame[order].to_list())
        )

    return definition


def similar(frame: pl.DataFrame, group: Any) -> list[float | None]:
    del group
    rows = zip(frame["left"].to_list(), frame["right"].to_list(), strict=True)
    return [
        None
        if left is None or right is None
        else sum(a == b for a, b in zip(left, right, strict=True)) / len(left)
        for left, right in rows
    ]


SIGNATURES = pl.DataFrame(
    {
        "left": [[1, 2, 3, 4], [5, 6, 7, 8], None, [0, 0, 0, 0]],
        "right": [[1, 2, 3, 5], [8, 7, 6, 5], [1, 1, 1, 1], [0, 0, 0, 0]],
    },
    schema={"left": pl.Array(pl.UInt32, 4), "right": pl.Array(pl.UInt32, 4)},
)
BITS = pl.DataFrame(
    {"left": [0, 2**64 - 1, None, 5], "right": [0, 1, 3, 2]},
    schema={"left": pl.UInt64, "right": pl.UInt64},
)

ROWS = [
    Row(
        "content_hash",
        "elementwise",
        pl.UInt64,
        over=False,
        native=("content_hash",),
        examples=[
            Example(TEXTS, lambda **o: expr.content_hash("text", **o), hashed(["text"], 0)),
            Example(
                KEYS, lambda **o: expr.content_hash("a", "b", seed=9, **o), hashed(["a", "b"], 9)
            ),
            *(
                Example(
                    MIXED.select(name),
                    lambda name=name, **o: expr.content_hash(name, **o),
                    hashed([name], 0),
                )
                for name in MIXED.columns
            ),
            Example(
                MIXED, lambda **o: expr.content_hash("d", "f", "n", **o), hashed(["d", "f", "n"], 0)
            ),
        ],
    ),
    Row(
        "minhash",
        "elementwise",
        pl.Array(pl.UInt32, 8),
        over=False,
        native=("minhash",),
        examples=[
            Example(
                TEXTS,
                lambda **o: expr.minhash("text", k=8, **o),
                each(lambda text: plain.minhash(text, 8, 5, "char", 0)),
            ),
            Example(
                TEXTS,
                lambda **o: expr.minhash("text", k=5, shingle=2, unit="word", seed=3, **o),
                each(lambda text: plain.minhash(text, 5, 2, "word", 3)),
                dtype=pl.Array(pl.UInt32, 5),
            ),
        ],
    ),
    Row(
        "minhash_band",
        "elementwise",
        pl.Array(pl.UInt64, 2),
        over=False,
        native=("minhash_band",),
        examples=[
            Example(
                SIGNATURES,
                lambda **o: expr.minhash_band("left", 2, **o),
                lambda frame, _: [
                    None if row is None else plain.bands(row, 2) for row in frame["left"].to_list()
                ],
            ),
        ],
    ),
    Row(
        "minhash_similarity",
        "elementwise",
        pl.Float64,
        over=False,
        native=("minhash_similarity",),
        examples=[
            Example(SIGNATURES, lambda **o: expr.minhash_similarity("left", "right", **o), similar),
        ],
    ),
    Row(
        "simhash",
        "elementwise",
        pl.UInt64,
        over=False,
        native=("simhash",),
        examples=[
            Example(
                TEXTS,
                lambda **o: expr.simhash("text", shingle=3, **o),
                each(lambda text: plain.simhash(text, 3, "char", 0)),
            ),
            Example(
                TEXTS,
                lambda **o: expr.simhash("text", shingle=1, unit="word", seed=8, **o),
                each(lambda text: plain.simhash(text, 1, "word", 8)),
            ),
        ],
    ),
    Row(
        "hamming",
        "elementwise",
        pl.UInt32,
        over=False,
        examples=[
            Example(
                BITS,
                lambda **o: expr.hamming("left", "right", **o),
                lambda frame, _: [
                    None if None in row else (row[0] ^ row[1]).bit_count()
                    for row in frame.iter_rows()
                ],
            ),
        ],
    ),
    Row(
        "duplicate_rank",
        "column",
        pl.UInt32,
        native=("duplicate_rank",),
        examples=[
            Example(KEYS, lambda **o: expr.duplicate_rank("a", **o), ranked(["a"])),
            Example(
                KEYS,
                lambda **o: expr.duplicate_rank("b", "a", order="o", **o),
                ranked(["b", "a"], "o"),
            ),
        ],
    ),
]
