"""Splits against published hashes, scikit-learn and what they promise."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import polars as pl
import pytest
from dataset_rt import expr
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

from tests.plugin import definitions as plain

pytestmark = pytest.mark.core

SHARES = {"train": 0.7, "valid": 0.2, "test": 0.1}


def labels(rows: int) -> list[int]:
    return [(i * i + i // 7) % 97 % 11 for i in range(rows)]


@pytest.mark.rule("Hashes of keys never change")
def test_published_hashes() -> None:
    def of(value: Any, dtype: Any, seed: int = 0) -> int:
        column = pl.lit(pl.Series("x", [value], dtype=dtype))
        return int(pl.select(expr.content_hash(column, seed=seed)).item())

    # As the authors of XXH3 publish them, and as the reference page lists them.
    assert of("", pl.String) == 0x2D06800538D394C2
    assert of("a", pl.String) == 0xE6C632B61E964E1F
    assert of("abc", pl.String) == 0x78AF5F94892F3950
    assert of(1, pl.Int64) == 0xA6CD8FC32994760F
    assert of(-1, pl.Int64, 42) == 0x6B3812DB73FC9A44
    assert of(value=True, dtype=pl.Boolean) == 0x735B28DE4EDABB98
    one_day = pl.select(expr.content_hash(pl.lit(pl.Series([1], dtype=pl.Int32).cast(pl.Date))))
    assert one_day.item() == 0xE683C8062ACAD5B6
    pair = pl.select(expr.content_hash(pl.lit("a"), pl.lit(1)))
    assert pair.item() == 0x31E2273C76354C5E


@pytest.mark.rule("Hashes of keys never change")
@pytest.mark.parametrize("length", [1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 5000])
def test_texts_of_any_length(length: int) -> None:
    text = "".join(chr(97 + i * i % 26) for i in range(length))
    for seed in (0, 2**64 - 1):
        found = pl.select(expr.content_hash(pl.lit(text), seed=seed)).item()
        assert found == plain.key_hash([text], seed)


@pytest.mark.rule("Hashes of keys never change")
def test_a_key_is_its_value() -> None:
    widths = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
    frame = pl.DataFrame([pl.Series(str(dtype), [0, 1, 100], dtype=dtype) for dtype in widths])
    hashed = frame.select(expr.content_hash(name) for name in frame.columns)
    assert len({tuple(column) for column in hashed}) == 1
    texts = pl.DataFrame({"t": ["b", "a", "b", None]})
    enum, categories = pl.Enum(["a", "b"]), pl.Categorical
    kinds = texts.select("t", e=pl.col("t").cast(enum), c=pl.col("t").cast(categories))
    hashed = kinds.select(expr.content_hash(name) for name in kinds.columns)
    assert len({tuple(column) for column in hashed}) == 1
    # Types and borders of columns are told apart.
    assert (
        pl.select(expr.content_hash(pl.lit(0)) == expr.content_hash(pl.lit("\0" * 8))).item()
        is False
    )
    pairs = pl.DataFrame({"a": ["ab", "a"], "b": ["c", "bc"]})
    assert pairs.select(expr.content_hash("a", "b")).to_series().n_unique() == 2


@pytest.mark.rule("Hashes of keys never change")
def test_floats_are_no_keys() -> None:
    frame = pl.DataFrame({"x": [1.5]})
    for asked in (
        expr.hash_split("x", SHARES, seed=0),
        expr.content_hash("x"),
        expr.stratified_fold("x", 2, key="x", seed=0),
    ):
        with pytest.raises(pl.exceptions.ComputeError, match="f64"):
            frame.select(asked)


@pytest.mark.rule("hash_split never moves a row")
def test_rows_stay_where_they_are() -> None:
    split = expr.hash_split("id", SHARES, seed=11)
    frame = pl.DataFrame({"id": [f"file {i}.png" for i in range(2000)]}).with_columns(part=split)
    more = pl.DataFrame({"id": [f"file {i}.png" for i in range(9000)]}).with_columns(part=split)
    assert more.head(2000)["part"].equals(frame["part"])
    moved = frame.sort("id", descending=True)
    assert moved.select(split).to_series().to_list() == moved["part"].to_list()
    assert frame["part"].dtype == pl.Enum(list(SHARES))


@pytest.mark.rule("hash_split never moves a row")
def test_shares_of_hashes_are_even() -> None:
    rows = 100_000
    for key in (pl.int_range(rows), pl.int_range(rows).cast(pl.String)):
        for seed in (0, 1, 2**64 - 1):
            parts = pl.select(expr.hash_split(key, SHARES, seed=seed)).to_series()
            counts = Counter(parts)
            chi = sum((counts[name] - rows * s) ** 2 / (rows * s) for name, s in SHARES.items())
            # Two degrees of freedom: passed once in a hundred thousand times.
            assert chi < 23.0
            folds = Counter(pl.select(expr.hash_fold(key, 10, seed=seed)).to_series())
            assert sum((folds[k] - rows / 10) ** 2 / (rows / 10) for k in range(10)) < 38.0


@pytest.mark.rule("hash_split never moves a row")
def test_seeds_are_independent() -> None:
    frame = pl.DataFrame({"id": range(20_000)}).with_columns(
        a=expr.hash_fold("id", 2, seed=0), b=expr.hash_fold("id", 2, seed=1)
    )
    counts = frame.group_by("a", "b").len()["len"].to_list()
    assert len(counts) == 4
    assert sum((count - 5000) ** 2 / 5000 for count in counts) < 23.0


@pytest.mark.rule("Groups of a split stay together")
def test_groups_stay_together() -> None:
    frame = pl.DataFrame({"id": range(3000), "user": [i * i % 501 for i in range(3000)]})
    parts = frame.with_columns(
        h=expr.hash_split("id", SHARES, seed=1, group="user"),
        s=expr.stratified_split(pl.col("id") % 3, SHARES, key="id", seed=1, group="user"),
    )
    for split in ("h", "s"):
        assert parts.group_by("user").agg(pl.col(split).n_unique())[split].max() == 1
        assert parts.select(expr.split_leaks(split, "user").any()).item() is False
    alone = frame.select(expr.hash_split("id", SHARES, seed=1)).to_series()
    leaking = frame.with_columns(alone.alias("s")).select(expr.split_leaks("s", "user")).to_series()
    assert leaking.any()
    # Without a group a row goes by its key.
    none = frame.with_columns(user=pl.lit(None, dtype=pl.Int64))
    assert (
        none.select(expr.hash_split("id", SHARES, seed=1, group="user")).to_series().equals(alone)
    )


@pytest.mark.rule("Stratified splits are exact")
@pytest.mark.parametrize(
    "shares", [SHARES, {"a": 0.8, "b": 0.2}, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}]
)
def test_classes_have_their_shares(shares: dict[str, float]) -> None:
    frame = pl.DataFrame({"id": range(3001), "y": labels(3001)})
    split = frame.with_columns(part=expr.stratified_split("y", shares, key="id", seed=2))
    counts = Counter(zip(split["y"], split["part"], strict=True))
    for label, rows in Counter(frame["y"]).items():
        for name, share in shares.items():
            assert abs(counts[label, name] - rows * share) < 1
    totals = Counter(split["part"])
    assert all(abs(totals[name] - 3001 * share) < 2 for name, share in shares.items())
    moved = split.sample(fraction=1.0, shuffle=True, seed=1)
    again = moved.select(expr.stratified_split("y", shares, key="id", seed=2)).to_series()
    assert again.to_list() == moved["part"].to_list()


@pytest.mark.rule("Stratified splits are exact")
def test_folds_of_scikit_learn() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    rows, k = 1003, 5
    frame = pl.DataFrame({"id": range(rows), "y": labels(rows)})
    folds = frame.select(expr.stratified_fold("y", k, key="id", seed=3)).to_series().to_list()
    theirs = [0] * rows
    splitter = selection.StratifiedKFold(k, shuffle=True, random_state=0)
    for fold, (_, test) in enumerate(splitter.split(frame["id"].to_numpy(), frame["y"].to_numpy())):
        for row in test:
            theirs[row] = fold

    def table(found: list[int]) -> dict[int, list[int]]:
        counts = Counter(zip(frame["y"], found, strict=True))
        return {
            label: sorted(counts[label, fold] for fold in range(k)) for label in set(frame["y"])
        }

    assert table(folds) == table(theirs)
    assert sorted(Counter(folds).values()) == sorted(Counter(theirs).values())


@pytest.mark.rule("Stratified splits are exact")
def test_grouped_folds_are_no_worse_than_those_of_scikit_learn() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    rows, k = 1200, 4
    frame = pl.DataFrame(
        {
            "id": range(rows),
            "y": [(i // 9) % 7 % 3 for i in range(rows)],
            "g": [i * 7 // 40 for i in range(rows)],
        }
    )
    fold = expr.stratified_fold("y", k, key="id", seed=3, group="g")
    ours = frame.select(fold).to_series().to_list()
    theirs = [0] * rows
    splitter = selection.StratifiedGroupKFold(k, shuffle=True, random_state=0)
    arrays = [frame[name].to_numpy() for name in ("id", "y", "g")]
    for number, (_, test) in enumerate(splitter.split(*arrays)):
        for row in test:
            theirs[row] = number

    def worst(found: list[int]) -> float:
        counts = Counter(zip(frame["y"], found, strict=True))
        sizes = Counter(frame["y"])
        return max(abs(counts[y, fold] - sizes[y] / k) for y in sizes for fold in range(k))

    largest = max(Counter(frame["g"]).values())
    assert worst(ours) < largest
    assert worst(ours) <= worst(theirs) + largest


@pytest.mark.rule("Stratified splits are exact")
def test_groups_of_one_class_are_off_by_less_than_the_largest() -> None:
    groups = [group for group in range(300) for _ in range(1 + group * 5 % 11)]
    frame = pl.DataFrame({"id": range(len(groups)), "g": groups, "y": [g % 4 for g in groups]})
    for seed in range(5):
        split = expr.stratified_split("y", SHARES, key="id", seed=seed, group="g")
        counts = Counter(zip(frame["y"], frame.select(split).to_series(), strict=True))
        for label, rows in Counter(frame["y"]).items():
            for name, share in SHARES.items():
                assert abs(counts[label, name] - rows * share) < 11


@pytest.mark.rule("time_split keeps the order of time")
def test_times_are_in_order() -> None:
    frame = pl.DataFrame({"t": [(i * 37) % 100 for i in range(1000)]})
    parts = frame.with_columns(part=expr.time_split("t", SHARES))
    spans = parts.group_by("part").agg(low=pl.col("t").min(), high=pl.col("t").max()).sort("part")
    assert spans["part"].to_list() == list(SHARES)
    assert spans["low"].to_list() == [0, 70, 90]
    assert spans["high"].to_list() == [69, 89, 99]
    shops = pl.DataFrame({"t": [1, 2, 10, 20], "shop": ["a", "a", "b", "b"]})
    halves = expr.time_split("t", {"past": 0.5, "future": 0.5}, over="shop")
    assert shops.select(halves).to_series().to_list() == ["past", "future", "past", "future"]
    for wrong in ([1.0, math.nan], [1.0, None]):
        with pytest.raises(pl.exceptions.ComputeError, match="row 1"):
            pl.DataFrame({"t": wrong}).select(expr.time_split("t", SHARES))


@pytest.mark.rule("Arguments are checked")
def test_wrong_arguments() -> None:
    wrong: Any
    for wrong in (
        {},
        {"a": 0.5},
        {"a": 0.5, "b": 0.5, "c": 1e-8},
        {"a": 1.0, "b": 0.0},
        {"a": 1.5, "b": -0.5},
        {"a": math.nan, "b": 1.0},
        {str(i): 1 / 256 for i in range(256)},
    ):
        with pytest.raises(InvalidArgumentError, match="share"):
            expr.hash_split("x", wrong, seed=0)
    for wrong in ([0.5, 0.5], 1, None, {1: 1.0}, {"a": "1"}, {"a": True}):
        with pytest.raises(ArgumentTypeError, match="share"):
            expr.time_split("x", wrong)
    for wrong in (-1, 2**64):
        with pytest.raises(InvalidArgumentError, match="seed"):
            expr.hash_fold("x", 2, seed=wrong)
    for wrong in (1.0, None, "1", True):
        with pytest.raises(ArgumentTypeError, match="seed"):
            expr.stratified_split("y", SHARES, key="x", seed=wrong)
    for wrong in (0, -1):
        with pytest.raises(InvalidArgumentError, match="k must"):
            expr.stratified_fold("y", wrong, key="x", seed=0)
    for wrong in (None, 5, [None], {"x"}):
        with pytest.raises(ArgumentTypeError):
            expr.hash_split(wrong, SHARES, seed=0)
    with pytest.raises(InvalidArgumentError):
        expr.hash_split([], SHARES, seed=0)


@pytest.mark.rule("Nulls in keys")
def test_nulls() -> None:
    frame = pl.DataFrame({"y": ["a", None], "id": [None, 1], "s": ["x", "x"]})
    assert frame.select(expr.hash_split("id", SHARES, seed=0)).to_series().null_count() == 1
    assert frame.select(expr.content_hash("s", "id")).to_series().null_count() == 1
    for asked in (
        expr.stratified_split("y", SHARES, key="s", seed=0),
        expr.stratified_split("s", SHARES, key="y", seed=0),
    ):
        with pytest.raises(pl.exceptions.ComputeError, match="row 1 is null"):
            frame.select(asked)
