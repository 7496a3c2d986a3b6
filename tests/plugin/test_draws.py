"""Draws against their chances, a dataset and the libraries that they stand for."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dataset_rt
import polars as pl
import pytest
from dataset_rt import expr
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

from tests.plugin import definitions as plain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.core


@pytest.mark.rule("sample_weighted draws successively")
def test_chances_without_replacement() -> None:
    rounds = 20_000
    frame = pl.DataFrame(
        {
            "g": [g for g in range(rounds) for _ in range(4)],
            "w": [1.0, 2.0, 3.0, 4.0] * rounds,
        }
    )
    drawn = frame.filter(expr.sample_weighted("w", 2, seed=7, over="g"))
    pairs = Counter(tuple(pair) for pair in drawn.group_by("g").agg("w")["w"].to_list())
    chances = {
        (1.0, 2.0): 0.047222,
        (1.0, 3.0): 0.07619,
        (1.0, 4.0): 0.111111,
        (2.0, 3.0): 0.160714,
        (2.0, 4.0): 0.233333,
        (3.0, 4.0): 0.371429,
    }
    assert set(pairs) == set(chances)
    chi = sum((pairs[p] - rounds * c) ** 2 / (rounds * c) for p, c in chances.items())
    assert chi < 30.0
    single = Counter(drawn["w"])
    for weight, chance in zip([1, 2, 3, 4], [0.234524, 0.44127, 0.608333, 0.715873], strict=True):
        assert abs(single[weight] / rounds - chance) < 0.016


@pytest.mark.rule("sample_weighted draws successively")
def test_chances_with_replacement() -> None:
    weights = [1.0, 0.0, 2.0, 5.0]
    frame = pl.DataFrame({"w": weights})
    counts = frame.select(expr.sample_weighted("w", 80_000, seed=1, replacement=True)).to_series()
    assert counts.sum() == 80_000
    assert counts[1] == 0
    expected = [10_000, 20_000, 50_000]
    found = [counts[0], counts[2], counts[3]]
    assert sum((f - e) ** 2 / e for f, e in zip(found, expected, strict=True)) < 23.0


@pytest.mark.rule("sample_weighted draws successively")
def test_extreme_weights() -> None:
    frame = pl.DataFrame({"w": [5e-324, 1e308, 0.0, 1.0]})
    assert frame.select(expr.sample_weighted("w", 1, seed=0)).to_series().to_list() == [
        False,
        True,
        False,
        False,
    ]
    assert frame.select(expr.sample_weighted("w", 3, seed=0)).to_series().sum() == 3
    integers = pl.DataFrame({"w": [3, 0, 1]})
    assert integers.select(expr.sample_weighted("w", 2, seed=0)).to_series().to_list() == [
        True,
        False,
        True,
    ]


@pytest.mark.rule("Draws go by keys, places and groups")
def test_keys_make_draws_stay() -> None:
    frame = pl.DataFrame(
        {
            "id": [f"row {i}" for i in range(500)],
            "w": [float(i % 9 + 1) for i in range(500)],
            "y": [i % 3 for i in range(500)],
        }
    )
    asked = [
        expr.sample_weighted("w", 100, seed=3, key="id").alias("mask"),
        expr.sample_weighted("w", 100, seed=3, key="id", replacement=True).alias("counts"),
        expr.m_per_class("y", 20, seed=3, key="id").alias("class"),
        expr.shuffle_key("id", seed=3).alias("shuffle"),
        expr.repeat_count(pl.col("w") / 4, seed=3, key="id").alias("repeat"),
    ]
    there = frame.with_columns(asked)
    moved = frame.sample(fraction=1.0, shuffle=True, seed=1).with_columns(asked)
    assert moved.sort("id").equals(there.sort("id"))
    by_place = frame.select(expr.sample_weighted("w", 100, seed=3)).to_series()
    assert by_place.to_list() != there["mask"].to_list()


@pytest.mark.rule("Draws go by keys, places and groups")
def test_groups_have_luck_of_their_own() -> None:
    frame = pl.DataFrame({"g": [g for g in range(50) for _ in range(20)], "w": [1.0] * 1000})
    numbers = frame.with_columns(
        own=expr.sample_weighted("w", 5, seed=3, over="g"),
        same=expr.sample_weighted("w", 5, seed=3).over("g"),
        key=expr.shuffle_key(seed=3, over="g"),
    )
    masks = numbers.group_by("g", maintain_order=True).agg("own", "same", "key")
    assert all(sum(mask) == 5 for mask in masks["own"])
    assert len({tuple(mask) for mask in masks["own"]}) > 45
    assert len({tuple(mask) for mask in masks["same"]}) == 1
    assert len({tuple(keys) for keys in masks["key"]}) == 50


@pytest.mark.rule("draw_counts is what a dataset emits")
@pytest.mark.parametrize("replacement", [True, False])
def test_counts_of_a_dataset(tmp_path: Path, *, replacement: bool) -> None:
    class Source:
        name = "numbers"

        def __iter__(self) -> Any:
            for i in range(40):
                yield dataset_rt.CacheInput(bytes([i]), {"number": i})

    runtime = dataset_rt.DatasetRuntime(num_workers=1)
    runtime.write_cache(Source(), tmp_path)
    config = dataset_rt.ReaderConfig(seed=2**63 + 5, replacement=replacement)
    dataset = runtime.cached_dataset([tmp_path / "numbers"], reader_config=config)
    table = dataset.get_metadata().with_columns(
        weight=(pl.col("number") % 7).cast(pl.Float64) + 0.5
    )
    dataset.update_metadata(table, stream=9)
    dataset.set_epoch_len(130)
    emitted = Counter(sample.metadata["number"] for sample in dataset)
    counts = table.select(
        expr.draw_counts("weight", 130, seed=2**63 + 5, stream=9, replacement=replacement)
    ).to_series()
    assert counts.to_list() == [emitted[number] for number in range(40)]
    assert counts.sum() == 130


@pytest.mark.rule("m_per_class takes m of each class")
def test_m_of_each_class() -> None:
    labels = ["a"] * 50 + ["b"] * 3 + ["c"]
    frame = pl.DataFrame({"y": labels}).sample(fraction=1.0, shuffle=True, seed=1)
    counts = frame.with_columns(n=expr.m_per_class("y", 8, seed=5))
    assert counts.group_by("y").agg(pl.col("n").sum())["n"].to_list() == [8, 8, 8]
    assert sorted(counts.filter(y="b")["n"]) == [2, 3, 3]
    assert counts.filter(y="a")["n"].max() == 1
    # A count of 0 becomes a null on older Polars.
    batch = counts.select(pl.col("y").repeat_by("n").explode()).drop_nulls()
    assert Counter(batch["y"]) == {"a": 8, "b": 8, "c": 8}


@pytest.mark.rule("Orders and buckets follow their formulas")
def test_lengths_are_grouped_as_by_transformers() -> None:
    generator = random.Random(4)
    for rows, batch_size in ((1, 4), (7, 2), (100, 3), (1000, 4), (997, 1)):
        lengths = [generator.randrange(50) for _ in range(rows)]
        order = generator.sample(range(rows), rows)
        frame = pl.DataFrame({"length": lengths, "order": order, "row": range(rows)})
        key = expr.length_group_key("length", batch_size, order="order")
        assert frame.sort(key)["row"].to_list() == plain.length_order(lengths, batch_size, order)


@pytest.mark.rule("Orders and buckets follow their formulas")
def test_shuffled_rows_are_a_permutation_by_chance() -> None:
    orders: Counter[tuple[int, ...]] = Counter()
    for seed in range(6000):
        keys = pl.DataFrame({"x": range(3)}).select(expr.shuffle_key(seed=seed)).to_series()
        orders[tuple(keys.arg_sort())] += 1
    assert len(orders) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in orders.values()) < 30.0


@pytest.mark.rule("Orders and buckets follow their formulas")
def test_buckets_have_like_sizes() -> None:
    frame = pl.DataFrame({"x": [i * 7919 % 1000 for i in range(1000)]})
    sizes = Counter(frame.select(expr.bucket("x", n=8)).to_series())
    assert sizes == dict.fromkeys(range(8), 125)
    found = frame.with_columns(b=expr.bucket("x", n=8)).sort("x")["b"]
    assert all(low <= high for low, high in pairwise(found))
    edges = pl.DataFrame({"x": [-math.inf, 0.0, 1.0, 2.5, math.inf]})
    assert edges.select(expr.bucket("x", edges=[0, 2.5])).to_series().to_list() == [0, 1, 1, 2, 2]
    for n in (1, 2):
        with pytest.raises(pl.exceptions.ComputeError, match="row 1 is NaN"):
            pl.DataFrame({"x": [0.0, math.nan]}).select(expr.bucket("x", n=n))


@pytest.mark.rule("repeat_count is right on average")
def test_factors_are_rounded_at_random() -> None:
    frame = pl.DataFrame({"f": [0.3] * 10_000 + [2.75] * 10_000 + [4.0] * 100})
    counts = frame.with_columns(n=expr.repeat_count("f", seed=2)).group_by("f").agg("n").sort("f")
    found = dict(zip(counts["f"], counts["n"].to_list(), strict=True))
    assert set(found[0.3]) == {0, 1}
    assert set(found[2.75]) == {2, 3}
    assert set(found[4.0]) == {4}
    assert abs(sum(found[0.3]) - 3000) < 230
    assert abs(sum(found[2.75]) - 27_500) < 220


@pytest.mark.rule("Draws refuse what they can't draw")
def test_what_is_refused() -> None:
    for weights in ([1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [1.0, None]):
        frame = pl.DataFrame({"w": weights})
        for asked in (
            expr.sample_weighted("w", 1, seed=0),
            expr.sample_weighted("w", 1, seed=0, replacement=True),
            expr.draw_counts("w", 1, seed=0),
        ):
            with pytest.raises(pl.exceptions.ComputeError, match="row 1"):
                frame.select(asked)
    frame = pl.DataFrame({"w": [1.0, 0.0, 1.0], "g": [0, 0, 1], "id": [1, None, 2]})
    with pytest.raises(pl.exceptions.ComputeError, match="n = 3"):
        frame.select(expr.sample_weighted("w", 3, seed=0))
    with pytest.raises(pl.exceptions.ComputeError, match="group of row 0"):
        frame.select(expr.sample_weighted("w", 2, seed=0, over="g"))
    with pytest.raises(pl.exceptions.ComputeError, match="key of row 1"):
        frame.select(expr.sample_weighted("w", 1, seed=0, key="id"))
    nothing = pl.DataFrame({"w": [0.0]})
    with pytest.raises(pl.exceptions.ComputeError, match="above 0"):
        nothing.select(expr.draw_counts("w", 1, seed=0))
    assert nothing.select(expr.sample_weighted("w", 0, seed=0)).item() is False
    assert frame.clear().select(expr.sample_weighted("w", 5, seed=0)).is_empty()


@pytest.mark.rule("Arguments are checked")
def test_wrong_arguments() -> None:
    wrong: Any
    for wrong in (-1, 2**32):
        with pytest.raises(InvalidArgumentError):
            expr.sample_weighted("w", wrong, seed=0)
        with pytest.raises(InvalidArgumentError):
            expr.m_per_class("y", wrong, seed=0)
    for wrong in (1.5, "1", None, True):
        with pytest.raises(ArgumentTypeError):
            expr.draw_counts("w", wrong, seed=0)
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError):
            expr.curriculum_mask("x", wrong)
    with pytest.raises(InvalidArgumentError):
        expr.length_group_key("x", 0, order="o")
    for wrong in ({}, {"edges": [1], "n": 2}, {"n": 0}, {"edges": []}, {"edges": [1, 1]}):
        with pytest.raises(InvalidArgumentError):
            expr.bucket("x", **wrong)
    for wrong in ({"edges": "ab"}, {"edges": ["a"]}, {"n": 1.0}):
        with pytest.raises(ArgumentTypeError):
            expr.bucket("x", **wrong)
