"""A column of any type gives an answer or an exception, never the end of the process."""

from __future__ import annotations

import pytest

from tests import support

COLUMNS = {
    "Boolean": "pl.Series([True, False, None])",
    "Int8": "pl.Series([1, 2, None], dtype=pl.Int8)",
    "Int64": "pl.Series([1, 2, None])",
    "Int128": "pl.Series([1, 2, None]).cast(pl.Int128)",
    "UInt64": "pl.Series([1, 2, None], dtype=pl.UInt64)",
    "Float32": "pl.Series([1.0, float('nan'), None], dtype=pl.Float32)",
    "Float64": "pl.Series([1.0, float('nan'), None])",
    "Decimal": "pl.Series(['1.0', '2.0', None]).cast(pl.Decimal(10, 2))",
    "String": "pl.Series(['a', 'b', None])",
    "Binary": "pl.Series([b'a', b'b', None])",
    "Categorical": "pl.Series(['a', 'b', None]).cast(pl.Categorical)",
    "Enum": "pl.Series(['a', 'b', None]).cast(pl.Enum(['a', 'b']))",
    "Date": "pl.Series([1, 2, None]).cast(pl.Int32).cast(pl.Date)",
    "Datetime": "pl.Series([1, 2, None]).cast(pl.Datetime('us', 'UTC'))",
    "Duration": "pl.Series([1, 2, None]).cast(pl.Duration)",
    "Time": "pl.Series([1, 2, None]).cast(pl.Time)",
    "List": "pl.Series([[1], [2, 3], None])",
    "Array": "pl.Series([[1], [2], None], dtype=pl.Array(pl.Int64, 1))",
    "Struct": "pl.Series([{'a': 1}, {'a': 2}, None])",
    "Null": "pl.Series([None, None, None])",
    "Object": "pl.Series([object(), object(), None], dtype=pl.Object)",
}

PROGRAM = """
import sys
import polars as pl
from dataset_rt import expr
from dataset_rt._plugin import call
column = eval(sys.argv[1])
frame = pl.DataFrame({"x": column})
options = {"normalize": "rows", "null": "class"}
asked = [
    lambda: frame.select(expr.balanced_weight("x", null="class")),
    lambda: frame.lazy().select(expr.balanced_weight("x", null="zero")).collect(engine="streaming"),
    # Past the typed function, straight at the native one.
    lambda: frame.select(call("balanced_weight", [pl.col("x")], options)),
    lambda: frame.select(call("balanced_weight", [pl.col("x"), pl.col("x")], options)),
    lambda: frame.select(call("balanced_weight", [pl.col("x")], {"normalize": "no", "null": "no"})),
    lambda: frame.select(call("balanced_weight", [pl.col("x")], {"other": 1})),
]
outcomes = []
for ask in asked:
    try:
        outcomes.append(str(ask().height))
    except Exception as error:
        outcomes.append(type(error).__module__.split(".")[0])
print(*outcomes)
"""


@pytest.mark.rule("Expressions never end the process")
@pytest.mark.parametrize("dtype", COLUMNS)
def test_columns_of_any_type(dtype: str) -> None:
    done = support.run(PROGRAM, COLUMNS[dtype], check=False)
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.split()
    assert len(outcomes) == 6
    assert set(outcomes) <= {"3", "polars"}
    # A wrong number of columns and unknown options are never an answer.
    assert outcomes[3:] == ["polars"] * 3
