"""The active table: what get_metadata gives, what update_metadata takes."""

from __future__ import annotations

import io
import logging
import math
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import CacheInput, ReaderConfig
from dataset_rt.errors import (
    DatasetRTError,
    DatasetRTWarning,
    InvalidArgumentError,
    MetadataTableError,
    MetadataTableTypeError,
    SchemaConflictError,
)
from polars.testing import assert_frame_equal, assert_series_equal

from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dataset_rt import CachedDataset, DatasetRuntime

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


@pytest.fixture
def dataset(make_dataset: DatasetFactory) -> CachedDataset:
    """Twelve samples with one field of each type."""
    return make_dataset(support.numbered(12), shuffle=False)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, runtime: DatasetRuntime) -> CachedDataset:
    """Some 70,000 rows, more than one record batch."""
    samples = ((b"", {"i": i}) for i in range(70_001))
    cache = support.write(runtime, tmp_path_factory.mktemp("many"), samples)
    return runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))


def refused(
    dataset: CachedDataset, table: Any, error: type[Exception], column: str | None = None
) -> Exception:
    """Checks that a table is refused and that nothing changed."""
    before, length = dataset.get_metadata(), len(dataset)
    with pytest.raises(error) as caught:
        dataset.update_metadata(table)
    if column is not None:
        assert getattr(caught.value, "column", None) == column
        assert column in str(caught.value)
    assert_frame_equal(dataset.get_metadata(), before)
    assert len(dataset) == length
    return caught.value


@pytest.mark.rule("Columns of the table")
def test_columns_of_a_fresh_table(dataset: CachedDataset) -> None:
    expected = pl.DataFrame(
        {
            "cache_id": pl.Series([0] * 12, dtype=pl.UInt64),
            "sample_id": pl.Series(range(12), dtype=pl.UInt64),
            "label": pl.Series([i % 3 for i in range(12)], dtype=pl.Int64),
            "score": [i / 7 for i in range(12)],
            "text": [f"n{i}" for i in range(12)],
            "even": [i % 2 == 0 for i in range(12)],
            "weight": [1.0] * 12,
        }
    )
    assert_frame_equal(dataset.get_metadata(), expected, check_exact=True)


@pytest.mark.rule("The table is a copy", "Old names of the table methods")
def test_the_table_is_a_copy(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    table.extend(table)
    table.insert_column(0, pl.Series("new", [0] * 24))
    assert dataset.get_metadata().shape == (12, 7)
    assert_frame_equal(dataset.samples_metadata(), dataset.get_metadata())
    dataset.set_samples_metadata(dataset.samples_metadata().head(2))
    assert_frame_equal(dataset.samples_metadata(), dataset.get_metadata())
    assert support.rows(dataset) == [0, 1]


@pytest.mark.rule("Rows may be filtered, repeated and reordered")
def test_rows_of_any_kind(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    for rows in ([3], [5, 5, 5], list(range(11, -1, -1)), [0, 11, 0, 4], list(range(12)) * 3):
        dataset.update_metadata(table[rows])
        assert len(dataset) == len(rows)
        assert support.rows(dataset) == rows
        assert dataset.get_metadata()["sample_id"].to_list() == rows


@pytest.mark.rule("A table needs a row", "An update is all or nothing")
def test_an_empty_table_is_refused(dataset: CachedDataset) -> None:
    refused(dataset, dataset.get_metadata().head(0), MetadataTableError)
    refused(dataset, pl.DataFrame(), MetadataTableError)


@pytest.mark.rule("Ids must exist", "An update is all or nothing")
@pytest.mark.parametrize("row", [0, 7, 11])
@pytest.mark.parametrize(
    ("column", "value"),
    [("cache_id", 1), ("sample_id", 12), ("sample_id", 2**63), ("cache_id", 2**40)],
)
def test_unknown_samples_are_refused(
    dataset: CachedDataset, column: str, value: int, row: int
) -> None:
    table = dataset.get_metadata()
    values = table[column].to_list()
    values[row] = value
    table = table.with_columns(pl.Series(column, values, dtype=pl.UInt64))
    error = refused(dataset, table, MetadataTableError, column)
    assert getattr(error, "row", None) == row
    assert str(value) in str(error)


@pytest.mark.rule("Ids must exist")
def test_negative_ids_are_refused(dataset: CachedDataset) -> None:
    for column in ("cache_id", "sample_id"):
        values = [0, 1, -1, *[0] * 9]
        table = dataset.get_metadata().with_columns(pl.Series(column, values, dtype=pl.Int64))
        with pytest.raises(MetadataTableError) as caught:
            dataset.update_metadata(table)
        assert "-1" in str(caught.value)


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


@pytest.mark.rule("Ids must exist", "Columns of the table")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_ids_of_all_integer_types(dataset: CachedDataset, dtype: Any) -> None:
    table = dataset.get_metadata().with_columns(pl.col("cache_id", "sample_id").cast(dtype))
    dataset.update_metadata(table.reverse())
    assert support.rows(dataset) == list(range(11, -1, -1))
    schema = dataset.get_metadata().schema
    assert schema["cache_id"] == pl.UInt64
    assert schema["sample_id"] == pl.UInt64


@pytest.mark.rule("Ids must exist", "Weights are positive and finite")
@pytest.mark.parametrize("dtype", [pl.Float64, pl.String, pl.Boolean, pl.Decimal(20, 0), pl.Int128])
@pytest.mark.parametrize("column", ["cache_id", "sample_id"])
def test_ids_of_other_types_are_refused(dataset: CachedDataset, column: str, dtype: Any) -> None:
    values = [0] * 12 if dtype != pl.String else ["0"] * 12
    series = pl.Series(column, values).cast(dtype)
    table = dataset.get_metadata().with_columns(series)
    error = refused(dataset, table, MetadataTableTypeError, column)
    assert "cast" in str(error)


@pytest.mark.rule("Ids must exist", "Weights are positive and finite")
@pytest.mark.parametrize("column", ["cache_id", "sample_id", "weight"])
def test_nulls_are_refused(dataset: CachedDataset, column: str) -> None:
    table = dataset.get_metadata()
    nulls = pl.int_range(pl.len()).is_in([4, 9])
    table = table.with_columns(pl.when(~nulls).then(pl.col(column)).alias(column))
    error = refused(dataset, table, MetadataTableError, column)
    assert getattr(error, "row", None) == 4
    assert "2" in str(error)
    assert "4" in str(error)


@pytest.mark.rule("Weights are positive and finite", "An update is all or nothing")
@pytest.mark.parametrize("row", [0, 5, 11])
@pytest.mark.parametrize(
    "value", [0.0, -0.0, -1.0, -5e-324, math.nan, math.inf, -math.inf], ids=repr
)
def test_bad_weights_are_refused(dataset: CachedDataset, value: float, row: int) -> None:
    weights = [1.0] * 12
    weights[row] = value
    table = dataset.get_metadata().with_columns(weight=pl.Series(weights))
    error = refused(dataset, table, MetadataTableError, "weight")
    assert getattr(error, "row", None) == row
    text = str(error).lower()
    assert str(row) in text
    assert (
        "nan" if math.isnan(value) else "inf" if math.isinf(value) else "0" if value == 0 else "-"
    ) in text


@pytest.mark.rule("Weights are positive and finite")
@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt8])
def test_integer_zero_is_no_weight(dataset: CachedDataset, dtype: Any) -> None:
    table = dataset.get_metadata()
    table = table.with_columns(weight=pl.Series([1] * 11 + [0], dtype=dtype))
    assert getattr(refused(dataset, table, MetadataTableError, "weight"), "row", None) == 11


@pytest.mark.rule("Rows of weight 0 are refused or dropped")
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int8])
def test_zero_weights_are_dropped(dataset: CachedDataset, dtype: Any) -> None:
    table = dataset.get_metadata()
    weights = [0, 1, 0, 2, 0, 1, 1, 1, 1, 1, 1, 0]
    table = table.with_columns(weight=pl.Series(weights, dtype=dtype), more=pl.int_range(12))
    error = refused(dataset, table, MetadataTableError, "weight")
    assert 'zero_weights="drop"' in str(error)
    dataset.update_metadata(table, zero_weights="drop")
    kept = dataset.get_metadata()
    assert kept["more"].to_list() == [i for i, weight in enumerate(weights) if weight]
    assert kept["weight"].to_list() == [float(weight) for weight in weights if weight]
    assert len(dataset) == 8
    assert set(support.rows(dataset)) <= set(kept["sample_id"].to_list())


@pytest.mark.rule("Rows of weight 0 are refused or dropped", "An update is all or nothing")
def test_dropping_checks_all_the_same(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    zero = pl.when(pl.int_range(pl.len()) < 5).then(0.0)
    for wrong, column in (
        (table.with_columns(weight=zero.otherwise(math.nan)), "weight"),
        (table.with_columns(weight=zero.otherwise(-1.0)), "weight"),
        (table.with_columns(weight=zero.otherwise(1.0), sample_id=99), "sample_id"),
    ):
        with pytest.raises(MetadataTableError, match="row 5 of the table") as caught:
            dataset.update_metadata(wrong, zero_weights="drop")
        assert caught.value.row == 5
        assert caught.value.column == column
    with pytest.raises(MetadataTableError, match="all 12 rows"):
        dataset.update_metadata(table.with_columns(weight=0), zero_weights="drop")
    with pytest.raises(InvalidArgumentError, match="zero_weights"):
        dataset.update_metadata(table, zero_weights="keep")  # type: ignore[arg-type]
    assert dataset.get_metadata().equals(table)


@pytest.mark.rule("Weights are positive and finite", "Columns of the table")
@pytest.mark.parametrize("dtype", [*INTEGERS, pl.Float32, pl.Float64])
def test_weights_of_all_types(dataset: CachedDataset, dtype: Any) -> None:
    table = dataset.get_metadata().with_columns(weight=pl.lit(3, dtype=dtype))
    dataset.update_metadata(table)
    again = dataset.get_metadata()
    assert again.schema["weight"] == pl.Float64
    assert again["weight"].to_list() == [3.0] * 12


HALF: Any = getattr(pl, "Float16", pl.Float32)


@pytest.mark.rule("Weights are positive and finite")
@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (pl.when(pl.col("label") == 0).then(3).otherwise(1), pl.Int32),
        (pl.len().over("label"), pl.UInt32),
        (1 / pl.len().over("label"), pl.Float64),
        (pl.lit(2), pl.Int32),
        (pl.col("sample_id") + 1, pl.UInt64),
        (pl.col("label") + 1, pl.Int64),
        (pl.col("score").rank(), pl.Float64),
        (pl.col("text").str.len_chars(), pl.UInt32),
        (pl.col("even").cast(pl.Int8) + 1, pl.Int8),
        ((pl.col("score") + 1).cast(pl.Float32), pl.Float32),
        (pl.lit(1.5).cast(HALF), HALF),
    ],
    ids=str,
)
def test_weights_of_ordinary_expressions(
    dataset: CachedDataset, expression: pl.Expr, dtype: Any
) -> None:
    table = dataset.get_metadata().with_columns(weight=expression)
    assert table.schema["weight"] == dtype
    dataset.update_metadata(table)
    kept = dataset.get_metadata()["weight"]
    assert_series_equal(kept, table["weight"].cast(pl.Float64))


@pytest.mark.rule("Ids must exist")
def test_ids_of_ordinary_expressions(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    order = [7, 0, 11, 5, 1, 2, 3, 4, 6, 8, 9, 10]
    counted = table.drop("sample_id").with_row_index("sample_id")
    assert counted.schema["sample_id"] == pl.UInt32
    dataset.update_metadata(counted[::-1])
    assert support.rows(dataset) == list(range(11, -1, -1))
    for dtype in (pl.Int32, pl.Int64, pl.UInt64):
        dataset.update_metadata(table.with_columns(pl.col("sample_id").cast(dtype))[order])
        assert support.rows(dataset) == order


CHANGES: list[Any] = [
    pl.lit(1).alias("weight"),
    pl.lit(1.5, pl.Float32).alias("weight"),
    pl.lit(True).alias("weight"),
    pl.lit("1").alias("weight"),
    pl.lit(1).cast(pl.Decimal(10, 2)).alias("weight"),
    pl.when(pl.col("sample_id") == 700).then(math.nan).otherwise(1.0).alias("weight"),
    pl.when(pl.col("sample_id") == 701).then(None).otherwise(1.0).alias("weight"),
    pl.col("sample_id").cast(pl.Int32),
    pl.col("sample_id").cast(pl.Float64),
    (pl.col("sample_id") + 1).alias("sample_id"),
    (pl.col("sample_id").cast(pl.Int64) - 1).alias("sample_id"),
    pl.col("text").cast(pl.Categorical),
    pl.col("label").cast(pl.Int32),
    pl.col("label").cast(pl.Float64),
    pl.col("score").cast(pl.Float32),
    pl.col("even").cast(pl.UInt8),
]


@pytest.mark.rule("Stored columns must be there", "An update is all or nothing")
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_chunks_do_not_matter(make_dataset: DatasetFactory, change: pl.Expr) -> None:
    samples = support.numbered(1000)
    dataset = make_dataset(samples, seed=2)
    table = dataset.get_metadata().with_columns(change)
    chunked = pl.concat([table[i : i + 1] for i in range(1000)], rechunk=False)
    assert chunked.n_chunks() == 1000
    answers: list[Any] = []
    for form in (table.rechunk(), chunked):
        before, length = dataset.get_metadata(), len(dataset)
        try:
            dataset.update_metadata(form)
        except DatasetRTError as error:
            assert_frame_equal(dataset.get_metadata(), before)
            assert len(dataset) == length
            answers.append((type(error), str(error)))
        else:
            answers.append((dataset.get_metadata().rows(), support.rows(dataset)))
    assert answers[0] == answers[1]


@pytest.mark.rule("Weights are positive and finite", "An update is all or nothing")
@pytest.mark.parametrize("row", [0, 35_000, 70_000])
@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, None], ids=repr)
def test_one_bad_weight_of_many(many: CachedDataset, value: float | None, row: int) -> None:
    # More rows than are looked at together.
    weights = [1.0 if i % 2 else 2.0 for i in range(70_001)]
    table = many.get_metadata().with_columns(
        weight=pl.Series([*weights[:row], value, *weights[row + 1 :]], dtype=pl.Float64)
    )
    error = refused(many, table, MetadataTableError, "weight")
    assert getattr(error, "row", None) == row
    assert str(row) in str(error)


@pytest.mark.rule("Weights are positive and finite", "Tables of other libraries")
def test_complex_weights_are_refused(dataset: CachedDataset) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = dataset.get_metadata().to_pandas()
    frame["weight"] = [1 + 0j] * 12
    refused(dataset, frame, MetadataTableTypeError)


@pytest.mark.rule("An update is all or nothing")
def test_tables_with_several_faults(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    weight = pl.when(pl.col("sample_id") == 3).then(-1.0).otherwise(1.0).alias("weight")
    gone = (pl.col("sample_id") + 5).alias("sample_id")
    label = pl.col("label").cast(pl.Float64)
    faulty = [
        table.with_columns(weight, gone),
        table.with_columns(weight, label),
        table.with_columns(weight).drop("text"),
        table.with_columns(gone, label).drop("even"),
        table.with_columns(weight, gone).head(0),
        table.with_columns(weight, pl.lit(None).alias("cache_id")),
        table.with_columns(pl.lit("x").alias("weight"), gone).drop("cache_id"),
    ]
    dataset.set_epoch_len(5)
    assert support.rows(dataset) == [0, 1, 2, 3, 4]
    for bad in faulty:
        error = refused(dataset, bad, DatasetRTError)
        assert isinstance(error, (MetadataTableError, MetadataTableTypeError))
    assert support.rows(dataset) == [5, 6, 7, 8, 9]


@pytest.mark.rule("Weights are positive and finite")
@pytest.mark.parametrize("weight", [1.0, 5e-324, 1e308, 7], ids=repr)
def test_a_single_row(dataset: CachedDataset, weight: float) -> None:
    table = dataset.get_metadata()[4:5].with_columns(weight=pl.lit(weight))
    dataset.update_metadata(table)
    assert support.rows(dataset) == [4]
    assert dataset.get_metadata()["weight"].to_list() == [float(weight)]


@pytest.mark.rule("Weights are positive and finite")
@pytest.mark.parametrize(
    "weights",
    [
        pl.Series([True] * 12),
        pl.Series(["1"] * 12),
        pl.Series([Decimal("1.5")] * 12),
        pl.Series([1] * 12).cast(pl.Int128),
        pl.Series([[1.0]] * 12),
        pl.Series([0] * 12).cast(pl.Date),
    ],
    ids=lambda series: str(series.dtype),
)
def test_weights_of_other_types_are_refused(dataset: CachedDataset, weights: pl.Series) -> None:
    table = dataset.get_metadata().with_columns(weight=weights)
    error = refused(dataset, table, MetadataTableTypeError, "weight")
    assert "cast" in str(error)
    assert "Float64" in str(error)


@pytest.mark.rule("Stored columns must be there", "An update is all or nothing")
@pytest.mark.parametrize(
    "column", ["cache_id", "sample_id", "label", "score", "text", "even", "weight"]
)
def test_missing_columns_are_refused(dataset: CachedDataset, column: str) -> None:
    table = dataset.get_metadata()
    refused(dataset, table.drop(column), MetadataTableError, column)
    refused(dataset, table.rename({column: column + "s"}), MetadataTableError, column)


@pytest.mark.rule("Stored columns must be there")
@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ("label", pl.Float64),
        ("label", pl.String),
        ("label", pl.UInt64),
        ("label", pl.Int128),
        ("score", pl.Int64),
        ("score", pl.Float32),
        ("text", pl.Binary),
        ("even", pl.Int8),
    ],
)
def test_other_types_of_fields_are_refused(dataset: CachedDataset, column: str, dtype: Any) -> None:
    table = dataset.get_metadata().with_columns(pl.col(column).cast(dtype))
    error = refused(dataset, table, MetadataTableTypeError, column)
    assert "cast" in str(error)


@pytest.mark.rule("Stored columns must be there")
@pytest.mark.parametrize(
    "change",
    [
        pl.col("text").cast(pl.Categorical),
        pl.col("text").cast(pl.Enum([f"n{i}" for i in range(12)])),
        pl.col("label").cast(pl.Int8),
        pl.col("label").cast(pl.Int32),
        pl.col("label").cast(pl.UInt32),
    ],
    ids=str,
)
def test_values_in_narrower_types_are_taken(dataset: CachedDataset, change: pl.Expr) -> None:
    table = dataset.get_metadata()
    dataset.update_metadata(table.with_columns(change))
    assert_frame_equal(dataset.get_metadata(), table, check_exact=True)


@pytest.mark.rule("Column order doesn't matter", "Additional columns are kept")
def test_column_order(dataset: CachedDataset) -> None:
    table = dataset.get_metadata().with_columns(extra=pl.int_range(pl.len()))
    dataset.update_metadata(table.select(reversed(table.columns)))
    assert_frame_equal(dataset.get_metadata(), table, check_exact=True)


@pytest.mark.rule("Additional columns are kept")
def test_additional_columns(dataset: CachedDataset) -> None:
    table = dataset.get_metadata().with_columns(
        split=pl.Series(["train", None] * 6).cast(pl.Categorical),
        when=pl.date(2026, 1, 1) + pl.duration(days=pl.int_range(pl.len())),
        vectors=pl.concat_list(pl.col("score"), pl.col("score")),
        pair=pl.struct("label", "text"),
        raw=pl.col("text").cast(pl.Binary),
        nothing=pl.lit(None),
        price=pl.lit("1.50").cast(pl.Decimal(10, 2)),
    )
    dataset.update_metadata(table)
    assert_frame_equal(dataset.get_metadata(), table, check_exact=True)
    dataset.update_metadata(dataset.get_metadata().filter(pl.col("split").is_null()))
    assert_frame_equal(
        dataset.get_metadata(), table.filter(pl.col("split").is_null()), check_exact=True
    )
    dataset.update_metadata(dataset.get_metadata().drop("pair"))
    assert "pair" not in dataset.get_metadata().columns


@pytest.mark.rule("Additional columns are kept")
def test_object_columns_are_refused(dataset: CachedDataset) -> None:
    objects = pl.Series("things", [object() for _ in range(12)], dtype=pl.Object)
    refused(dataset, dataset.get_metadata().with_columns(objects), MetadataTableTypeError, "things")


@pytest.mark.rule("Edited values stay in the table")
def test_edited_fields(dataset: CachedDataset) -> None:
    table = dataset.get_metadata().with_columns(
        pl.col("label") + 100,
        pl.lit("edited").alias("text"),
        pl.lit(None, pl.Float64).alias("score"),
    )
    dataset.update_metadata(table)
    assert_frame_equal(dataset.get_metadata(), table, check_exact=True)
    assert [sample.metadata for sample in dataset] == [support.metadata(i) for i in range(12)]
    assert dataset.rows[3].metadata == support.metadata(3)
    assert next(dataset.iter_batches(3)).metadata["text"].to_list() == ["n0", "n1", "n2"]


@pytest.mark.rule("An update is all or nothing")
def test_a_refused_table_leaves_the_position(dataset: CachedDataset) -> None:
    dataset.set_epoch_len(5)
    assert support.rows(dataset) == [0, 1, 2, 3, 4]
    good = dataset.get_metadata()
    refused(dataset, good.drop("text"), MetadataTableError)
    refused(dataset, good.with_columns(weight=pl.lit(-1.0)), MetadataTableError)
    refused(dataset, good.with_columns(sample_id=pl.col("sample_id") + 1), MetadataTableError)
    assert support.rows(dataset) == [5, 6, 7, 8, 9]


@pytest.mark.rule("Updates are logged")
def test_updates_are_logged(dataset: CachedDataset, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dataset_rt")
    table = dataset.get_metadata()
    update: Callable[[pl.DataFrame], object] = dataset.update_metadata
    assert update(pl.concat([table.head(7), table.head(3)])) is None
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.name.startswith("dataset_rt")
    for number in ("7", "3", "5"):
        assert number in record.getMessage()


@pytest.mark.rule("A second weight column is warned about")
def test_a_joined_weight_column(dataset: CachedDataset) -> None:
    table = dataset.get_metadata()
    joined = table.join(table.select("sample_id", weight=pl.lit(5.0)), on="sample_id")
    assert "weight_right" in joined.columns
    with pytest.warns(DatasetRTWarning, match="weight_right") as caught:
        dataset.update_metadata(joined)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert dataset.get_metadata()["weight"].to_list() == [1.0] * 12


@pytest.mark.rule("Tables of other libraries")
def test_lazy_frames(dataset: CachedDataset) -> None:
    dataset.update_metadata(dataset.get_metadata().lazy().filter(pl.col("label") == 1))
    assert support.rows(dataset) == [1, 4, 7, 10]


@pytest.mark.rule("Tables of other libraries")
def test_objects_with_an_arrow_stream(dataset: CachedDataset) -> None:
    class Table:
        def __init__(self, frame: pl.DataFrame) -> None:
            self._frame = frame

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self._frame.__arrow_c_stream__(requested_schema)

    dataset.update_metadata(Table(dataset.get_metadata().tail(3)))
    assert support.rows(dataset) == [9, 10, 11]


@pytest.mark.rule("Tables of other libraries")
def test_pandas_frames(dataset: CachedDataset) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = dataset.get_metadata()
    frame = table.to_pandas()
    frame = frame[frame["label"] == 2]
    dataset.update_metadata(frame)
    assert_frame_equal(dataset.get_metadata(), table.filter(pl.col("label") == 2))
    assert support.rows(dataset) == [2, 5, 8, 11]


@pytest.mark.rule("Tables of other libraries")
def test_pyarrow_tables(dataset: CachedDataset) -> None:
    pa = pytest.importorskip("pyarrow")
    table = dataset.get_metadata()
    dataset.update_metadata(pa.table(table.to_arrow()).slice(2, 4))
    assert_frame_equal(dataset.get_metadata(), table.slice(2, 4))


@pytest.mark.rule("Tables of other libraries", "An update is all or nothing")
@pytest.mark.parametrize(
    "table", [None, [1, 2], {"cache_id": [0]}, "x", pl.Series([1]), 5], ids=repr
)
def test_other_objects_are_no_tables(dataset: CachedDataset, table: Any) -> None:
    refused(dataset, table, MetadataTableTypeError)


@pytest.mark.rule("Tables of other libraries", "Additional columns are kept")
@pytest.mark.parametrize("form", ["parquet", "ipc", "csv"])
def test_tables_that_were_saved(dataset: CachedDataset, form: str) -> None:
    table = dataset.get_metadata()
    buffer = io.BytesIO()
    getattr(table, f"write_{form}")(buffer)
    buffer.seek(0)
    dataset.update_metadata(getattr(pl, f"read_{form}")(buffer))
    assert_frame_equal(dataset.get_metadata(), table, check_exact=form != "csv")


@pytest.mark.rule("Rows may be filtered, repeated and reordered")
def test_many_chunks_are_one_table(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(1200), shuffle=False)
    table = dataset.get_metadata().with_columns(weight=pl.int_range(1, pl.len() + 1), extra=1)
    pieces = [table[i : i + 1] for i in range(1199, -1, -1)]
    chunked = pl.concat(pieces, rechunk=False)
    assert chunked.n_chunks() == 1200
    dataset.update_metadata(chunked)
    assert support.rows(dataset) == list(range(1199, -1, -1))
    expected = table.reverse().with_columns(pl.col("weight").cast(pl.Float64))
    assert_frame_equal(dataset.get_metadata(), expected)
    bad = chunked.with_columns(weight=pl.when(pl.col("sample_id") == 7).then(0).otherwise(1))
    assert getattr(refused(dataset, bad, MetadataTableError, "weight"), "row", None) == 1192
    dataset.update_metadata(table[::3])
    assert support.rows(dataset) == list(range(0, 1200, 3))


@pytest.mark.rule("Updates don't touch the disk")
def test_files_stay_as_they_are(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(support.numbered(50))
    before = support.tree(cache)
    times = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    dataset = make_dataset(cache, validate_cache=True)
    dataset.update_metadata(dataset.get_metadata().head(3).with_columns(weight=2.0, new=1))
    list(dataset)
    assert support.tree(cache) == before
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == times


@pytest.fixture
def mixed(make_cache: CacheFactory) -> list[Path]:
    """Two caches that share one field."""
    return [
        make_cache([CacheInput(b"a", {"x": i, "shared": f"a{i}"}) for i in range(3)], "first"),
        make_cache([CacheInput(b"b", {"shared": f"b{i}", "y": i / 2}) for i in range(2)], "second"),
    ]


@pytest.mark.rule("Caches of different schemas load together", "Columns of the table")
def test_different_schemas(make_dataset: DatasetFactory, mixed: list[Path]) -> None:
    dataset = make_dataset(mixed, shuffle=False)
    expected = pl.DataFrame(
        {
            "cache_id": pl.Series([0, 0, 0, 1, 1], dtype=pl.UInt64),
            "sample_id": pl.Series([0, 1, 2, 0, 1], dtype=pl.UInt64),
            "x": [0, 1, 2, None, None],
            "shared": ["a0", "a1", "a2", "b0", "b1"],
            "y": [None, None, None, 0.0, 0.5],
            "weight": [1.0] * 5,
        }
    )
    assert_frame_equal(dataset.get_metadata(), expected, check_exact=True)
    dataset.update_metadata(dataset.get_metadata().reverse())
    assert_frame_equal(dataset.get_metadata(), expected.reverse(), check_exact=True)
    samples = [sample.metadata for sample in dataset]
    assert samples[0] == {"shared": "b1", "y": 0.5}
    assert samples[-1] == {"x": 0, "shared": "a0"}
    batch = dataset.rows[1:3]
    assert batch.metadata.to_dict(as_series=False) == {
        "x": [None, 2], "shared": ["b0", "a2"], "y": [0.0, None],
    }  # fmt: skip
    assert [sample.metadata for sample in batch] == samples[1:3]


@pytest.mark.rule("A conflict of types names both caches")
def test_conflicting_schemas(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    one = make_cache([CacheInput(b"", {"x": 1})], "one")
    same = make_cache([CacheInput(b"", {"x": 2})], "same")
    two = make_cache([CacheInput(b"", {"x": "1"})], "two")
    make_dataset([one, same])
    with pytest.raises(SchemaConflictError) as caught:
        make_dataset([one, same, two])
    assert caught.value.field == "x"
    for part in (str(one), str(two), "int64", "utf8", "x"):
        assert part in str(caught.value)


@pytest.mark.rule("A second weight column is warned about")
def test_ordinary_updates_do_not_warn(dataset: CachedDataset) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.update_metadata(dataset.get_metadata().with_columns(weights_right=1.0))
