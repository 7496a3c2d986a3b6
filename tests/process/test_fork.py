"""Forks at any moment: the child reads, updates and writes by itself, the parent goes on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests import support

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CacheFactory

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SETUP = """
import os, signal, sys, threading, time, traceback, warnings
# The interpreter warns of every fork of a process with threads; that it works is the test.
warnings.simplefilter("ignore", DeprecationWarning)
import polars as pl
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
signal.alarm(50)
def opened(runtime, *caches, **options):
    return runtime.cached_dataset(list(caches), reader_config=ReaderConfig(seed=1, **options))
def fork(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # Not a timer of faulthandler: its thread would be waited for in a child of the child.
            signal.alarm(20)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child
def wait(*children):
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert not any(codes), codes
"""

# The child does everything that a dataset offers. What Polars does for it must not need the threads
# of Polars, which are not in the child.
EVERYTHING = (
    SETUP
    + """
base, moment = sys.argv[1], sys.argv[2]
count = 70_000
runtime = DatasetRuntime(num_workers=2)
caches = [support.write(runtime, base, support.numbered(count), "a"),
          support.write(runtime, base, support.plain(500), "b")]
dataset = opened(runtime, *caches)
dataset.set_epoch_len(3000)
if moment == "edited":
    table = dataset.get_metadata()
    dataset.update_metadata(table.with_columns(
        weight=pl.col("label") + 1.0, extra=pl.lit("x").cast(pl.Categorical)))
fresh = opened(runtime, *caches)
if moment == "edited":
    fresh.update_metadata(dataset.get_metadata())
fresh.set_epoch_len(3000)
expected = [support.ids(fresh) for _ in range(3)]
table = dataset.get_metadata()
iterator = iter(dataset)
batches = dataset.iter_batches(100)
head = []
if moment != "unread":
    head = support.ids(next(iterator) for _ in range(700))
    first = next(batches)
pl.DataFrame({"a": range(1000)}).group_by("a").agg(pl.len())
table.lazy().group_by("label").agg(pl.col("score").sum()).collect(engine="streaming")
def check(name):
    assert head + support.ids(iterator) == expected[0]
    assert len([s for batch in batches for s in batch]) + (100 if head else 0) == 3000
    assert support.ids(dataset) == expected[2]
    sample = dataset.get_item(0, 5)
    assert sample.data == support.payload(5)
    assert sample.metadata == support.metadata(5)
    assert dataset.rows[-1].cache_id == 1
    assert len(dataset.rows[[0, 1, -1]].data) == 3
    assert dataset.rows[[0, 1, -1]].metadata.height == 3
    again = dataset.get_metadata()
    assert again.columns == table.columns
    for mine, theirs in zip(again.get_columns(), table.get_columns()):
        assert mine.equals(theirs, null_equal=True), mine.name
    dataset.update_metadata(again)
    dataset.update_metadata(again.slice(10, 66_000))
    assert dataset.get_metadata().height == 66_000
    dataset.set_epoch_len(50)
    assert len(support.ids(dataset)) == 50
    support.write(runtime, base, support.plain(2000), name)
    written = opened(runtime, os.path.join(base, name), shuffle=False, validate_cache=True)
    assert support.rows(written) == list(range(2000))
    import pickle
    assert len(pickle.loads(pickle.dumps(dataset))) == 50
    own = DatasetRuntime(num_workers=3)
    assert len(support.ids(opened(own, caches[0]).rows[:100])) == 100
children = [fork(lambda name=name: check(name)) for name in ("one", "two")]
check("parent")
wait(*children)
assert support.listing(__import__("pathlib").Path(base)) == ["a", "b", "one", "parent", "two"]
print("ok")
"""
)


@pytest.mark.rule("A forked child goes on")
@pytest.mark.parametrize("moment", ["unread", "half read", "edited"])
def test_a_child_does_everything(base: Path, moment: str) -> None:
    done = support.run(EVERYTHING, base, moment, timeout=60)
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.rule("A forked child goes on", "A cache appears whole")
def test_forks_during_a_write(base: Path) -> None:
    code = (
        SETUP
        + """
import pathlib
base = pathlib.Path(sys.argv[1])
runtime = DatasetRuntime(num_workers=2)
children = []
release = threading.Event()
def child(number):
    support.write(runtime, base, support.plain(300), f"child-{number}")
    dataset = opened(runtime, base / f"child-{number}", shuffle=False)
    assert support.rows(dataset) == list(range(300))
def samples():
    for number, sample in enumerate(support.plain(20_000, 500)):
        if number % 2000 == 1000:
            started.release()
            proceed.acquire()
        yield sample
started, proceed = threading.Semaphore(0), threading.Semaphore(0)
written = []
thread = threading.Thread(
    target=lambda: written.append(support.write(runtime, base, samples(), "slow")))
thread.start()
for number in range(5):
    started.acquire()
    children.append(fork(lambda: child(number)))
    if number == 2:
        wait(children.pop())
    proceed.release()
for _ in range(5):
    started.acquire()
    proceed.release()
thread.join()
wait(*children)
dataset = opened(runtime, *written, shuffle=False, validate_cache=True)
assert support.rows(dataset) == list(range(20_000))
assert not support.leftovers(base)
print("ok")
"""
    )
    done = support.run(code, base, timeout=60)
    assert done.stdout == "ok\n", done.stderr
    assert support.listing(base) == [*(f"child-{i}" for i in range(5)), "slow"]


@pytest.mark.rule("A forked child goes on")
def test_forks_while_other_threads_are_at_work(base: Path) -> None:
    # A fork may come while a thread of the parent holds any lock of ours. None may matter.
    code = (
        SETUP
        + """
runtime = DatasetRuntime(num_workers=3)
caches = [support.write(runtime, sys.argv[1], support.numbered(3000, 200), name)
          for name in ("a", "b")]
shared = opened(runtime, *caches, shuffle=False)
table = shared.get_metadata()
stop = threading.Event()
failures = []
def guarded(work):
    def run():
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failures.append(repr(error))
            raise
    return threading.Thread(target=run)
def drops():
    # Blocks in flight are given up by workers.
    for _ in range(20):
        iterator = iter(shared)
        next(iterator)
        del iterator
# Tables go from us to us: no thread of the parent is in Polars, whose own locks are beyond us.
def updates():
    shared._native.update(shared._native.export(), 0, None)
def opens():
    opened(runtime, *caches).rows[[1, 2]]
def reads():
    for sample in opened(DatasetRuntime(num_workers=1), caches[0], use_mmap=False):
        sample.metadata
threads = [guarded(work) for work in (drops, updates, opens, reads)]
for thread in threads:
    thread.start()
def child():
    shared.update_metadata(table)
    assert shared.get_metadata().height == 6000
    # What is inherited is let go of here, locks or not.
    iterator = iter(shared)
    assert next(iterator).sample_id == 0
    del iterator
    dataset = opened(runtime, *caches, shuffle=False)
    assert support.rows(dataset) == 2 * list(range(3000))
    assert shared.rows[3].metadata == support.metadata(3)
turns = int(sys.argv[2])
try:
    for _ in range(turns):
        wait(fork(child))
finally:
    stop.set()
for thread in threads:
    thread.join()
assert not failures, failures
print("ok")
"""
    )
    turns = 1000 if os.environ.get("DATASET_RT_LONG") == "1" else 25
    code = code.replace("signal.alarm(50)", f"signal.alarm({50 + turns})")
    done = support.run(code, base, turns, timeout=60 + turns)
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.rule("A forked child goes on")
def test_nested_forks(base: Path) -> None:
    code = (
        SETUP
        + """
runtime = DatasetRuntime(num_workers=2)
cache = support.write(runtime, sys.argv[1], support.plain(4000, 100))
dataset = opened(runtime, cache, replacement=False)
dataset.update_metadata(dataset.get_metadata().with_columns(weight=pl.col("sample_id") + 1.0))
expected = support.rows(opened_again := opened(runtime, cache, replacement=False))
opened_again.update_metadata(dataset.get_metadata())
expected = support.rows(opened_again)
iterator = iter(dataset)
head = support.rows(next(iterator) for _ in range(10))
def down(depth):
    mine = head + support.rows(next(iterator) for _ in range(600))
    if depth:
        head[:] = mine
        wait(fork(lambda: down(depth - 1)))
    assert mine + support.rows(iterator) == expected
    assert support.rows(dataset.rows[:5]) == [0, 1, 2, 3, 4]
    support.write(runtime, sys.argv[1], support.plain(50), f"depth-{depth}")
down(4)
print("ok")
"""
    )
    done = support.run(code, base, timeout=60)
    assert done.stdout == "ok\n", done.stderr
    assert len(support.listing(base)) == 6


@pytest.mark.rule("A forked child goes on")
def test_a_child_exits_as_a_process_does(base: Path) -> None:
    # Not by os._exit: what is inherited is torn down by the interpreter of the child.
    code = (
        SETUP
        + """
runtime = DatasetRuntime(num_workers=2)
cache = support.write(runtime, sys.argv[1], support.plain(4000, 100))
dataset = opened(runtime, cache)
iterators = [iter(dataset), dataset.iter_batches(10)]
kept = [next(iterator) for iterator in iterators]
children = []
for number in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        if number % 2:
            next(iterators[number % 4 // 2])
        if number % 3 == 0:
            del iterators, dataset, runtime
        sys.exit(40 + number)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [40 + number for number in range(20)], codes
assert len(list(iterators[0])) == 3999
print("ok")
"""
    )
    done = support.run(code, base, timeout=60)
    assert (done.stdout, done.stderr) == ("ok\n", "")


POOLS = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import polars as pl
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
from tests.process import pools
if __name__ == "__main__":
    runtime = DatasetRuntime(num_workers=2)
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=1))
    expected = support.rows(dataset)
    dataset.update_metadata(dataset.get_metadata())
    iterator = iter(dataset)
    head = support.rows(next(iterator) for _ in range(50))
    dataset.get_metadata().group_by("label").agg(pl.len())
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=1))
    context = multiprocessing.get_context(sys.argv[2])
    with context.Pool(4, initializer=pools.keep, initargs=(dataset,)) as pool:
        waiting = pool.map_async(pools.work, range(8), chunksize=1)
        # Meanwhile the parent reads on.
        assert head + support.rows(iterator) == expected
        got = waiting.get(40)
    assert got == [expected] * 8
    assert support.rows(dataset) == expected
    print("ok")
"""


@pytest.mark.rule("A forked child goes on", "A dataset pickles with its state")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(make_cache: CacheFactory, tmp_path: Path, method: str) -> None:
    # A file, since spawned processes import the main module again.
    program = tmp_path / "program.py"
    program.write_text(POOLS, encoding="utf-8")
    cache = make_cache(support.numbered(600))
    done = support.run_file(program, cache, method, timeout=90)
    assert done.stdout == "ok\n", done.stderr
