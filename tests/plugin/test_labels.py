"""Repeat factors and caps: published values and edges."""

from __future__ import annotations

import math

import polars as pl
import pytest
from dataset_rt import expr

pytestmark = pytest.mark.core


@pytest.mark.rule("Repeat factors go by the rarest label")
def test_published_repeat_factors() -> None:
    frame = pl.DataFrame({"y": ["a"] * 6 + ["b"] * 3 + ["c"]})
    found = frame.select(expr.repeat_factor("y", 0.4))["y"].to_list()
    expected = [1.0] * 6 + [math.sqrt(0.4 / 0.3)] * 3 + [2.0]
    assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(found, expected, strict=True))


@pytest.mark.rule("Repeat factors go by the rarest label")
def test_lists_count_a_label_once_a_row() -> None:
    # "a" is in two of four rows, though it stands there three times; "b" in one.
    lists = pl.Series("y", [["a", "a"], ["a", "b"], [], None])
    found = pl.DataFrame(lists).select(expr.repeat_factor("y", 2.0))["y"].to_list()
    assert found == [2.0, math.sqrt(8), 1.0, 1.0]
    # A slice of lists doesn't see what is around it.
    wide = pl.concat([pl.Series("y", [["b"] * 3]), lists, pl.Series("y", [["a"]])], rechunk=True)
    sliced = pl.DataFrame(wide.slice(1, 4)).select(expr.repeat_factor("y", 2.0))["y"].to_list()
    assert sliced == found
    several = pl.concat([lists, lists], rechunk=False)
    assert pl.DataFrame(several).select(expr.repeat_factor("y", 2.0))["y"].to_list() == found * 2


@pytest.mark.rule("Caps keep the first rows of a class")
def test_caps() -> None:
    frame = pl.DataFrame({"y": ["a", "b", "a", "a", "b", None], "n": range(6)})
    kept = frame.filter(expr.cap_per_class("y", n=2, null="class"))
    assert kept["n"].to_list() == [0, 1, 2, 4, 5]
    assert frame.filter(expr.cap_per_class("y", n=1, null="zero"))["n"].to_list() == [0, 1]
    assert frame.filter(expr.cap_per_class("n", n=0)).is_empty()
    with pytest.raises(pl.exceptions.ComputeError, match="row 5"):
        frame.filter(expr.cap_per_class("y", n=1))
