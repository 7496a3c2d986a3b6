"""dataset.rows, get_item, iter_batches and SampleBatch."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import CachedSample, SampleBatch
from dataset_rt.errors import (
    ArgumentTypeError,
    SampleIndexError,
    UnknownSampleError,
)
from polars.testing import assert_frame_equal

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


@pytest.fixture
def dataset(make_dataset: DatasetFactory) -> CachedDataset:
    """Ten samples, of which the even ones are active, from the last to the first."""
    made = make_dataset(support.numbered(10), shuffle=False)
    made.update_metadata(made.get_metadata()[[8, 6, 4, 2, 0]])
    return made


def whole(sample: CachedSample) -> tuple[bytes, dict[str, Any], int, int]:
    return sample.data, sample.metadata, sample.cache_id, sample.sample_id


def expected(i: int) -> tuple[bytes, dict[str, Any], int, int]:
    return support.payload(i), support.metadata(i), 0, i


@pytest.mark.rule("dataset.rows is the map-style view")
def test_one_row(dataset: CachedDataset) -> None:
    rows = dataset.rows
    assert len(rows) == 5
    assert [whole(rows[i]) for i in range(5)] == [expected(i) for i in (8, 6, 4, 2, 0)]
    assert [whole(rows[i]) for i in range(-5, 0)] == [expected(i) for i in (8, 6, 4, 2, 0)]
    assert [whole(sample) for sample in rows] == [expected(i) for i in (8, 6, 4, 2, 0)]
    dataset.set_epoch_len(100)
    assert len(rows) == 5


@pytest.mark.rule("dataset.rows is the map-style view")
def test_many_rows(dataset: CachedDataset) -> None:
    rows = dataset.rows
    cases: list[tuple[Any, list[int]]] = [
        (slice(None), [8, 6, 4, 2, 0]),
        (slice(1, 3), [6, 4]),
        (slice(None, None, -2), [0, 4, 8]),
        (slice(4, 100), [0]),
        (slice(3, 1), []),
        ([0, 0, -1], [8, 8, 0]),
        ([], []),
        ((4, 1), [0, 6]),
        (range(2), [8, 6]),
        ([True, False, False, True, False], [8, 2]),
        (pl.Series([2, 3]), [4, 2]),
        (pl.Series([False, True, False, False, True]), [6, 0]),
    ]
    for index, ids in cases:
        batch = rows[index]
        assert isinstance(batch, SampleBatch)
        assert [whole(sample) for sample in batch] == [expected(i) for i in ids], index
    assert support.rows(rows.take([3, 3, -5])) == [2, 2, 8]
    assert support.rows(dataset) == [8, 6, 4, 2, 0]


@pytest.mark.rule("dataset.rows is the map-style view")
def test_numpy_indices(dataset: CachedDataset) -> None:
    np = pytest.importorskip("numpy")
    rows = dataset.rows
    assert rows[np.int64(-1)].sample_id == 0
    assert rows[np.uint8(1)].sample_id == 6
    assert support.rows(rows[np.array([4, -5], dtype=np.int32)]) == [0, 8]
    assert support.rows(rows[np.arange(5) % 2 == 1]) == [6, 2]
    assert support.rows(rows.take(np.array([], dtype=np.int64))) == []
    for bad in (np.array([0.5]), np.array(["a"]), np.array([[0]])):
        with pytest.raises(ArgumentTypeError):
            rows[bad]
    with pytest.raises(SampleIndexError):
        rows[np.array([0, 5])]
    with pytest.raises(SampleIndexError):
        rows[np.array([True])]
    with pytest.raises((SampleIndexError, ArgumentTypeError)):
        rows.take(np.array([2**63], dtype=np.uint64))


@pytest.mark.rule("dataset.rows is the map-style view", "Arguments are checked")
def test_bad_indices(dataset: CachedDataset) -> None:
    rows: Any = dataset.rows
    index: Any
    for index in (5, -6, 2**63, -(2**70), [0, 5], [-6], [True, False], (0, 9)):
        with pytest.raises(SampleIndexError) as caught:
            rows[index]
        assert isinstance(caught.value, IndexError)
        assert caught.value.length == 5
    with pytest.raises(SampleIndexError):
        rows.take([0, 1, 5])
    for index in (1.0, "0", None, [0.5], ["a"], [None], {0}, b"1"):
        with pytest.raises(TypeError):
            rows[index]


@pytest.mark.rule("A dataset has no index")
def test_a_dataset_has_no_index(dataset: CachedDataset) -> None:
    unindexed: Any = dataset
    with pytest.raises(TypeError):
        unindexed[0]
    assert not hasattr(type(dataset), "__getitem__")


@pytest.mark.rule("get_item reads any sample")
def test_get_item(dataset: CachedDataset) -> None:
    for i in range(10):
        assert whole(dataset.get_item(0, i)) == expected(i)
    for pair in ((0, 10), (1, 0), (0, -1), (-1, 0), (0, 2**64), (2**40, 0)):
        with pytest.raises(UnknownSampleError) as caught:
            dataset.get_item(*pair)
        assert isinstance(caught.value, KeyError)
        assert (caught.value.cache_id, caught.value.sample_id) == pair
    assert support.rows(dataset) == [8, 6, 4, 2, 0]


@pytest.mark.rule("iter_batches takes a window")
@pytest.mark.parametrize("n", [1, 3, 7, 10, 11, 1000])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_a_window(
    make_cache: CacheFactory, make_dataset: DatasetFactory, n: int, drop_last: bool
) -> None:
    cache = make_cache(support.numbered(20))
    dataset = make_dataset(cache, seed=4)
    dataset.set_epoch_len(53)
    windows = [support.rows(dataset) for _ in range(2)]
    dataset = make_dataset(cache, seed=4)
    dataset.set_epoch_len(53)
    for window in windows:
        batches = list(dataset.iter_batches(n, drop_last=drop_last))
        kept = len(window) - len(window) % n if drop_last else len(window)
        assert [len(batch) for batch in batches] == [
            len(window[start : start + n]) for start in range(0, kept, n)
        ]
        seen = [whole(sample) for batch in batches for sample in batch]
        assert seen == [expected(i) for i in window[:kept]]


@pytest.mark.rule("A batch in four forms")
@pytest.mark.parametrize("n", [1, 7, 256, 2500])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_metadata_of_batches_that_were_read_together(
    make_cache: CacheFactory, make_dataset: DatasetFactory, n: int, every: int, shuffle: bool
) -> None:
    caches = [
        make_cache(support.numbered(3000), "a"),
        make_cache(support.plain(40), "b"),
        make_cache(support.numbered(40, start=600), "c"),
    ]
    dataset = make_dataset(caches, shuffle=shuffle, replacement=False, seed=1)
    table = dataset.get_metadata()
    known = table.drop("weight")
    # Of a first window nothing is known; in a second one workers gather from the start.
    for _ in range(2):
        batches = list(dataset.iter_batches(n))
        assert sum(map(len, batches)) == len(dataset)
        kept = batches[::every]
        frames = [batch.metadata for batch in kept]
        assert [frame.height for frame in frames] == [len(batch) for batch in kept]
        ids = pl.concat([pl.DataFrame([batch.cache_id, batch.sample_id]) for batch in kept])
        right = ids.join(known, on=["cache_id", "sample_id"], how="left", maintain_order="left")
        assert_frame_equal(pl.concat(frames), right.drop("cache_id", "sample_id"), check_exact=True)
        # Asked for while the others are read.
        late = [
            (batch.sample_id.to_list(), batch.metadata["label"].to_list())
            for number, batch in enumerate(dataset.iter_batches(n))
            if number % every == 0
        ]
        assert all(labels == [i % 3 for i in ids] for ids, labels in late)


@pytest.mark.rule("A batch in four forms")
def test_forms_of_a_batch(dataset: CachedDataset) -> None:
    batch = next(dataset.iter_batches(4))
    ids = [8, 6, 4, 2]
    assert len(batch) == 4
    assert batch.data == [support.payload(i) for i in ids]
    assert {type(data) for data in batch.data} == {bytes}
    assert batch.cache_id.dtype == pl.UInt64
    assert batch.sample_id.dtype == pl.UInt64
    assert batch.cache_id.to_list() == [0] * 4
    assert batch.sample_id.to_list() == ids
    assert_frame_equal(
        batch.metadata, pl.DataFrame([support.metadata(i) for i in ids]), check_exact=True
    )
    frame = batch.metadata
    frame.insert_column(0, pl.Series("mine", [1] * 4))
    assert "mine" not in batch.metadata.columns
    assert [whole(sample) for sample in batch] == [expected(i) for i in ids]
    assert whole(batch[-1]) == expected(2)


@pytest.mark.rule("A batch in four forms")
def test_numpy_forms_of_a_batch(make_dataset: DatasetFactory) -> None:
    np = pytest.importorskip("numpy")
    samples = [(support.payload(i, i * 5 % 17), support.metadata(i)) for i in range(30)]
    dataset = make_dataset(samples, shuffle=False)
    batch = next(dataset.iter_batches(30))
    buffer, offsets = batch.data_numpy()
    assert (buffer.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert (buffer.ndim, offsets.shape) == (1, (31,))
    assert [buffer[a:b].tobytes() for a, b in itertools.pairwise(offsets)] == batch.data
    again, _ = batch.data_numpy()
    assert np.shares_memory(buffer, again)
    columns = batch.metadata_numpy()
    assert list(columns) == ["label", "score", "text", "even"]
    assert [columns[name].dtype for name in ("label", "score", "even")] == [
        np.int64, np.float64, np.bool_,
    ]  # fmt: skip
    for name, values in columns.items():
        assert values.tolist() == [support.metadata(i)[name] for i in range(30)]


@pytest.mark.rule("A batch in four forms")
def test_arrow_form_of_a_batch(make_dataset: DatasetFactory) -> None:
    pa = pytest.importorskip("pyarrow")
    dataset = make_dataset([(support.payload(i, i), {}) for i in range(40)], shuffle=False)
    batch = dataset.rows[5:]
    array = pa.array(batch.data_arrow)
    del batch, dataset
    array.validate(full=True)
    assert array.type == pa.large_binary()
    assert array.to_pylist() == [support.payload(i, i) for i in range(5, 40)]


@pytest.mark.rule("A batch in four forms")
def test_batches_pickle_and_copy(dataset: CachedDataset) -> None:
    batch = dataset.rows[:]
    for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), copy.deepcopy(batch)):
        assert [whole(sample) for sample in again] == [whole(sample) for sample in batch]
        assert_frame_equal(again.metadata, batch.metadata)
        assert again.data == batch.data
        assert again.sample_id.to_list() == batch.sample_id.to_list()


@pytest.mark.rule("A batch in four forms", "dataset.rows is the map-style view")
def test_an_empty_batch(dataset: CachedDataset) -> None:
    batch = dataset.rows[0:0]
    assert len(batch) == 0
    assert batch.data == []
    assert list(batch) == []
    assert batch.metadata.shape == (0, 4)
    assert batch.sample_id.to_list() == []
