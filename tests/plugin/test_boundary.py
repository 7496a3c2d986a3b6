"""A column of any type gives an answer or an exception, never the end of the process."""

from __future__ import annotations

import json

import pytest

from tests import support

# Columns of Python objects are left out: they reach native code as bare pointers.
COLUMNS = {
    "Boolean": "[True, False, None], dtype=pl.Boolean",
    "Int8": "[1, 2, None], dtype=pl.Int8",
    "Int16": "[1, 2, None], dtype=pl.Int16",
    "Int32": "[1, 2, None], dtype=pl.Int32",
    "Int64": "[1, 2, None]",
    "Int128": "[1, 2, None], dtype=pl.Int128",
    "UInt8": "[1, 2, None], dtype=pl.UInt8",
    "UInt16": "[1, 2, None], dtype=pl.UInt16",
    "UInt32": "[1, 2, None], dtype=pl.UInt32",
    "UInt64": "[1, 2, None], dtype=pl.UInt64",
    "UInt128": "[1, 2, None], dtype=pl.UInt128",
    "Float16": "[1.0, float('nan'), None], dtype=pl.Float16",
    "Float32": "[1.0, float('nan'), None], dtype=pl.Float32",
    "Float64": "[1.0, float('nan'), None]",
    "Infinity": "[1.0, float('inf'), -float('inf')]",
    "Negative": "[-1, -(2**62), 2**62]",
    "Decimal": "['1.0', '2.0', None]).cast(pl.Decimal(10, 2)",
    "String": "['a', 'b', None]",
    "Binary": "[b'a', b'b', None]",
    "Categorical": "['a', 'b', None], dtype=pl.Categorical",
    "Enum": "['a', 'b', None], dtype=pl.Enum(['a', 'b'])",
    "Date": "[1, 2, None], dtype=pl.Int32).cast(pl.Date",
    "Datetime": "[1, 2, None]).cast(pl.Datetime('us', 'UTC')",
    "Duration": "[1, 2, None]).cast(pl.Duration",
    "Time": "[1, 2, None]).cast(pl.Time",
    "List": "[[1], [2, 3], None]",
    "ListOfText": "[['a', None], [], None]",
    "ListOfCategorical": "[['a', None], [], None], dtype=pl.List(pl.Categorical)",
    "ListOfLists": "[[[1.5], None], [[]], None]",
    "Array": "[[1], [2], None], dtype=pl.Array(pl.Int64, 1)",
    "Struct": "[{'a': 1}, {'a': 2}, None]",
    "NestedStruct": "[{'a': {'b': [1], 'c': 'x'}}, {'a': None}, None]",
    "EmptyStruct": "[{}, {}, None], dtype=pl.Struct([])",
    "Null": "[None, None, None]",
}

PROGRAM = """
import json, math, sys
import polars as pl
from tests.plugin.registry import ROWS

try:
    column = eval(f"pl.Series({sys.argv[1]})")
except (AttributeError, pl.exceptions.PolarsError):
    print(json.dumps("absent"))
    sys.exit()
if len(column) != 3:
    print(json.dumps("no such column"))
    sys.exit(1)
outcomes = []

def ask(where, frame, expression, engine):
    try:
        result = frame.lazy().select(expression.alias("out")).collect(engine=engine)
        outcomes.append([where, "height", result.height])
    except pl.exceptions.PolarsError as error:
        text = str(error)
        outcomes.append([where, "PANIC" if "PANIC" in text else "refused", 0])
    except BaseException as error:
        outcomes.append([where, repr(error), 0])

for row in ROWS:
    for example in row.examples:
        frame = example.frame.head(3)
        names = frame.columns
        for replaced in [[name] for name in names] + [names]:
            other = frame.with_columns(column.alias(name) for name in replaced)
            for engine in ("in-memory", "streaming"):
                ask(row.name, other, example.call(), engine)
        if row.over:
            other = frame.with_columns(column.alias("g"))
            ask(row.name, other, example.call(over="g"), "streaming")
            other = frame.with_columns(column.alias(name) for name in names)
            ask(row.name, other, example.call(over=names[0]), "in-memory")
print(json.dumps(outcomes))
"""

DIRECT = """
import json
import polars as pl
from dataset_rt.expr._call import call
from tests.plugin.registry import ROWS

frame = pl.DataFrame({"x": [1.0, 2.0]})
outcomes = {}
for row in ROWS:
    for native in row.native:
        outcomes[native] = []
        for columns, options in [
            (["x"] * 9, {"other": 1}), ([], {"other": 1}), (["x"], {"over": 7}), ([], {"over": 0}),
        ]:
            try:
                frame.select(call(native, [pl.col(name) for name in columns], options))
                outcomes[native].append("answered")
            except pl.exceptions.PolarsError as error:
                outcomes[native].append("PANIC" if "PANIC" in str(error) else "refused")
print(json.dumps(outcomes))
"""


@pytest.mark.rule("Expressions never end the process")
@pytest.mark.parametrize("dtype", COLUMNS)
def test_columns_of_any_type(dtype: str) -> None:
    done = support.run(PROGRAM, COLUMNS[dtype], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(done.stdout)
    if outcomes == "absent":
        pytest.skip(f"this Polars has no {dtype}")
    assert len(outcomes) > 0
    assert [found for found in outcomes if found[1] not in {"height", "refused"}] == []
    assert {found[2] for found in outcomes if found[1] == "height"} <= {1, 3}


@pytest.mark.rule("Expressions never end the process")
def test_natives_with_wrong_arguments() -> None:
    outcomes = json.loads(support.run(DIRECT).stdout)
    assert outcomes
    # A wrong number of columns and unknown options are never an answer.
    assert {name: set(found) for name, found in outcomes.items() if set(found) != {"refused"}} == {}
