"""Threads: how many there are, whatever is called, and what several of them do to one dataset."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import DatasetRuntime, ReaderConfig
from dataset_rt.errors import InvalidArgumentError

from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import CacheFactory, DatasetFactory

COUNTING = """
import gc, os, sys, threading, time
import polars as pl
from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig, expr
from tests import support
def names():
    # Threads of Polars and of its allocator come and go when they like. One of ours without
    # a name of its own would bear the program's.
    theirs = ("async-executor", "jemalloc_bg", "polars-", "tokio-")
    return [name for name in support.thread_names() if not name.startswith(theirs)]
def ours(found):
    return sorted(name for name in found if name.startswith("dataset_rt"))
def workers(*counts):
    return sorted(f"dataset_rt-{i}" for count in counts for i in range(count))
def expect(*counts):
    # A thread gives itself its name when it first runs, and ends after it was told to.
    deadline = time.monotonic() + 20
    while True:
        found = names()
        right = ours(found) == workers(*counts) and len(found) == others + sum(counts)
        if right or time.monotonic() > deadline:
            break
        time.sleep(0.001)
    assert right, (found, others)
    assert threading.active_count() == 1, threading.enumerate()
# Polars starts threads of its own at its first use.
pl.DataFrame({"a": range(1000)}).lazy().group_by("a").len().collect()
pl.DataFrame({"a": range(1000)}).lazy().group_by("a").len().collect(engine="streaming")
# The least of several looks: a thread that has just started has no name of its own yet.
others = min((len(names()), time.sleep(0.01))[0] for _ in range(20))
"""

COUNTS = (
    COUNTING
    + """
base = sys.argv[1]
runtime = DatasetRuntime(num_workers=3)
expect(3)
def samples():
    for number, sample in enumerate(support.plain(3000, 1000)):
        if number % 100 == 0:
            expect(3)
        yield sample
# With progress: stderr is no terminal, so that plain lines are written.
cache = support.write(runtime, base, samples(), config=WriterConfig(max_shard_bytes=100_000))
config = ReaderConfig(seed=0, validate_cache=True, prefetch_size=100)
dataset = runtime.cached_dataset([cache], reader_config=config)
second = DatasetRuntime(num_workers=2)
expect(3, 2)
other = second.cached_dataset([cache, cache], reader_config=config)
iterators = [iter(dataset) for _ in range(20)] + [iter(other)]
for samples in zip(*iterators):
    pass
for batch in other.iter_batches(100):
    expect(3, 2)
table = dataset.get_metadata()
for engine in ("in-memory", "streaming"):
    weights = expr.balanced_weight("label")
    table = table.lazy().with_columns(weight=weights).collect(engine=engine)
expect(3, 2)
dataset.update_metadata(table.head(1000))
dataset.rows[:]
dataset.get_item(0, 1)
assert dataset.get_metadata().height == 1000
expect(3, 2)
again = second.from_cache_sources(
    support.PrintedSource("t", support.plain(10), "v"), base, reader_config=config,
    writer_config=support.QUIET)
expect(3, 2)
del runtime
gc.collect()
# A dataset keeps the threads that it reads with.
assert len(list(dataset)) == 1000
expect(3, 2)
del dataset, iterators, samples
gc.collect()
expect(2)
del second, other, again, batch
gc.collect()
expect()
print("ok")
"""
)


def needs_proc() -> None:
    if not Path("/proc/self/task").is_dir():
        pytest.skip("needs the list of threads")


@pytest.mark.rule("A runtime has exactly its number of threads", "Reads and writes share the pool")
def test_number_and_names_of_threads(base: Path) -> None:
    needs_proc()
    assert support.run(COUNTS, base).stdout == "ok\n"


@pytest.mark.rule("A runtime has exactly its number of threads")
def test_a_progress_bar_starts_no_thread(base: Path) -> None:
    needs_proc()
    code = (
        COUNTING
        + """
import pty
ours_end, theirs_end = pty.openpty()
os.dup2(theirs_end, 2)
os.environ["TERM"] = "xterm"
import sys
seen = set()
def samples():
    for number, sample in enumerate(support.plain(2000, 10)):
        if number % 200 == 0:
            time.sleep(0.1)
            found = names()
            seen.add((len(ours(found)), threading.active_count(), len(found)))
        yield sample
runtime = DatasetRuntime(num_workers=2)
expect(2)
support.write(runtime, sys.argv[1], samples(), config=WriterConfig())
assert "tqdm" in sys.modules
assert os.read(ours_end, 100)
assert seen == {(2, 1, others + 2)}, seen
print("ok")
"""
    )
    assert support.run(code, base).stdout == "ok\n"


@pytest.mark.rule("A runtime has exactly its number of threads")
def test_threads_that_can_not_be_started(base: Path) -> None:
    needs_proc()
    code = (
        COUNTING
        + """
import resource
from dataset_rt.errors import StorageError
# Stacks of 2 MiB don't fit into this, but the first ones.
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
limit = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), limit[1]))
try:
    DatasetRuntime(num_workers=500)
except (StorageError, MemoryError) as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_AS, limit)
expect()
runtime = DatasetRuntime(num_workers=2)
support.write(runtime, sys.argv[1], support.plain(10))
expect(2)
"""
    )
    assert support.run(code, base).stdout in {"StorageError\n", "MemoryError\n"}


@pytest.mark.rule(
    "A runtime has exactly its number of threads", "The number of workers is explicit"
)
def test_the_number_of_workers_has_a_limit() -> None:
    for count in (0, 4097, 2**32):
        with pytest.raises(InvalidArgumentError):
            DatasetRuntime(num_workers=count)


@pytest.mark.rule("The order depends on nothing else", "Reads and writes share the pool")
@pytest.mark.parametrize("config", [{"shuffle": False}, {}, {"replacement": False}], ids=str)
def test_the_order_is_the_same_for_any_pool(
    make_cache: CacheFactory, config: dict[str, bool]
) -> None:
    caches = [make_cache(support.numbered(700), "a"), make_cache(support.numbered(40, 3000), "b")]
    orders = []
    for workers, prefetch in [(1, 1), (64, 1), (64, 4096), (2, 64)]:
        runtime = DatasetRuntime(num_workers=workers)
        options = ReaderConfig(seed=3, prefetch_size=prefetch, **config)
        dataset = runtime.cached_dataset(caches, reader_config=options)
        table = dataset.get_metadata()
        dataset.update_metadata(table.with_columns(weight=pl.col("score") + 1.0))
        dataset.set_epoch_len(3000)
        orders.append(
            [*support.ids(dataset), *(s for b in dataset.iter_batches(7) for s in ids(b))]
        )
    assert all(order == orders[0] for order in orders)
    assert len(orders[0]) == 6000


def ids(batch: Any) -> list[tuple[int, int]]:
    return list(zip(batch.cache_id.to_list(), batch.sample_id.to_list(), strict=True))


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Runs work(0) ... work(count - 1) at once and gives the results, or the first error."""
    with ThreadPoolExecutor(count) as pool:
        start = threading.Barrier(count)

        def run(number: int) -> Any:
            start.wait(support.PATIENCE)
            return work(number)

        return [
            future.result(support.PATIENCE)
            for future in [pool.submit(run, i) for i in range(count)]
        ]


@pytest.mark.rule("Threads may share an iterator")
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("prefetch", [1, 64])
def test_eight_threads_share_an_iterator(
    make_dataset: DatasetFactory, batches: bool, prefetch: int
) -> None:
    dataset = make_dataset(support.plain(5000, 40), prefetch_size=prefetch)
    expected = support.rows(dataset)
    dataset = make_dataset(dataset.cache_paths, prefetch_size=prefetch)
    iterator: Any = dataset.iter_batches(13) if batches else iter(dataset)

    def read(_: int) -> list[int]:
        mine: list[int] = []
        for item in iterator:
            samples = list(item) if batches else [item]
            for sample in samples:
                assert sample.data == support.payload(sample.sample_id, 40)
                assert sample.metadata == {"label": sample.sample_id % 3}
                mine.append(sample.sample_id)
        return mine

    taken = in_threads(8, read)
    assert sorted(i for mine in taken for i in mine) == sorted(expected)
    assert next(iterator, None) is None


@pytest.mark.rule("An update is all or nothing", "An iterator takes its window at the call")
def test_updates_and_iterators_of_many_threads(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(600), shuffle=False)
    whole = dataset.get_metadata()
    # Table k has the rows k, k + 3, ... and the column `mark` with k.
    tables = [whole.gather_every(3, k).with_columns(mark=pl.lit(k)) for k in range(3)]
    dataset.update_metadata(tables[0])
    stop = threading.Event()

    def update(number: int) -> int:
        for turn in range(60):
            dataset.update_metadata(tables[(number + turn) % 3])
        stop.set()
        return 1

    def look(_: int) -> int:
        looks = 0
        while not stop.is_set() or looks == 0:
            table = dataset.get_metadata()
            [mark] = table["mark"].unique().to_list()
            assert table["sample_id"].to_list() == tables[mark]["sample_id"].to_list()
            looks += 1
        return looks

    def read(_: int) -> int:
        reads = 0
        while not stop.is_set() or reads == 0:
            rows = support.rows(dataset)
            assert len(rows) == 200
            # Windows go in a circle over the table of the moment of the call.
            assert len({row % 3 for row in rows}) == 1
            assert len(set(rows)) == 200
            reads += 1
        return reads

    work = [update, update, look, look, read, read]
    assert all(in_threads(6, lambda number: work[number](number)))


@pytest.mark.rule("Reads and writes share the pool", "Iterators are independent")
def test_reads_and_writes_of_one_worker_at_once(base: Path) -> None:
    runtime = DatasetRuntime(num_workers=1)
    cache = support.write(runtime, base, support.plain(3000, 100), "first")
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, prefetch_size=1))
    expected = support.rows(dataset)

    def work(number: int) -> Any:
        if number % 2:
            # The source reads through the pool that stores what it yields.
            mine = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
            copied = ((sample.data, sample.metadata) for sample in mine)
            support.write(runtime, base, copied, f"copy-{number}")
            return None
        mine = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
        return support.rows(mine)

    results = in_threads(6, work)
    assert [result for result in results if result is not None] == [expected] * 3
    assert support.listing(base) == ["copy-1", "copy-3", "copy-5", "first"]
