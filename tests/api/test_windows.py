"""Windows: taken at the call, one after the other, of the length that was set."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl
import pytest
from dataset_rt.errors import DatasetRTError

from tests import support

if TYPE_CHECKING:
    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core

MODES = [
    {"shuffle": False},
    {"shuffle": True},
    {"shuffle": True, "replacement": False},
]


@pytest.mark.rule("An iterator takes its window at the call")
@pytest.mark.parametrize("config", MODES, ids=str)
def test_the_window_is_taken_at_the_call(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: dict[str, bool]
) -> None:
    cache = make_cache(support.plain(30))
    stream = list(
        itertools.chain.from_iterable(
            support.rows(fresh) for fresh in [make_dataset(cache, seed=9, **config)] for _ in "1234"
        )
    )
    assert len(stream) == 120
    dataset = make_dataset(cache, seed=9, **config)
    never_read = iter(dataset)
    half_read = iter(dataset)
    assert support.rows(itertools.islice(half_read, 10)) == stream[30:40]
    unread_batches = dataset.iter_batches(4)
    assert support.rows(dataset) == stream[90:]
    assert support.rows(half_read) == stream[40:60]
    assert [i for batch in unread_batches for i in batch.sample_id] == stream[60:90]
    assert support.rows(never_read) == stream[:30]


@pytest.mark.rule("An iterator takes its window at the call")
def test_later_changes_concern_later_iterators(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(2000), shuffle=False)
    before, batches = iter(dataset), dataset.iter_batches(100)
    dataset.update_metadata(dataset.get_metadata().tail(5))
    dataset.set_epoch_len(3)
    assert len(dataset) == 3
    assert support.rows(dataset) == [1995, 1996, 1997]
    assert support.rows(before) == list(range(2000))
    assert [i for batch in batches for i in batch.sample_id] == list(range(2000))


@pytest.mark.rule("Windows follow each other", "Ordered reading follows the table in a circle")
def test_ordered_windows_go_in_a_circle(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(7), shuffle=False)
    dataset.set_epoch_len(5)
    stream = [support.rows(dataset) for _ in range(4)]
    assert list(itertools.chain(*stream)) == [i % 7 for i in range(20)]
    dataset.set_epoch_len(16)
    assert support.rows(dataset) == [i % 7 for i in range(20, 36)]


@pytest.mark.rule("Windows follow each other")
@pytest.mark.parametrize("config", MODES, ids=str)
def test_cuts_of_the_stream_do_not_matter(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: dict[str, bool]
) -> None:
    cache = make_cache(support.plain(50))
    whole = make_dataset(cache, seed=1, **config)
    whole.set_epoch_len(200)
    expected = support.rows(whole)
    cut = make_dataset(cache, seed=1, **config)
    got: list[int] = []
    for length in (1, 2, 49, 50, 51, 7, 40):
        cut.set_epoch_len(length)
        got += support.rows(cut)
    assert got == expected


@pytest.mark.rule("len is the length of the next window", "A length that was set stays")
def test_lengths(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(10))
    table = dataset.get_metadata()
    assert len(dataset) == len(list(dataset)) == 10
    dataset.update_metadata(table.head(4))
    assert len(dataset) == len(list(dataset)) == 4
    dataset.update_metadata(pl.concat([table, table]))
    assert len(dataset) == len(list(dataset)) == 20
    dataset.set_epoch_len(33)
    assert len(dataset) == len(list(dataset)) == 33
    dataset.update_metadata(table.head(4))
    assert len(dataset) == len(list(dataset)) == 33
    assert len(dataset.rows) == 4
    dataset.set_epoch_len(1)
    assert len(dataset) == len(list(dataset)) == 1


@pytest.mark.rule("A table restarts the stream")
@pytest.mark.parametrize("config", MODES, ids=str)
def test_an_unchanged_table_restarts_the_stream(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: dict[str, bool]
) -> None:
    cache = make_cache(support.plain(40))
    fresh = make_dataset(cache, seed=2, **config)
    first, second = support.rows(fresh), support.rows(fresh)
    if config["shuffle"]:
        assert first != second
    fresh.update_metadata(fresh.get_metadata())
    assert [support.rows(fresh), support.rows(fresh)] == [first, second]


@pytest.mark.rule("stream gives other random numbers")
def test_streams_differ(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(100), seed=2)
    fresh = support.rows(dataset)
    orders = {}
    for stream in (0, 1, 2, 2**32 - 1):
        dataset.update_metadata(dataset.get_metadata(), stream=stream)
        orders[stream] = tuple(support.rows(dataset))
    assert list(orders[0]) == fresh
    assert len(set(orders.values())) == 4
    dataset.update_metadata(dataset.get_metadata())
    assert support.rows(dataset) == fresh
    for bad in (-1, 2**32):
        with pytest.raises(ValueError, match="stream"):
            dataset.update_metadata(dataset.get_metadata(), stream=bad)


@pytest.mark.rule("Positions end at 2^63")
def test_the_end_of_the_stream(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(10), shuffle=False)
    dataset.set_epoch_len(2**63 - 1)
    assert len(dataset) == 2**63 - 1
    assert support.rows(itertools.islice(dataset, 3)) == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(DatasetRTError, match=r"2\^63|position"):
            iter(dataset)
        with pytest.raises(DatasetRTError):
            dataset.iter_batches(3)
    dataset.update_metadata(dataset.get_metadata())
    dataset.set_epoch_len(4)
    assert support.rows(dataset) == [0, 1, 2, 3]
