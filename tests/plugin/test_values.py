"""Weights from a number a row: published values, edges, refused values and arguments."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from dataset_rt import expr
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

pytestmark = pytest.mark.core


def run(values: Any, weight: pl.Expr, **more: Any) -> list[Any]:
    return pl.DataFrame({"x": values, **more}).select(weight).to_series().to_list()


def near(left: list[float], right: list[float], digits: float = 2e-6) -> None:
    assert len(left) == len(right)
    for found, expected in zip(left, right, strict=True):
        assert math.isclose(found, expected, rel_tol=digits), f"{left} {right}"


@pytest.mark.rule("Weights by value are those of the literature")
def test_published_values() -> None:
    near(run([1, 2, 4], expr.prioritized_weight("x", 0.6)), [0.207766, 0.314914, 0.47732])
    correction = expr.prioritized_correction("x", 0.6, 0.4)
    near(run([1, 2, 4], correction), [1, 0.846745, 0.716978])
    doremi = expr.doremi_weight("x", "excess")
    near(run([0.5, 0.3, 0.2], doremi, excess=[0.2, 0, 0.4]), [0.50493, 0.248211, 0.24686])


@pytest.mark.rule("Weights by value are those of the literature")
def test_priorities_of_zero() -> None:
    assert run([0, 1, 3], expr.prioritized_weight("x", 1)) == [0.0, 0.25, 0.75]
    near(run([0, 1, 3], expr.prioritized_weight("x", 0)), [1 / 3] * 3, 1e-12)
    with pytest.raises(pl.exceptions.ComputeError, match="are 0"):
        run([0, 0], expr.prioritized_weight("x", 1))
    with pytest.raises(pl.exceptions.ComputeError, match="row 1"):
        run([1, 0, 0], expr.prioritized_correction("x", 1, 1, over="g"), g=[1, 2, 2])


@pytest.mark.rule("Weights by value are those of the literature")
def test_hard_examples_break_ties_by_row() -> None:
    losses = [1.0, 3.0, 3.0, 2.0, 3.0]
    assert run(losses, expr.hard_example_weight("x", 0.4)) == [0, 1, 1, 0, 0]
    assert run(losses, expr.hard_example_weight("x", 1e-9)) == [0, 1, 0, 0, 0]
    assert run(losses, expr.hard_example_weight("x", 1)) == [1] * 5
    infinite = [math.inf, 1.0, -math.inf]
    assert run(infinite, expr.hard_example_weight("x", 0.5)) == [1, 1, 0]


@pytest.mark.rule("Weights of 0 stay 0")
def test_zeros_stay() -> None:
    assert run([0.0, 0.1, 9.0], expr.clip_weight("x", 1, 2)) == [0.0, 1.0, 2.0]
    assert run([0, 1, 3], expr.normalize_weight("x")) == [0.0, 0.5, 1.5]
    assert run([0.0, 0.0], expr.normalize_weight("x")) == [0.0, 0.0]
    assert run([0.0, 0.0], expr.effective_sample_size("x")) == [0.0]


@pytest.mark.rule("Weights by value are those of the literature")
def test_extreme_weights() -> None:
    near(run([1.5e308] * 3 + [0.75e308], expr.normalize_weight("x")), [8 / 7] * 3 + [4 / 7], 1e-12)
    near(run([1.5e308] * 4, expr.effective_sample_size("x")), [4.0], 1e-12)
    near(run([1e-300] * 4, expr.effective_sample_size("x")), [4.0], 1e-12)
    assert run([2, 1, 1], expr.effective_sample_size("x")) == [16 / 6]
    far = run([0.5, 0.5], expr.doremi_weight("x", "e", c=0), e=[1e6, 0.0])
    assert far == [1.0, 0.0]


@pytest.mark.rule("Weights that a float doesn't hold are refused")
@pytest.mark.parametrize(
    ("weight", "row"),
    [
        (expr.prioritized_weight("x", 2), 0),
        (expr.prioritized_correction("x", 2, 1), 1),
        (expr.normalize_weight("x"), 0),
    ],
)
def test_underflow(weight: pl.Expr, row: int) -> None:
    with pytest.raises(pl.exceptions.ComputeError, match=f"row {row}"):
        run([1e-300, 1e300], weight)


@pytest.mark.rule("Weights by value say which row they refuse")
@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, None])
@pytest.mark.parametrize(
    "weight",
    [
        expr.normalize_weight("x"),
        expr.prioritized_weight("x", 1),
        expr.prioritized_correction("x", 1, 1),
        expr.doremi_weight("x", "x"),
        expr.expected_share(pl.lit(1), weight="x"),
    ],
)
def test_refused_values(weight: pl.Expr, wrong: float | None) -> None:
    with pytest.raises(pl.exceptions.ComputeError, match="row 2"):
        run([1.0, 2.0, wrong], weight)


@pytest.mark.rule("Weights by value say which row they refuse")
def test_losses_and_types() -> None:
    with pytest.raises(
        pl.exceptions.ComputeError, match="loss must be a number, found NaN in row 1"
    ):
        run([1.0, math.nan], expr.hard_example_weight("x", 0.5))
    with pytest.raises(
        pl.exceptions.ComputeError, match=r"loss must be .* found str in column .x.; use .cast"
    ):
        run(["1"], expr.hard_example_weight("x", 0.5))
    with pytest.raises(pl.exceptions.ComputeError, match=r"p_true must be .* found bool"):
        run([True], expr.focal_weight("x"))
    with pytest.raises(pl.exceptions.ComputeError, match=r"weight must be .* found str"):
        run(["1"], expr.effective_sample_size("x"))


@pytest.mark.rule("Weights by value are those of the literature")
def test_focal() -> None:
    assert run([0.25, 1.5, -0.5, None], expr.focal_weight("x")) == [0.5625, 0.0, 1.0, None]
    assert run([0.5, 1.0], expr.focal_weight("x", 0)) == [1.0, 1.0]
    # Rows that `when` leaves out are not looked at.
    some = pl.when(pl.col("x") > 0).then(expr.focal_weight("x")).otherwise(2.0)
    assert run([0.5, None], some) == [0.25, 2.0]


@pytest.mark.rule("Arguments are checked")
@pytest.mark.parametrize(
    "make",
    [
        lambda: expr.focal_weight("x", -1),
        lambda: expr.clip_weight("x"),
        lambda: expr.clip_weight("x", lower=-1),
        lambda: expr.clip_weight("x", 2, 1),
        lambda: expr.clip_weight("x", upper=0),
        lambda: expr.hard_example_weight("x", 0),
        lambda: expr.hard_example_weight("x", 1.5),
        lambda: expr.prioritized_weight("x", -1),
        lambda: expr.prioritized_correction("x", 1, math.inf),
        lambda: expr.doremi_weight("x", "x", c=2),
        lambda: expr.doremi_weight("x", "x", eta=-1),
        lambda: expr.normalize_weight("x", null="class"),  # type: ignore[arg-type]
    ],
)
def test_options_out_of_range(make: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert caught.value.argument


@pytest.mark.rule("Arguments are checked")
@pytest.mark.parametrize(
    "make",
    [
        lambda: expr.focal_weight("x", "2"),  # type: ignore[arg-type]
        lambda: expr.focal_weight(1),  # type: ignore[arg-type]
        lambda: expr.hard_example_weight("x", None),  # type: ignore[arg-type]
        lambda: expr.doremi_weight("x", 0.5),  # type: ignore[arg-type]
        lambda: expr.effective_sample_size(None),  # type: ignore[arg-type]
    ],
)
def test_options_of_other_types(make: Any) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    assert caught.value.argument
