"""Iterators: independence, threads, bad samples, interruption of nothing else."""

from __future__ import annotations

import gc
import operator
import random
import threading
from typing import TYPE_CHECKING

import pytest
from dataset_rt import CachedSample, CacheInput, DatasetRuntime, ReaderConfig
from dataset_rt.errors import CacheDamagedError

from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


@pytest.mark.rule(
    "A sample behaves like a named tuple", "Ordered reading follows the table in a circle"
)
def test_every_sample_once_in_order(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.numbered(1500), shuffle=False)
    seen = list(dataset)
    assert support.rows(seen) == list(range(1500))
    assert {type(sample) for sample in seen} == {CachedSample}
    assert [sample.data for sample in seen] == [support.payload(i) for i in range(1500)]
    assert [sample.metadata for sample in seen] == [support.metadata(i) for i in range(1500)]


@pytest.mark.rule("Caches of different schemas load together")
def test_samples_show_the_fields_of_their_own_cache(
    make_cache: CacheFactory, make_dataset: DatasetFactory
) -> None:
    """Metadata is gathered by the fields of all caches, in another order than a cache's own."""
    fields: list[Callable[[int], dict[str, bool | int | float | str]]] = [
        lambda i: {"a": i, "b": -i, "text": f"x{i % 5}"},
        lambda i: {"text": f"y{i}", "b": i, "a": -i},
        lambda i: {"b": i, "more": i / 2},
        lambda _: {},
    ]
    count = 700
    dataset = make_dataset(
        [
            make_cache([CacheInput(b"", field(i)) for i in range(count)], name=f"cache-{at}")
            for at, field in enumerate(fields)
        ],
        replacement=False,
    )
    for _ in range(2):
        seen = [(s.cache_id, s.sample_id, s.metadata) for s in dataset]
        assert len(seen) == len(fields) * count
        for cache_id, sample_id, metadata in seen:
            expected = fields[cache_id](sample_id)
            assert metadata == expected
            assert list(metadata) == list(expected)


@pytest.mark.rule("A sample behaves like a named tuple")
@pytest.mark.parametrize("asked", ["all", "none", "few", "late", "in bursts"])
def test_metadata_is_the_same_however_it_is_asked_for(
    make_dataset: DatasetFactory, asked: str
) -> None:
    count = 5000
    dataset = make_dataset(support.numbered(count), shuffle=False)
    kept: list[CachedSample] = []
    for i, sample in enumerate(dataset):
        kept.append(sample)
        if asked == "all" or (asked == "few" and i % 50 == 0) or (asked == "late" and i > 2500):
            assert sample.metadata == support.metadata(i)
        if asked == "in bursts" and i % 900 == 899:
            assert [s.metadata for s in kept[i - 899 :]] == [
                support.metadata(j) for j in range(i - 899, i + 1)
            ]
    assert [s.metadata for s in kept] == [support.metadata(i) for i in range(count)]
    assert all(s.metadata is s.metadata for s in kept)


@pytest.mark.rule("Iterators are independent")
def test_nested_and_interleaved_iterators(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(40), shuffle=False)
    dataset.set_epoch_len(10)
    expected = [[(start + i) % 40 for i in range(10)] for start in range(0, 80, 10)]
    outer = iter(dataset)
    assert next(outer).sample_id == 0
    assert support.rows(dataset) == expected[1]
    one, two = iter(dataset), iter(dataset)
    mixed = [support.rows(pair) for pair in zip(one, two, strict=True)]
    assert mixed == [list(pair) for pair in zip(expected[2], expected[3], strict=True)]
    assert support.rows(outer) == expected[0][1:]


@pytest.mark.rule("Iterators are independent")
def test_dropped_iterators_disturb_nobody(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(5000), shuffle=False)
    for read in (0, 1, 700):
        iterator = iter(dataset)
        for _ in range(read):
            next(iterator)
        del iterator
        gc.collect()
    assert support.rows(dataset) == list(range(5000))


@pytest.mark.rule("Iterators are independent")
def test_an_exhausted_iterator_stays_so(make_dataset: DatasetFactory) -> None:
    iterator = iter(make_dataset(support.plain(3)))
    assert iter(iterator) is iterator
    assert operator.length_hint(iterator) == 3
    assert len(list(iterator)) == 3
    assert operator.length_hint(iterator) == 0
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


@pytest.mark.rule("Threads may share an iterator")
@pytest.mark.parametrize("batches", [False, True])
def test_threads_share_an_iterator(make_dataset: DatasetFactory, batches: bool) -> None:
    dataset = make_dataset(support.plain(20_000), shuffle=False)
    iterator = dataset.iter_batches(7) if batches else iter(dataset)
    taken: list[list[int]] = [[] for _ in range(4)]

    def read(mine: list[int]) -> None:
        for item in iterator:
            if isinstance(item, CachedSample):
                mine.append(item.sample_id)
            else:
                mine.extend(item.sample_id.to_list())

    threads = [threading.Thread(target=read, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(i for mine in taken for i in mine) == list(range(20_000))
    for mine in taken:
        assert mine == sorted(mine)


@pytest.mark.rule("Iterators are independent", "Reads and writes share the pool")
def test_parallel_iterators_of_many_threads(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(3000), seed=5)
    failures: list[str] = []

    def read() -> None:
        failures.extend(
            f"sample {sample.sample_id}"
            for sample in dataset
            if sample.data != support.payload(sample.sample_id, 8)
        )

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.rule(
    "An iterator goes on after a bad sample",
    "Payloads are checked when they are read",
    "Damaged tables never pass",
)
@pytest.mark.parametrize("mapped", [True, False])
def test_bad_samples_in_the_middle(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mapped: bool
) -> None:
    count, bad = 3000, {0, 5, 6, 700, 2999}
    cache = make_cache(support.plain(count, 32))
    for i in bad:
        support.flip(cache / "shards" / "000000.bin", 64 + 32 * i + 3)
    dataset = make_dataset(cache, shuffle=False, use_mmap=mapped)
    iterator = iter(dataset)
    seen: list[int] = []
    for i in range(count):
        if i in bad:
            with pytest.raises(CacheDamagedError) as caught:
                next(iterator)
            error = caught.value
            assert (error.code, error.cache_id, error.sample_id) == ("record_damaged", 0, i)
            assert error.path == cache / "shards" / "000000.bin"
            assert "000000.bin" in str(error)
        else:
            seen.append(next(iterator).sample_id)
    with pytest.raises(StopIteration):
        next(iterator)
    assert seen == [i for i in range(count) if i not in bad]
    with pytest.raises(CacheDamagedError):
        dataset.get_item(0, 700)
    with pytest.raises(CacheDamagedError):
        dataset.rows[[699, 700]]
    assert dataset.get_item(0, 701).data == support.payload(701, 32)


@pytest.mark.rule("An iterator goes on after a bad sample", "iter_batches takes a window")
@pytest.mark.parametrize("n", [1, 50, 300])
def test_batches_with_bad_samples(
    make_cache: CacheFactory, make_dataset: DatasetFactory, n: int
) -> None:
    count, bad = 3000, {0, 5, 6, 700, 749, 2999}
    cache = make_cache(support.plain(count, 32))
    for i in bad:
        support.flip(cache / "shards" / "000000.bin", 64 + 32 * i + 3)
    batches = make_dataset(cache, shuffle=False).iter_batches(n)
    for first in range(0, count, n):
        members = range(first, min(first + n, count))
        left = operator.length_hint(batches)
        assert left == (count - first + n - 1) // n
        if worst := sorted(bad.intersection(members)):
            with pytest.raises(CacheDamagedError) as caught:
                next(batches)
            assert caught.value.sample_id == worst[0]
        else:
            batch = next(batches)
            assert batch.sample_id.to_list() == list(members)
            assert batch.data == [support.payload(i, 32) for i in members]
            assert batch.metadata["label"].to_list() == [i % 3 for i in members]
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.rule("Payloads are checked when they are read")
def test_checks_can_be_turned_off(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(support.plain(3, 32))
    support.flip(cache / "shards" / "000000.bin", 64)
    dataset = make_dataset(cache, shuffle=False, verify_payloads=False)
    first, second, third = (sample.data for sample in dataset)
    wrong = support.payload(0, 32)
    assert first == bytes([wrong[0] ^ 1]) + wrong[1:]
    assert (second, third) == (support.payload(1, 32), support.payload(2, 32))


@pytest.mark.rule("Reads and writes share the pool")
def test_a_dataset_keeps_its_runtime(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(2000))
    runtime = DatasetRuntime(num_workers=1)
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
    iterator = iter(dataset)
    del runtime
    gc.collect()
    assert len(list(iterator)) == 2000
    del dataset
    gc.collect()


@pytest.mark.rule("Global random state is left alone")
def test_random_generators_are_not_touched(make_dataset: DatasetFactory) -> None:
    random.seed(1)
    before = random.getstate()
    first = support.rows(make_dataset(support.plain(100), seed=4))
    assert random.getstate() == before
    random.seed(2)
    assert support.rows(make_dataset(support.plain(100), seed=4)) == first


@pytest.mark.rule("Global random state is left alone")
def test_numpy_generators_are_not_touched(make_dataset: DatasetFactory) -> None:
    np = pytest.importorskip("numpy")
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    list(make_dataset(support.plain(100), seed=4))
    assert np.random.get_state()[1].tolist() == before
