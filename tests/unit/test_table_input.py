"""What `update_metadata` makes of a table before the core sees it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from dataset_rt import DatasetRTWarning, MetadataTableError, MetadataTableTypeError
from dataset_rt.active_table import (
    Field,
    changed_columns,
    lay_over,
    normalise,
    pack,
    to_frame,
    unpack,
)
from polars.testing import assert_frame_equal

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

FIELDS: list[Field] = [
    ("flag", "bool", False),
    ("count", "int64", False),
    ("score", "float64", True),
    ("name", "utf8", False),
]
YES = pl.lit(True)


def table(rows: int = 4) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "cache_id": pl.Series([0] * rows, dtype=pl.UInt64),
            "sample_id": pl.Series(range(rows), dtype=pl.UInt64),
            "flag": [True] * rows,
            "count": list(range(rows)),
            "score": [0.5] * rows,
            "name": ["n"] * rows,
            "weight": [1.0] * rows,
        }
    )


def normalised(value: object) -> pl.DataFrame:
    return normalise(value, FIELDS, stacklevel=1)


def test_unchanged_table_stays() -> None:
    assert_frame_equal(normalised(table()), table())


def test_column_order_is_restored_and_extras_follow() -> None:
    mixed = table().with_columns(b=pl.lit(1), a=pl.lit("x"))
    columns = ["b", "weight", "name", "sample_id", "a", "score", "flag", "count", "cache_id"]
    assert normalised(mixed.select(columns)).columns == [*table().columns, "b", "a"]


@pytest.mark.parametrize(
    "dtype",
    [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64],
)
def test_integer_types(dtype: type[pl.DataType]) -> None:
    changed = table().with_columns(pl.col("cache_id", "sample_id", "weight").cast(dtype))
    assert_frame_equal(normalised(changed), table())
    if dtype != pl.UInt64:
        narrow = table().with_columns(pl.col("count").cast(dtype))
        assert_frame_equal(normalised(narrow), table())


def test_float32_weight() -> None:
    changed = table().with_columns(weight=pl.lit(0.1).cast(pl.Float32))
    assert normalised(changed)["weight"].to_list() == [float(np.float32(0.1))] * 4


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["n", "m"])])
def test_text_types(dtype: pl.DataType) -> None:
    assert_frame_equal(normalised(table().with_columns(pl.col("name").cast(dtype))), table())


@pytest.mark.parametrize(
    ("column", "change", "hint"),
    [
        ("weight", YES, "Float64"),
        ("weight", pl.lit("1"), "Float64"),
        ("weight", pl.lit(1).cast(pl.Decimal(10, 2)), "Float64"),
        ("weight", pl.lit(1).cast(pl.Int128), "Float64"),
        ("weight", pl.lit(None), "Float64"),
        ("cache_id", pl.lit(0.0), "UInt64"),
        ("sample_id", pl.lit("0"), "UInt64"),
        ("sample_id", pl.lit(0).cast(pl.Int128), "UInt64"),
        ("count", pl.col("count").cast(pl.Float64), "Int64"),
        ("count", pl.col("count").cast(pl.UInt64), "Int64"),
        ("count", YES, "Int64"),
        ("score", pl.lit(1), "Float64"),
        ("score", pl.lit(1).cast(pl.Float32), "Float64"),
        ("flag", pl.lit(1), "Boolean"),
        ("name", pl.lit(1), "String"),
        ("name", pl.lit(b"n"), "String"),
    ],
)
def test_wrong_types_name_the_cast(column: str, change: pl.Expr, hint: str) -> None:
    with pytest.raises(MetadataTableTypeError) as caught:
        normalised(table().with_columns(change.alias(column)))
    assert caught.value.column == column
    assert f"pl.col('{column}').cast(pl.{hint})" in str(caught.value)


@pytest.mark.parametrize("column", table().columns)
def test_missing_columns(column: str) -> None:
    with pytest.raises(MetadataTableError, match=repr(column)) as caught:
        normalised(table().drop(column))
    assert caught.value.column == column


def test_no_rows() -> None:
    with pytest.raises(MetadataTableError, match="no rows"):
        normalised(table().clear())


@pytest.mark.parametrize("column", ["cache_id", "sample_id", "weight"])
@pytest.mark.parametrize("row", [0, 2, 3])
def test_nulls_name_column_count_and_row(column: str, row: int) -> None:
    kept = pl.int_range(pl.len()) < row
    with pytest.raises(MetadataTableError) as caught:
        normalised(table().with_columns(pl.when(kept).then(column).alias(column)))
    assert (caught.value.column, caught.value.row) == (column, row)
    assert f"{4 - row} null" in str(caught.value)


def test_stored_column_of_nulls_alone() -> None:
    changed = normalised(table().with_columns(pl.lit(None).alias("count")))
    assert changed.schema["count"] == pl.Int64


def test_nulls_in_stored_and_extra_columns_stay() -> None:
    changed = table().with_columns(score=pl.lit(None, pl.Float64), extra=pl.lit(None))
    assert_frame_equal(normalised(changed), changed)


def test_negative_ids() -> None:
    changed = table().with_columns(sample_id=pl.int_range(pl.len()) - 1)
    with pytest.raises(MetadataTableError, match="-1 in row 0") as caught:
        normalised(changed)
    assert (caught.value.column, caught.value.row) == ("sample_id", 0)


def test_object_columns_are_refused() -> None:
    changed = table().with_columns(pl.Series("extra", [object()] * 4, dtype=pl.Object))
    with pytest.raises(MetadataTableTypeError, match="Python objects") as caught:
        normalised(changed)
    assert caught.value.column == "extra"


def test_weight_right_warns_once() -> None:
    changed = table().with_columns(weight_right=pl.lit(2.0))
    with pytest.warns(DatasetRTWarning, match="weight_right") as caught:
        assert normalised(changed).columns[-1] == "weight_right"
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame.lazy(),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_arrow(),
        pa.RecordBatchReader.from_stream,
    ],
    ids=["lazy", "pandas", "pyarrow", "stream"],
)
def test_other_tables(make: Any) -> None:
    assert_frame_equal(normalised(make(table())), table())


@pytest.mark.parametrize(
    "value",
    [None, {}, {"weight": [1.0]}, [table()], "x", table()["weight"], pl.col("weight"), 3],
)
def test_no_table(value: object) -> None:
    with pytest.raises(MetadataTableTypeError, match="DataFrame"):
        normalised(value)


def test_pandas_objects_are_refused() -> None:
    strangers: Any = [object() for _ in range(4)]
    frame = table().to_pandas()
    frame["extra"] = strangers
    with pytest.raises(MetadataTableTypeError):
        normalised(frame)


def test_later_writes_to_foreign_memory_change_nothing() -> None:
    values = np.arange(4, dtype=np.float64)
    kept = to_frame(pa.table({"extra": pa.array(values)}))
    values[:] = 9
    assert kept["extra"].to_list() == [0, 1, 2, 3]


def test_pandas_keeps_nan() -> None:
    frame = pd.DataFrame({"score": [1.0, float("nan")]})
    assert to_frame(frame)["score"].is_nan().to_list() == [False, True]


def test_thousand_chunks() -> None:
    rows = table(1000)
    chunked = pl.concat([rows[i : i + 1] for i in range(1000)], rechunk=False)
    assert chunked.n_chunks() == 1000
    assert_frame_equal(normalised(chunked), rows)


def test_overlay() -> None:
    exported = table()
    edited = exported.with_columns(score=pl.lit(9.0), extra=pl.lit("x"))
    small = changed_columns(edited, exported)
    assert small.columns == ["cache_id", "sample_id", "score", "weight", "extra"]
    assert_frame_equal(lay_over(exported, unpack(pack(small))), edited)


def test_nan_is_no_edit() -> None:
    exported = table().with_columns(score=pl.lit(float("nan")))
    assert "score" not in changed_columns(exported, exported).columns
