"""What can be sent to another process, how large it is, and what it is there."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import typing
from typing import TYPE_CHECKING, Any

import dataset_rt
import polars as pl
import pytest
from dataset_rt import (
    CacheSourcesDatasetError,
    CacheSourcesDatasetSuccess,
    DatasetRuntime,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
    WriterProfilerConfig,
    errors,
)
from dataset_rt.errors import CacheNotFoundError
from polars.testing import assert_frame_equal

from tests import support
from tests.process import pools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dataset_rt import CachedDataset

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


def cloudpickled(value: Any) -> Any:
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(value))


def pickled(protocol: int) -> Callable[[Any], Any]:
    def send(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value, protocol))

    send.__name__ = f"protocol {protocol}"
    return send


WAYS = pytest.mark.parametrize(
    "send",
    [*map(pickled, range(2, pickle.HIGHEST_PROTOCOL + 1)), copy.copy, copy.deepcopy, cloudpickled],
    ids=lambda send: send.__name__,
)


def edit(dataset: CachedDataset) -> None:
    """Half of the rows in another order, other weights, edited and further columns."""
    table = dataset.get_metadata().filter(pl.col("sample_id") % 2 == 0).reverse()
    dataset.update_metadata(
        table.with_columns(
            weight=pl.col("sample_id") * 0.25 + 1.0,
            score=-pl.col("score"),
            further=pl.col("text").cast(pl.Categorical),
        ),
        stream=4,
    )


def edit_and_read(dataset: CachedDataset) -> None:
    """Everything that a pickle has to keep."""
    edit(dataset)
    dataset.set_epoch_len(33)
    list(dataset)


STATES: dict[str, Callable[[CachedDataset], object]] = {
    "unedited": lambda _: None,
    "edited": edit,
    "length": lambda dataset: dataset.set_epoch_len(33),
    "advanced": lambda dataset: [iter(dataset) for _ in range(3)],
    "all": edit_and_read,
}


def same_dataset(one: CachedDataset, two: CachedDataset) -> None:
    assert one.cache_paths == two.cache_paths
    assert one.reader_config == two.reader_config
    assert len(one) == len(two)
    assert repr(one) == repr(two)
    assert_frame_equal(one.get_metadata(), two.get_metadata(), check_exact=True)
    assert support.ids(one.rows) == support.ids(two.rows)
    for _ in range(3):
        assert support.ids(one) == support.ids(two)


@pytest.mark.rule("A dataset pickles with its state", "A copied dataset is independent")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("config", [{"shuffle": False}, {}, {"replacement": False}], ids=str)
@WAYS
def test_datasets(
    make_dataset: DatasetFactory, config: Any, state: str, send: Callable[[Any], Any]
) -> None:
    dataset = make_dataset(support.numbered(60), seed=2**64 - 1, **config)
    STATES[state](dataset)
    position = dataset._native.cursor()
    sent = send(dataset)
    assert sent is not dataset
    assert dataset._native.cursor() == position
    same_dataset(sent, dataset)
    # Rows and views are of a dataset, and travel with it.
    assert support.ids(send(dataset.rows)) == support.ids(dataset.rows)


@pytest.mark.rule("A dataset pickles with its state")
def test_torch_views(make_dataset: DatasetFactory) -> None:
    pytest.importorskip("torch")
    dataset = make_dataset(support.numbered(60))
    edit(dataset)
    view = dataset.to_torch_iterable_dataset()
    for send in (pickled(5), copy.copy, copy.deepcopy, cloudpickled):
        sent = send(view)
        assert len(sent) == len(view)
        assert support.ids(pickled(5)(sent)) == support.ids(pickled(5)(view))


@pytest.mark.rule("A dataset pickles with its state")
def test_sizes(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    count = 50_000
    caches = [make_cache(support.plain(count), "a"), make_cache(support.plain(10), "b")]
    dataset = make_dataset(caches)
    whole = len(pickle.dumps(dataset))
    assert whole < 3000
    # The same table handed back is ids and weights that compress well.
    dataset.update_metadata(dataset.get_metadata())
    assert len(pickle.dumps(dataset)) < 2 * count
    table = dataset.get_metadata()
    dataset.update_metadata(table.sample(count // 2, shuffle=True, seed=1))
    # Random ids need four bytes each; what the files say is not sent.
    assert len(pickle.dumps(dataset)) < 6 * count // 2
    rows, batch = dataset.rows, dataset.rows[:100]
    assert abs(len(pickle.dumps(rows)) - len(pickle.dumps(dataset))) < 300
    assert len(pickle.dumps(batch)) < 100 * (8 + 8 + 8) + 3000
    assert len(pickle.dumps(dataset.rows[0])) < 300


def values(make_cache: CacheFactory, base: Path, runtime: DatasetRuntime) -> dict[str, Any]:
    """One of everything that may be sent and compares by value."""
    cache = make_cache(support.numbered(12, 100))
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=1))
    batch = next(dataset.iter_batches(5))

    class UnpicklableError(ValueError):
        pass

    def failing() -> Any:
        yield from support.plain(3)
        raise UnpicklableError("a source's own")

    written = runtime.write_cache(
        [
            support.Source("good", support.plain(3)),
            support.Source("bad", failing()),
            support.Source("empty", []),
            support.Source("a/b", []),
        ],
        base,
        writer_config=support.QUIET,
    )
    nothing = runtime.from_cache_sources(
        support.Source("none", []),
        base,
        reader_config=ReaderConfig(seed=0),
        writer_config=support.QUIET,
    )
    assert isinstance(nothing, CacheSourcesDatasetError)
    return {
        "sample": dataset.get_item(0, 3),
        "drawn sample": next(iter(dataset)),
        "made sample": dataset.get_item(0, 3)._replace(metadata={}),
        "batch": (batch.data, batch.cache_id.to_list(), batch.metadata.to_dicts()),
        "results": written,
        "dataset error": nothing,
        "reader config": ReaderConfig(seed=2**64 - 1, shuffle=False, use_mmap=False),
        "writer config": WriterConfig(
            shard_compression=ShardCompression(algo="lz4", ratio=2.5),
            profiler=WriterProfilerConfig(enabled=True),
            on_mismatch="rebuild",
        ),
        "source": support.numbered(2)[0],
    }


@pytest.mark.rule(
    "Results pickle", "Configurations are frozen", "A sample behaves like a named tuple"
)
@WAYS
def test_values(
    make_cache: CacheFactory, base: Path, runtime: DatasetRuntime, send: Callable[[Any], Any]
) -> None:
    for name, value in values(make_cache, base, runtime).items():
        sent = send(value)
        assert sent == value, name
        assert type(sent) is type(value), name
        assert repr(sent) == repr(value), name
        if name == "results":
            for mine, theirs in zip(value, sent, strict=True):
                assert (mine.status, mine.reason) == (theirs.status, theirs.reason)
                assert len(pickle.dumps(theirs)) < 1500


@pytest.mark.rule("Results pickle")
@WAYS
def test_batches(make_dataset: DatasetFactory, send: Callable[[Any], Any]) -> None:
    dataset = make_dataset(support.numbered(60, 300))
    batch = dataset.rows[3:20]
    sent = send(batch)
    assert sent.data == batch.data
    assert_frame_equal(sent.metadata, batch.metadata)
    assert list(sent) == list(batch)
    assert sent[-1] == batch[-1]
    assert repr(sent) == repr(batch)


@pytest.mark.rule("Results pickle")
@WAYS
def test_whole_answers(base: Path, runtime: DatasetRuntime, send: Callable[[Any], Any]) -> None:
    answer = runtime.from_cache_sources(
        [support.Source("a", support.numbered(20)), support.Source("empty", [])],
        base,
        reader_config=ReaderConfig(seed=0),
        writer_config=support.QUIET,
    )
    assert isinstance(answer, CacheSourcesDatasetSuccess)
    sent = send(answer)
    assert sent.results == answer.results
    if sent.dataset is not answer.dataset:
        same_dataset(sent.dataset, answer.dataset)


@pytest.mark.rule("Results pickle")
@WAYS
def test_reports(make_cache: CacheFactory, tmp_path: Path, send: Callable[[Any], Any]) -> None:
    cache = make_cache(support.plain(5))
    support.flip(cache / "index.bin", 70)
    verified = dataset_rt.verify(cache)
    repaired = dataset_rt.repair(cache, tmp_path / "repaired")
    assert verified.problems
    assert repaired.ok
    assert send(verified) == verified
    assert send(verified.problems[0]) == verified.problems[0]
    assert send(repaired) == repaired


@pytest.mark.rule("Errors carry their parts")
@WAYS
def test_errors_with_their_causes(
    make_cache: CacheFactory, runtime: DatasetRuntime, tmp_path: Path, send: Callable[[Any], Any]
) -> None:
    cache = make_cache(support.plain(5))
    support.flip(cache / "index.bin", 70)
    found: list[errors.DatasetRTError] = []
    for call in (
        lambda: runtime.cached_dataset([tmp_path / "none"], reader_config=ReaderConfig(seed=0)),
        lambda: runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0)),
        lambda: runtime.cached_dataset([], reader_config=ReaderConfig(seed=0)),
        lambda: DatasetRuntime(num_workers=0),
    ):
        with pytest.raises(errors.DatasetRTError) as caught:
            call()
        found.append(caught.value)
    assert len({type(error) for error in found}) >= 3
    for error in found:
        sent = send(error)
        assert type(sent) is type(error)
        assert str(sent) == str(error)
        assert sent.args == error.args
        parts = [vars(e).get("path") for e in (sent, error)]
        assert parts[0] == parts[1]


@pytest.mark.rule("A dataset pickles with its state")
@WAYS
def test_a_cache_that_is_gone(
    make_cache: CacheFactory, make_dataset: DatasetFactory, send: Callable[[Any], Any]
) -> None:
    cache = make_cache(support.numbered(30))
    dataset = make_dataset(cache)
    edit(dataset)
    shutil.rmtree(cache)
    # A shallow copy of the rows is a view of the same dataset.
    for value in [dataset] if send is copy.copy else [dataset, dataset.rows]:
        with pytest.raises(CacheNotFoundError) as caught:
            send(value)
        assert caught.value.path == cache
        assert caught.value.filename == str(cache)
    # What was open stays open.
    assert len(dataset.get_metadata()) == 15


@pytest.mark.rule("Iterators don't pickle")
@WAYS
def test_iterators_refuse(make_dataset: DatasetFactory, send: Callable[[Any], Any]) -> None:
    dataset = make_dataset(support.plain(20))
    for iterator, advice in (
        (iter(dataset), "iter()"),
        (dataset.iter_batches(3), "iter_batches()"),
    ):
        for value in (iterator, [iterator], {"of": iterator}):
            if send is copy.copy and value is not iterator:
                continue
            with pytest.raises(TypeError) as caught:
                send(value)
            assert "pickle the dataset" in str(caught.value)
            assert advice in str(caught.value)
        assert next(iterator) is not None


@pytest.mark.rule("A dataset pickles with its state", "Results pickle")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_everything_through_another_process(
    make_cache: CacheFactory, base: Path, method: str
) -> None:
    runtime = DatasetRuntime(num_workers=3)
    sent = values(make_cache, base, runtime)
    dataset = runtime.cached_dataset(
        [make_cache(support.numbered(60), "d")], reader_config=ReaderConfig(seed=5)
    )
    STATES["all"](dataset)
    context: Any = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        back = pool.apply(pools.same, (sent,))
        assert back == sent
        again, rows, their_runtime = pool.apply(pools.same, ((dataset, dataset.rows, runtime),))
    same_dataset(again, dataset)
    assert support.ids(rows) == support.ids(dataset.rows)
    # A runtime that comes back is the one that went.
    assert their_runtime is runtime
    assert again._runtime is runtime


@pytest.mark.rule("Results pickle")
def test_every_public_class_is_considered() -> None:
    # Whoever adds a class decides here whether it travels.
    considered = {
        "ArgumentTypeError", "CacheInput", "CacheProblem", "CacheSourcesDatasetError",
        "CacheSourcesDatasetSuccess",
        "CacheWriteError", "CacheWriteSuccess", "CachedDataset", "CachedSample", "DatasetRuntime",
        "ReaderConfig", "RepairReport", "Rows", "SampleBatch", "ShardCompression", "VerifyReport",
        "WriterConfig", "WriterProfilerConfig",
    }  # fmt: skip
    protocols = {"CacheSource"}
    classes = {
        name
        for name in dataset_rt.__all__
        # Python 3.10 takes a parametrised alias for a class.
        if isinstance(getattr(dataset_rt, name), type)
        and typing.get_origin(getattr(dataset_rt, name)) is None
        and not issubclass(getattr(dataset_rt, name), (Exception, Warning))
    }
    assert classes - considered - protocols == set()
