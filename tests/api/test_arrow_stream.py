"""A dataset as an Arrow stream: what other libraries make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

    from tests.conftest import DatasetFactory


@pytest.fixture(params=["as opened", "edited", "without a field"])
def dataset(request: pytest.FixtureRequest, make_dataset: DatasetFactory) -> CachedDataset:
    dataset = make_dataset(support.numbered(200))
    table = dataset.get_metadata()
    if request.param == "edited":
        dataset.update_metadata(
            table.filter(pl.col("label") > 0).with_columns(
                weight=pl.col("score") + 1, note=pl.lit("é")
            )
        )
    if request.param == "without a field":
        dataset.update_metadata(table.head(20).reverse())
    return dataset


@pytest.mark.rule("A dataset is an Arrow stream")
def test_polars(dataset: CachedDataset) -> None:
    assert_frame_equal(pl.DataFrame(dataset), dataset.get_metadata())


@pytest.mark.rule("A dataset is an Arrow stream")
def test_pyarrow(dataset: CachedDataset) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(dataset)
    assert table.to_pylist() == dataset.get_metadata().to_dicts()
    # The stream may be asked for again.
    assert pyarrow.table(dataset).equals(table)


@pytest.mark.rule("A dataset is an Arrow stream")
def test_pandas(dataset: CachedDataset) -> None:
    pandas = pytest.importorskip("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("this pandas has no from_arrow")
    frame: Any = pandas.DataFrame.from_arrow(dataset)
    assert frame.to_dict("records") == dataset.get_metadata().to_dicts()


@pytest.mark.rule("A dataset is an Arrow stream")
def test_duckdb(dataset: CachedDataset) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT label, count(*), sum(weight), max(text) FROM dataset GROUP BY label ORDER BY 1"
        ).fetchall()
    expected = (
        dataset.get_metadata()
        .group_by("label")
        .agg(pl.len(), pl.col("weight").sum(), pl.col("text").max())
        .sort("label")
    )
    for row, other in zip(found, expected.rows(), strict=True):
        assert row == pytest.approx(other) if row[3] is None else row[3] == other[3]
        assert row[:3] == pytest.approx(other[:3])


@pytest.mark.rule("A dataset is an Arrow stream")
def test_a_dataset_takes_another_ones_stream(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(9))
    dataset.update_metadata(dataset.get_metadata().head(4))
    dataset.update_metadata(dataset)
    assert len(dataset) == 4
