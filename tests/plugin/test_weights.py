"""Weights against their definitions and published values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import pytest
from dataset_rt import expr
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError
from polars.testing import assert_series_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.core

Engine = Literal["in-memory", "streaming"]
ENGINES: list[Engine] = ["in-memory", "streaming"]


def formula(classes: Sequence[Any], *, over_classes: bool = False) -> list[float]:
    """Rows / (classes x rows of the class), with plain Python."""
    counts: dict[Any, int] = {}
    for value in classes:
        counts[value] = counts.get(value, 0) + 1
    weights = {value: len(classes) / (len(counts) * count) for value, count in counts.items()}
    mean = sum(weights.values()) / len(weights) if over_classes else 1.0
    return [weights[value] / mean for value in classes]


def close(left: Sequence[float | None], right: Sequence[float | None]) -> None:
    expected = pl.Series(right, dtype=pl.Float64)
    assert_series_equal(pl.Series(left, dtype=pl.Float64), expected, rel_tol=1e-14, abs_tol=0.0)


@pytest.mark.rule("balanced_weight balances classes")
@pytest.mark.parametrize("engine", ENGINES)
def test_values(engine: Engine) -> None:
    labels = ["a"] * 6 + ["b"] * 3 + ["c"]
    frame = pl.LazyFrame({"label": labels, "number": range(10)})
    result = frame.select(expr.balanced_weight("label")).collect(engine=engine)
    assert result.schema == {"label": pl.Float64}
    close(result["label"].to_list(), [10 / 18] * 6 + [10 / 9] * 3 + [10 / 3])
    assert math.isclose(result["label"].mean() or 0.0, 1.0)  # type: ignore[arg-type]


@pytest.mark.rule("balanced_weight balances classes")
def test_values_of_scikit_learn() -> None:
    utils = pytest.importorskip("sklearn.utils.class_weight")
    labels = [(i * i + i // 7) % 5 for i in range(997)]
    weights = pl.select(expr.balanced_weight(pl.lit(pl.Series("y", labels))))["y"]
    close(weights.to_list(), utils.compute_sample_weight("balanced", labels).tolist())


@pytest.mark.rule("balanced_weight balances classes")
@pytest.mark.parametrize(
    "values",
    [
        [True, False, False],
        [1, -5, 1, 2**62],
        [0.5, math.nan, math.nan, -0.0, 0.0],
        ["x", "", "x"],
        [b"1", b"2", b"2"],
        [[1], [1, 2], [1]],
    ],
    ids=repr,
)
def test_any_type_of_class(values: list[Any]) -> None:
    # 0.0 and -0.0 are one class, all NaN are one.
    keys = [str(value + 0.0) if isinstance(value, float) else str(value) for value in values]
    column = pl.Series("c", values)
    close(pl.select(expr.balanced_weight(pl.lit(column)))["c"].to_list(), formula(keys))


@pytest.mark.rule("balanced_weight balances classes")
@pytest.mark.parametrize("normalize", ["rows", "classes", None])
def test_scales(normalize: Literal["rows", "classes"] | None) -> None:
    labels = [1, 1, 1, 2, 3, 3]
    frame = pl.DataFrame({"y": labels})
    weights = frame.select(expr.balanced_weight("y", normalize=normalize))["y"].to_list()
    close(weights, formula(labels, over_classes=normalize == "classes"))


@pytest.mark.rule("balanced_weight balances classes")
def test_several_columns_make_one_class() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2, 1], "b": ["x", "y", "x", "x", "x"]})
    weights = frame.select(expr.balanced_weight("a", pl.col("b")))["a"].to_list()
    close(weights, formula(list(zip(frame["a"], frame["b"], strict=True))))


@pytest.mark.rule("Nulls in balanced_weight are a choice")
@pytest.mark.parametrize("engine", ENGINES)
def test_nulls(engine: Engine) -> None:
    labels = ["a", None, "a", "b", None]
    frame = pl.LazyFrame({"y": labels})
    with pytest.raises(pl.exceptions.ComputeError, match="null"):
        frame.select(expr.balanced_weight("y")).collect(engine=engine)
    counted = frame.select(expr.balanced_weight("y", null="class")).collect(engine=engine)
    close(counted["y"].to_list(), formula(labels))
    zero = frame.select(expr.balanced_weight("y", null="zero")).collect(engine=engine)
    a, _, b = formula(["a", "a", "b"])
    close(zero["y"].to_list(), [a, 0.0, a, b, 0.0])


@pytest.mark.rule("Nulls in balanced_weight are a choice")
@pytest.mark.parametrize("engine", ENGINES)
def test_only_nulls(engine: Engine) -> None:
    frame = pl.LazyFrame({"y": pl.Series([None] * 4, dtype=pl.Int64)})
    with pytest.raises(pl.exceptions.ComputeError):
        frame.select(expr.balanced_weight("y")).collect(engine=engine)
    for null, expected in (("class", [1.0] * 4), ("zero", [0.0] * 4)):
        weight = expr.balanced_weight("y", null=null)  # type: ignore[arg-type]
        close(frame.select(weight).collect(engine=engine)["y"].to_list(), expected)


@pytest.mark.rule("Expressions never end the process", "Arguments are checked")
def test_wrong_arguments() -> None:
    wrong: Any
    for wrong in ("mean", "", 1):
        with pytest.raises(InvalidArgumentError):
            expr.balanced_weight("y", normalize=wrong)
        with pytest.raises(InvalidArgumentError):
            expr.balanced_weight("y", null=wrong)
    with pytest.raises(InvalidArgumentError):
        expr.balanced_weight()
    for wrong in (None, 5, ["y"]):
        with pytest.raises(ArgumentTypeError):
            expr.balanced_weight(wrong)
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        pl.DataFrame({"x": [1]}).select(expr.balanced_weight("y"))
