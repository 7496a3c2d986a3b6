"""What every public expression keeps, whatever it computes: each row of the registry is run."""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
from collections import Counter
from typing import Any, Literal

import polars as pl
import pytest
from dataset_rt import expr

from tests.plugin.registry import ROWS, Example, Row

Engine = Literal["in-memory", "streaming"]
ENGINES: list[Engine] = ["in-memory", "streaming"]
GROUP = "the group"
OUT = "the result"

EXAMPLES = [
    pytest.param(row, example, id=f"{row.name}-{number}")
    for row in ROWS
    for number, example in enumerate(row.examples)
]


def matches(row: Row, found: Any, expected: Any) -> bool:
    """Whether two values, or lists of them, agree as far as the row promises."""
    if isinstance(expected, (list, tuple, pl.Series)):
        return len(found) == len(expected) and all(
            matches(row, left, right) for left, right in zip(found, expected, strict=True)
        )
    if isinstance(expected, float) and isinstance(found, float):
        if math.isnan(expected):
            return math.isnan(found)
        return math.isclose(found, expected, rel_tol=row.rtol, abs_tol=0.0)
    return type(found) is type(expected) and bool(found == expected)


def check(row: Row, found: pl.Series, expected: Any) -> None:
    assert matches(row, found.to_list(), expected), f"{found.to_list()} is not {expected}"


def defined(example: Example, frame: pl.DataFrame, group: Any = None) -> list[Any]:
    """What the definition says, as a list; raises ValueError where it is to fail."""
    said = example.definition(frame, group)
    return list(said) if isinstance(said, (list, tuple, pl.Series)) else [said]


def in_groups(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a group column: groups of different sizes that lie mixed, one of them null."""
    names = ["p", "q", "p", None, "q", "p", "p"]
    column = [names[i % len(names)] for i in range(frame.height)]
    return frame.with_columns(pl.Series(GROUP, column, dtype=pl.String))


def parts(frame: pl.DataFrame) -> dict[Any, pl.DataFrame]:
    """The frame of each group, in the order in which groups come."""
    return {
        group: frame.filter(pl.col(GROUP).eq_missing(pl.lit(group, dtype=pl.String))).drop(GROUP)
        for group in dict.fromkeys(frame[GROUP])
    }


def spread(frame: pl.DataFrame, of_group: dict[Any, list[Any]]) -> list[Any]:
    """One value a row from the values of each group, in row order or one for all of its rows."""
    sizes = Counter(frame[GROUP])
    seen: Counter[Any] = Counter()
    values = []
    for group in frame[GROUP]:
        own = of_group[group]
        values.append(own[seen[group] if len(own) == sizes[group] else 0])
        seen[group] += 1
    return values


def run(frame: pl.DataFrame, expression: pl.Expr, engine: Engine) -> pl.Series:
    return frame.lazy().select(expression.alias(OUT)).collect(engine=engine)[OUT]


@pytest.mark.rule("Every expression is registered")
def test_every_function_has_one_row() -> None:
    functions = [name for name in expr.__all__ if inspect.isfunction(getattr(expr, name))]
    assert sorted(functions) == sorted(row.name for row in ROWS)
    assert len(functions) >= 1
    for row in ROWS:
        assert row.examples, row.name
        assert row.over or row.kind != "column" or not row.of_column, row.name


@pytest.mark.rule("Expressions work in every context", "Expressions agree on both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_select(row: Row, example: Example, engine: Engine) -> None:
    expected = defined(example, example.frame)
    found = run(example.frame, example.call(), engine)
    assert found.dtype == (example.dtype or row.dtype)
    check(row, found, expected)
    lazy = example.frame.lazy().select(example.call().alias(OUT))
    assert lazy.collect_schema()[OUT] == found.dtype
    check(row, example.frame.select(example.call()).to_series(), expected)
    # The name is that of the first column that the expression reads, or of the function.
    for first in example.call().meta.root_names()[:1]:
        assert example.frame.select(example.call()).columns == [row.output or first]
    wide = example.frame.lazy().with_columns(example.call().alias(OUT)).collect(engine=engine)
    height = example.frame.height
    check(row, wide[OUT], expected if row.kind != "reduction" else expected * height)


@pytest.mark.rule("Expressions work in every context")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_filter(row: Row, example: Example, engine: Engine) -> None:
    frame = example.frame.with_row_index("the row")
    series = example.frame.select(example.call()).to_series()
    values = series.to_list()
    # Neither engine adds floats up in a certain order.
    tolerance = row.rtol * abs(values[0]) if isinstance(values[0], float) else None
    if series.dtype.is_nested():
        mask = [value is not None for value in values]
        predicate = example.call().is_not_null()
    elif tolerance is None:
        mask = [value == values[0] for value in values]
        predicate = example.call().eq_missing(pl.lit(values[0], dtype=series.dtype))
    else:
        mask = [value is not None and abs(value - values[0]) <= tolerance for value in values]
        predicate = (example.call() - values[0]).abs() <= tolerance
    if row.kind == "reduction":
        mask *= frame.height
    kept = frame.lazy().filter(predicate).collect(engine=engine)
    assert kept["the row"].to_list() == [i for i, keep in enumerate(mask) if keep]


@pytest.mark.rule("Expressions work in every context")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_group_by_and_over(row: Row, example: Example, engine: Engine) -> None:
    frame = in_groups(example.frame)
    of_group = {group: defined(example, part) for group, part in parts(frame).items()}
    grouped = frame.lazy().group_by(GROUP, maintain_order=True).agg(example.call().alias(OUT))
    found = grouped.collect(engine=engine)
    assert found[GROUP].to_list() == list(of_group)
    expected = [values[0] if row.kind == "reduction" else values for values in of_group.values()]
    check(row, found[OUT], expected)
    check(row, run(frame, example.call().over(GROUP), engine), spread(frame, of_group))


@pytest.mark.rule("over= computes groups in one call")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_groups_of_its_own(row: Row, example: Example, engine: Engine) -> None:
    if not row.over:
        assert "over" not in inspect.signature(getattr(expr, row.name)).parameters
        return
    frame = in_groups(example.frame)
    for over, more in ((GROUP, ()), (pl.col(GROUP), ()), ([GROUP, pl.lit(1)], (1,))):
        of_group = {
            group: defined(example, part, (group, *more)) for group, part in parts(frame).items()
        }
        expected = spread(frame, of_group)
        check(row, run(frame, example.call(over=over), engine), expected)
    # One group is no other than none, and a lone row is a group.
    lone = {i: example.frame[i] for i in range(example.frame.height)}
    alone = [defined(example, part, (group,))[0] for group, part in lone.items()]
    indexed = frame.with_row_index("the row")
    check(row, run(indexed, example.call(over="the row"), engine), alone)


@pytest.mark.rule("Expressions agree on both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_chunks_and_slices(row: Row, example: Example, engine: Engine) -> None:
    copies = -(-1000 // example.frame.height)
    whole = pl.concat([example.frame] * copies, rechunk=True)
    expected = defined(example, whole)
    ends = [whole.height * i // 1000 for i in range(1001)]
    pieces = [whole[start:end] for start, end in itertools.pairwise(ends)]
    chunked = pl.concat(pieces, rechunk=False)
    # Polars may join a few of them.
    assert chunked.n_chunks() > 900
    around = pl.concat([whole[:7], whole, whole[:3]], rechunk=True)
    sliced = around.slice(7, whole.height)
    for frame in (whole, chunked, sliced):
        check(row, run(frame, example.call(), engine), expected)
    if row.over:
        grouped = in_groups(chunked)
        of_group = {
            group: defined(example, part, (group,)) for group, part in parts(grouped).items()
        }
        check(row, run(grouped, example.call(over=GROUP), engine), spread(grouped, of_group))


def outcome(row: Row, example: Example, frame: pl.DataFrame, engine: Engine) -> None:
    """The frame gives what the definition says of it, or fails where it says so."""
    calls = [example.call()]
    if row.over:
        calls.append(example.call(over=pl.lit(1)))
    for call in calls:
        try:
            expected = defined(example, frame, None if call is calls[0] else (1,))
        except ValueError:
            with pytest.raises(pl.exceptions.ComputeError) as failure:
                run(frame, call, engine)
            assert "PANIC" not in str(failure.value)
        else:
            check(row, run(frame, call, engine), expected)


@pytest.mark.rule("Expressions agree on both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_no_rows(row: Row, example: Example, engine: Engine) -> None:
    outcome(row, example, example.frame.clear(), engine)
    found = run(in_groups(example.frame.clear()), example.call().over(GROUP), engine)
    assert found.is_empty()


@pytest.mark.rule("Expressions agree on both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_nulls_alone(row: Row, example: Example, engine: Engine) -> None:
    nulls = example.frame.clear(n=5)
    outcome(row, example, nulls, engine)


@pytest.mark.rule("Expressions agree on both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_not_a_number(row: Row, example: Example, engine: Engine) -> None:
    nan = pl.lit(math.nan)
    for some in (pl.lit(value=True), pl.int_range(pl.len()) % 3 == 1):
        frame = example.frame.with_columns(
            pl.when(some).then(nan.cast(dtype)).otherwise(pl.col(name)).alias(name)
            for name, dtype in example.frame.schema.items()
            if dtype.is_float()
        )
        outcome(row, example, frame, engine)


@pytest.mark.rule("Expressions pickle")
@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_pickles(row: Row, example: Example) -> None:
    again = pickle.loads(pickle.dumps(example.call()))
    check(row, example.frame.select(again).to_series(), defined(example, example.frame))


@pytest.mark.rule("The drt namespaces are the functions")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_namespaces(row: Row) -> None:
    on: Any
    for on in (pl.Expr, pl.Series):
        if not row.of_column:
            assert not hasattr(on.drt, row.name)
            continue
        method = getattr(on.drt, row.name)
        assert method.__doc__ == getattr(expr, row.name).__doc__


@pytest.mark.rule("The drt namespaces are the functions")
def test_methods_of_the_namespaces() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, 2], "g": [0, 0, 1]})
    left = pl.col("a").drt.balanced_weight("b", null="zero", over="g")  # type: ignore[attr-defined]
    right = expr.balanced_weight("a", "b", null="zero", over="g")
    assert frame.select(left).equals(frame.select(right))
    series = frame["a"].drt.balanced_weight(normalize=None)  # type: ignore[attr-defined]
    assert series.equals(frame.select(expr.balanced_weight("a", normalize=None))["a"])
