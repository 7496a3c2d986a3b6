"""Weights by class: published values, types of classes, nulls, refused arguments."""

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


def by_class(weights: pl.Expr) -> list[float]:
    """The weights of three classes with 6, 3 and 1 rows."""
    frame = pl.DataFrame({"y": ["a", "b", "a", "c", "a", "b", "a", "b", "a", "a"]})
    found = frame.with_columns(w=weights).unique("y").sort("y")
    return found["w"].to_list()


def shares(weights: pl.Expr) -> list[float]:
    return by_class(expr.expected_share("y", weight=weights))


def near(left: list[float], right: list[float], digits: float = 5e-7) -> None:
    assert len(left) == len(right)
    for found, expected in zip(left, right, strict=True):
        assert math.isclose(found, expected, rel_tol=digits), f"{left} {right}"


@pytest.mark.rule("Weights by class are those of the literature")
def test_effective_numbers() -> None:
    weight = expr.effective_number_weight("y", normalize="classes")
    near(by_class(weight), [0.33400048, 0.66699996, 1.99899956], 5e-9)
    # The formula as written has no digits left here; its limit is 1 / n.
    near(
        by_class(expr.effective_number_weight("y", beta=1 - 1e-15, normalize=None)),
        [1 / 6, 1 / 3, 1],
        1e-12,
    )
    assert by_class(expr.effective_number_weight("y", beta=0)) == [1.0] * 3


@pytest.mark.rule("Weights by class are those of the literature")
def test_temperatures() -> None:
    near(shares(expr.temperature_weight("y", temperature=2)), [0.472734, 0.334273, 0.192993], 2e-6)
    near(shares(expr.temperature_weight("y", alpha=0.3)), [0.417285, 0.338941, 0.243774], 2e-6)
    near(shares(expr.temperature_weight("y", alpha=0.7)), [0.526076, 0.323838, 0.150087], 5e-6)
    near(shares(expr.temperature_weight("y", temperature=1, limit=4)), [0.5, 0.375, 0.125])
    near(shares(expr.temperature_weight("y", alpha=0)), [1 / 3] * 3, 1e-12)
    # Mean 1 over the rows, and over the classes; the raw formula is the share over the rows.
    near(
        [
            math.fsum(n * w for n, w in zip((6, 3, 1), by_class(weight), strict=True))
            for weight in (
                expr.temperature_weight("y", alpha=0.5),
                expr.temperature_weight("y", alpha=0.5, normalize=None),
            )
        ],
        [10, 1],
        1e-12,
    )
    near([sum(by_class(expr.temperature_weight("y", alpha=0.5, normalize="classes")))], [3], 1e-12)


@pytest.mark.rule("Weights by class are those of the literature")
def test_unimax() -> None:
    def dealt(budget: float, epochs: float) -> list[float]:
        return shares(expr.unimax_weight("y", budget=budget, max_epochs=epochs))

    near(dealt(3, 1), [1 / 3] * 3, 1e-12)
    # The smallest gives 1 of its 3, then 4 each are left: 3 for the second, 5 for the largest.
    near(dealt(9, 1), [5 / 9, 3 / 9, 1 / 9], 1e-12)
    near(dealt(1e6, 2), [0.6, 0.3, 0.1], 1e-12)


@pytest.mark.rule("Weights that a float doesn't hold are refused")
def test_underflow() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1]})
    with pytest.raises(pl.exceptions.ComputeError, match="row 2"):
        frame.select(expr.temperature_weight("y", alpha=2000))
    with pytest.raises(InvalidArgumentError, match="temperature"):
        expr.temperature_weight("y", temperature=1e-320)


@pytest.mark.rule("A mixture has a share for each source")
@pytest.mark.parametrize(
    ("values", "given"),
    [
        (["a", "b", "b", "b"], {"a": 0.25, "b": 0.75}),
        ([1, 2, 2, 2], {1: 0.25, 2.0: 0.75}),
        ([-(2**63), 2**63 - 1, 2**63 - 1, 2**63 - 1], {-(2**63): 0.25, 2**63 - 1: 0.75}),
        ([0.5, 2.0, 2.0, 2.0], {0.5: 0.25, 2: 0.75}),
        ([True, False, False, False], {True: 0.25, False: 0.75}),
        (pl.Series(["a", "b", "b", "b"], dtype=pl.Categorical), {"b": 0.75, "a": 0.25}),
        (pl.Series([2**64 - 1, 7, 7, 7], dtype=pl.UInt64), {2**64 - 1: 0.25, 7: 0.75}),
    ],
    ids=str,
)
def test_keys_of_mixtures(values: Any, given: dict[Any, float]) -> None:
    frame = pl.DataFrame({"y": values})
    for normalize, mean in (("rows", 0.25), ("classes", 0.25), (None, 1.0)):
        weight = expr.mixture_weight("y", given, normalize=normalize)  # type: ignore[arg-type]
        close(frame.select(weight)["y"].to_list(), [0.25 / mean] + [0.25 / mean] * 3)


@pytest.mark.rule("A mixture has a share for each source")
def test_sources_and_shares_must_match() -> None:
    frame = pl.DataFrame({"y": ["a", "b", None], "g": [0, 1, 1]})

    def run(given: dict[Any, float], **options: Any) -> list[float]:
        return frame.select(expr.mixture_weight("y", given, **options))["y"].to_list()

    with pytest.raises(pl.exceptions.ComputeError, match=r"no share for the value .*b.* of row 1"):
        run({"a": 1.0}, null="zero")
    with pytest.raises(pl.exceptions.ComputeError, match="c"):
        run({"a": 0.25, "b": 0.5, "c": 0.25}, null="zero")
    with pytest.raises(pl.exceptions.ComputeError, match="null"):
        run({"a": 0.5, "b": 0.5})
    with pytest.raises(pl.exceptions.ComputeError, match="no share"):
        run({"a": 0.5, "b": 0.5}, null="class")
    close(run({"a": 0.5, "b": 0.25, None: 0.25}, null="class"), [1.5, 0.75, 0.75])
    close(run({"a": 1.0, "b": 0.0, "c": 0.0}, null="zero"), [2.0, 0.0, 0.0])
    # A group that lacks a source shares out what is left, if anything is.
    close(run({"a": 0.25, "b": 0.75}, null="zero", over="g"), [1.0, 1.0, 0.0])
    with pytest.raises(pl.exceptions.ComputeError, match="share above 0"):
        run({"a": 1.0, "b": 0.0}, null="zero", over="g")


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
        if not isinstance(wrong, list):
            with pytest.raises(ArgumentTypeError):
                expr.balanced_weight("y", over=[wrong])
    with pytest.raises(InvalidArgumentError):
        expr.balanced_weight("y", over=[])
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        pl.DataFrame({"x": [1]}).select(expr.balanced_weight("y"))


@pytest.mark.rule("Arguments are checked")
@pytest.mark.parametrize(
    "make",
    [
        lambda: expr.effective_number_weight("y", beta=1),
        lambda: expr.effective_number_weight("y", beta=-0.1),
        lambda: expr.effective_number_weight("y", beta=math.nan),
        lambda: expr.temperature_weight("y"),
        lambda: expr.temperature_weight("y", temperature=1, alpha=1),
        lambda: expr.temperature_weight("y", temperature=0),
        lambda: expr.temperature_weight("y", alpha=-1),
        lambda: expr.temperature_weight("y", alpha=1, limit=0),
        lambda: expr.unimax_weight("y", budget=0, max_epochs=1),
        lambda: expr.unimax_weight("y", budget=1, max_epochs=math.inf),
        lambda: expr.mixture_weight("y", {"a": 0.5}),
        lambda: expr.mixture_weight("y", {"a": 0.5, "b": 0.5 + 1e-8}),
        lambda: expr.mixture_weight("y", {"a": 1.5, "b": -0.5}),
        lambda: expr.mixture_weight("y", {}),
        lambda: expr.expected_share(weight="w"),
        lambda: expr.repeat_factor("y", 0),
        lambda: expr.cap_per_class("y", n=-1),
        lambda: expr.cap_per_class(n=1),
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
        lambda: expr.effective_number_weight("y", beta="0.9"),  # type: ignore[arg-type]
        lambda: expr.temperature_weight("y", alpha=True),
        lambda: expr.temperature_weight("y", alpha=[1]),  # type: ignore[arg-type]
        lambda: expr.mixture_weight("y", ["a"]),  # type: ignore[arg-type]
        lambda: expr.mixture_weight("y", {b"a": 1.0}),
        lambda: expr.mixture_weight("y", {"a": "1"}),  # type: ignore[dict-item]
        lambda: expr.expected_share("y", weight=1.0),  # type: ignore[arg-type]
        lambda: expr.cap_per_class("y", n=1.5),  # type: ignore[arg-type]
    ],
)
def test_options_of_other_types(make: Any) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    assert caught.value.argument
