"""Processes and threads: fork, spawn, pickles, Ctrl-C, the end of a process."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import DatasetRuntime, ReaderConfig
from dataset_rt.errors import CacheMismatchError, CacheNotFoundError
from polars.testing import assert_frame_equal

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


def round_trip(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


THREADS = """
import gc, os, sys, threading, time
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
assert support.native_threads(0) == 0
runtime = DatasetRuntime(num_workers=3)
assert support.native_threads(3) == 3
cache = support.write(runtime, sys.argv[1], support.plain(3000, 1000))
config = ReaderConfig(seed=0, validate_cache=True)
dataset = runtime.cached_dataset([cache], reader_config=config)
other = runtime.cached_dataset([cache, cache], reader_config=config)
iterators = [iter(dataset) for _ in range(5)]
for samples in zip(*iterators):
    pass
for batch in other.iter_batches(100):
    pass
dataset.update_metadata(dataset.get_metadata().head(10))
dataset.rows[:]
assert support.native_threads(3) == 3
assert threading.active_count() == 1
del runtime, dataset, other, iterators, samples, batch
gc.collect()
print(support.native_threads(0))
"""


@pytest.mark.rule("A runtime has exactly its number of threads", "Reads and writes share the pool")
def test_number_of_threads(base: Path) -> None:
    if not Path("/proc/self/task").is_dir():
        pytest.skip("needs the list of threads")
    assert support.run(THREADS, base).stdout == "0\n"


@pytest.mark.rule("A runtime pickles as its number of workers")
def test_runtimes_pickle() -> None:
    runtime = DatasetRuntime(num_workers=2)
    content = pickle.dumps(runtime)
    assert len(content) < 500
    one, two = pickle.loads(content), pickle.loads(content)
    assert one is two
    assert one.num_workers == 2
    assert copy.deepcopy(runtime).num_workers == 2


@pytest.mark.rule("A runtime pickles as its number of workers")
def test_copies_in_another_process_share_one_pool(make_cache: CacheFactory) -> None:
    if not Path("/proc/self/task").is_dir():
        pytest.skip("needs the list of threads")
    cache = make_cache(support.plain(10))
    runtime = DatasetRuntime(num_workers=5)
    config = ReaderConfig(seed=0)
    parts = [runtime, *(runtime.cached_dataset([cache], reader_config=config) for _ in range(4))]
    code = """
    import pickle, sys
    from tests import support
    kept = [pickle.loads(bytes.fromhex(line)) for line in sys.stdin]
    print(len(kept), support.native_threads(5))
    """
    done = subprocess.run(  # noqa: S603
        support.script(code),
        input="\n".join(pickle.dumps(part).hex() for part in parts),
        capture_output=True,
        text=True,
        check=True,
        timeout=support.PATIENCE,
        env=support.environment(),
    )
    assert done.stdout == "5 5\n"


@pytest.mark.rule("A dataset pickles with its state")
@pytest.mark.parametrize("config", [{"shuffle": False}, {}, {"replacement": False}], ids=str)
@pytest.mark.parametrize("edited", [False, True])
def test_datasets_pickle(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: dict[str, bool], edited: bool
) -> None:
    caches = [make_cache(support.numbered(30), "a"), make_cache(support.numbered(20), "b")]
    dataset = make_dataset(caches, seed=5, **config)
    if edited:
        table = dataset.get_metadata()
        table = table.filter(pl.col("label") != 0).with_columns(
            weight=pl.col("sample_id") + 1.0,
            score=pl.col("score") * 2,
            extra=pl.when(pl.col("sample_id") % 2 == 0).then(pl.lit("x")),
        )
        dataset.update_metadata(table, stream=3)
    dataset.set_epoch_len(17)
    list(dataset)
    again = round_trip(dataset)
    assert again.cache_paths == dataset.cache_paths
    assert again.reader_config == dataset.reader_config
    assert len(again) == len(dataset) == 17
    assert_frame_equal(again.get_metadata(), dataset.get_metadata(), check_exact=True)
    for _ in range(3):
        assert support.ids(again) == support.ids(dataset)
    third = round_trip(round_trip(again))
    assert support.ids(third) == support.ids(dataset)


@pytest.mark.rule("A dataset pickles with its state")
def test_pickles_are_small(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(20_000))
    assert len(pickle.dumps(dataset)) < 3000
    dataset.update_metadata(dataset.get_metadata().filter(pl.col("sample_id") % 2 == 0))
    assert len(pickle.dumps(dataset)) < 20_000 * 8


@pytest.mark.rule("A dataset pickles with its state")
def test_pickles_of_caches_that_are_gone(
    make_cache: CacheFactory, make_dataset: DatasetFactory
) -> None:
    cache = make_cache(support.plain(10))
    content = pickle.dumps(make_dataset(cache))
    shutil.rmtree(cache)
    with pytest.raises(CacheNotFoundError) as caught:
        pickle.loads(content)
    assert caught.value.path == cache
    make_cache(support.plain(11))
    with pytest.raises(CacheMismatchError):
        pickle.loads(content)


@pytest.mark.rule("A copied dataset is independent")
@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, round_trip])
def test_copies_are_independent(make_dataset: DatasetFactory, copied: Any) -> None:
    dataset = make_dataset(support.plain(12), shuffle=False)
    dataset.set_epoch_len(5)
    list(dataset)
    other = copied(dataset)
    assert support.rows(other) == [5, 6, 7, 8, 9]
    other.update_metadata(other.get_metadata().tail(2))
    other.set_epoch_len(2)
    assert support.rows(other) == [10, 11]
    assert support.rows(dataset) == [5, 6, 7, 8, 9]
    assert dataset.get_metadata().height == 12


@pytest.mark.rule("A dataset pickles with its state", "Iterators don't pickle")
def test_cloudpickle(make_dataset: DatasetFactory) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    dataset = make_dataset(support.plain(12), seed=3)
    again = pickle.loads(cloudpickle.dumps(dataset))
    assert support.rows(again) == support.rows(dataset)
    with pytest.raises(TypeError):
        cloudpickle.dumps(iter(dataset))


@pytest.mark.rule("Iterators don't pickle")
def test_iterators_refuse_pickling(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(12))
    for iterator in (iter(dataset), dataset.iter_batches(3)):
        for action in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="dataset"):
                action(iterator)
        assert next(iterator) is not None


@pytest.mark.rule("A dataset pickles with its state")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_datasets_in_other_processes(make_dataset: DatasetFactory, method: str) -> None:
    dataset = make_dataset(support.numbered(400), seed=4)
    dataset.update_metadata(dataset.get_metadata().filter(pl.col("label") == 1))
    list(dataset)
    context: Any = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        theirs = pool.apply(support.ids, (dataset,))
        rows = pool.apply(support.rows, (dataset.rows,))
    assert theirs == support.ids(dataset)
    assert rows == dataset.get_metadata()["sample_id"].to_list()


FORK = """
import os, signal, sys, time, warnings
# The interpreter warns of every fork of a process with threads; that it works is the test.
warnings.simplefilter("ignore", DeprecationWarning)
import polars as pl
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
signal.alarm(25)
runtime = DatasetRuntime(num_workers=2)
config = ReaderConfig(seed=1, shuffle=sys.argv[2] == "True", prefetch_size=4)
dataset = runtime.cached_dataset([sys.argv[1]], reader_config=config)
expected = [support.rows(dataset) for _ in range(3)]
dataset = runtime.cached_dataset([sys.argv[1]], reader_config=config)
iterator = iter(dataset)
batches = dataset.iter_batches(100)
head = [next(iterator).sample_id for _ in range(700)]
first_batch = next(batches).sample_id.to_list()
dataset.get_metadata().group_by("label").agg(pl.col("sample_id").sum())
def check():
    assert head + support.rows(iterator) == expected[0]
    rest = [i for batch in batches for i in batch.sample_id]
    assert first_batch + rest == expected[1]
    assert support.rows(dataset) == expected[2]
    assert dataset.get_item(0, 5).data == support.payload(5)
    assert dataset.rows[-1].sample_id == len(dataset) - 1
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            check()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    children.append(child)
check()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes)
"""


@pytest.mark.rule("A forked child goes on")
@pytest.mark.parametrize("shuffle", [False, True])
def test_fork_in_the_middle(make_cache: CacheFactory, shuffle: bool) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    cache = make_cache(support.numbered(5000))
    done = support.run(FORK, cache, shuffle)
    assert done.stdout == "[0, 0]\n", done.stderr


@pytest.mark.rule("A forked child goes on")
def test_a_pool_of_forked_processes(make_cache: CacheFactory) -> None:
    code = """
    import multiprocessing, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    runtime = DatasetRuntime(num_workers=2)
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=1))
    expected = support.rows(dataset)
    second = support.rows(dataset)
    dataset.update_metadata(dataset.get_metadata())
    context = multiprocessing.get_context("fork")
    def inherited(_):
        return support.rows(dataset)
    with context.Pool(4) as pool:
        got = pool.map(inherited, range(4), chunksize=1)
        sent = pool.map(support.rows, [dataset] * 4)
    # Each child has the position that was inherited; one that did two jobs went on.
    assert all(rows in (expected, second) or len(rows) == 600 for rows in got)
    assert expected in got
    assert sent == [expected] * 4
    assert support.rows(dataset) == expected
    print("ok")
    """
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    cache = make_cache(support.numbered(600))
    assert support.run(code, cache).stdout == "ok\n"


@pytest.mark.rule("A forked child goes on")
def test_a_forked_child_writes(base: Path) -> None:
    code = """
    import os, signal, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    from dataset_rt import DatasetRuntime
    from tests import support
    runtime = DatasetRuntime(num_workers=2)
    support.write(runtime, sys.argv[1], support.plain(2000), "parent")
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            support.write(runtime, sys.argv[1], support.plain(2000), "child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    support.write(runtime, sys.argv[1], support.plain(2000), "again")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    assert support.run(code, base).stdout == "0\n"
    assert support.listing(base) == ["again", "child", "parent"]


def interrupt(code: str, *arguments: object) -> tuple[int, str, str, float]:
    """Starts a script, sends SIGINT once it says "ready", and tells how it ended."""
    process = subprocess.Popen(  # noqa: S603
        [*support.script(code), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=support.environment(),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=support.INTERRUPT_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail("the interrupt was not noticed")
        return process.returncode, out, err, time.monotonic() - sent


INTERRUPTED_WRITE = """
import json, os, sys, time
from dataset_rt import DatasetRuntime, WriterConfig, WriterProfilerConfig
from tests import support
base, kind = sys.argv[1], sys.argv[2]
def samples():
    yield from support.plain(2000)
    # Workers publish the source before this one meanwhile.
    while not os.path.exists(os.path.join(base, "done")):
        time.sleep(0.01)
    print("ready", flush=True)
    if kind == "sleeping":
        time.sleep(1000)
    i = 0
    while True:
        i += 1
        yield b"x" * 1000, {"label": i}
profile = os.path.join(os.path.dirname(base), "profile.json")
config = WriterConfig(show_progress=False, prefetch_size=2,
                      profiler=WriterProfilerConfig(enabled=True, path=profile))
runtime = DatasetRuntime(num_workers=2)
done = support.Source("done", support.plain(5))
try:
    runtime.write_cache([done, support.Source("s", samples())], base, writer_config=config)
except KeyboardInterrupt:
    print(json.dumps(os.listdir(base)))
json.load(open(profile))
support.write(runtime, base, support.plain(7), "s")
print("written")
"""


@pytest.mark.rule("Interrupting a write leaves nothing", "The profiler writes JSON")
@pytest.mark.parametrize("kind", ["sleeping", "fast"])
def test_interrupting_a_write(base: Path, kind: str) -> None:
    code, out, err, _ = interrupt(INTERRUPTED_WRITE, base, kind)
    assert code == 0, err
    listing, written = out.splitlines()
    assert json.loads(listing) == ["done"]
    assert written == "written"
    assert support.listing(base) == ["done", "s"]


@pytest.mark.rule("Reading can be interrupted")
@pytest.mark.parametrize("how", ["samples", "batches", "order"])
def test_interrupting_a_read(make_cache: CacheFactory, how: str) -> None:
    code = """
    import sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    how = sys.argv[2]
    config = ReaderConfig(seed=0, shuffle=how != "samples", replacement=False)
    dataset = DatasetRuntime(num_workers=2).cached_dataset([sys.argv[1]], reader_config=config)
    dataset.set_epoch_len(2**62)
    print("ready", flush=True)
    try:
        for item in dataset.iter_batches(1000) if how == "batches" else dataset:
            pass
    except KeyboardInterrupt:
        dataset.update_metadata(dataset.get_metadata())
        dataset.set_epoch_len(100)
        assert len(support.rows(dataset)) == 100
        print("went on")
    """
    cache = make_cache(support.plain(3000))
    code_, out, err, _ = interrupt(code, cache, how)
    assert (code_, out) == (0, "went on\n"), err


@pytest.mark.rule("A living writer is waited for")
def test_interrupting_a_wait(base: Path) -> None:
    holder = """
    import sys
    from dataset_rt import DatasetRuntime
    from tests import support
    def samples():
        yield from support.plain(10)
        print("holding", flush=True)
        sys.stdin.readline()
    support.write(DatasetRuntime(num_workers=1), sys.argv[1], samples(), "a")
    """
    waiter = """
    import logging, sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    class Ready(logging.Handler):
        def emit(self, record):
            print("ready", flush=True)
    logging.getLogger("dataset_rt").addHandler(Ready())
    try:
        DatasetRuntime(num_workers=1).from_cache_sources(
            support.PrintedSource("a", support.plain(3), "v1"), sys.argv[1],
            reader_config=ReaderConfig(seed=0), writer_config=support.QUIET)
    except KeyboardInterrupt:
        print("stopped")
    """
    process = subprocess.Popen(  # noqa: S603
        [*support.script(holder), str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=support.environment(),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        code, out, err, _ = interrupt(waiter, base)
        assert (code, out) == (0, "stopped\n"), err
        process.communicate("go\n", timeout=support.PATIENCE)
    assert process.returncode == 0
    assert support.listing(base) == ["a"]


@pytest.mark.rule("A process ends at once")
@pytest.mark.parametrize(
    ("ending", "code"),
    [("pass", 0), ("sys.exit(7)", 7), ("raise RuntimeError('the end')", 1)],
)
def test_the_end_of_a_process(make_cache: CacheFactory, ending: str, code: int) -> None:
    program = f"""
    import sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    runtime = DatasetRuntime(num_workers=4)
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=0))
    dataset.set_epoch_len(10**9)
    iterators = [iter(dataset) for _ in range(3)]
    kept = [next(iterator) for iterator in iterators]
    batches = dataset.iter_batches(50)
    next(batches)
    {ending}
    """
    cache = make_cache(support.plain(5000, 500))
    done = support.run(program, cache, timeout=support.PATIENCE, check=False)
    assert done.returncode == code
    if code == 1:
        assert done.stderr.endswith("RuntimeError: the end\n")
    else:
        assert done.stderr == ""


@pytest.mark.rule("A process ends at once", "Interrupting a write leaves nothing")
def test_an_exception_out_of_a_source_ends_the_process(base: Path) -> None:
    program = """
    import sys
    from dataset_rt import DatasetRuntime
    from tests import support
    def samples():
        yield from support.plain(1000)
        sys.exit(5)
    support.write(DatasetRuntime(num_workers=2), sys.argv[1], samples())
    """
    done = support.run(program, base, check=False)
    assert (done.returncode, done.stderr) == (5, "")
    assert support.listing(base) == []


@pytest.mark.rule("Ranks are announced")
@pytest.mark.parametrize(("size", "warnings"), [(None, 0), ("1", 0), ("4", 1), ("many", 0)])
def test_world_size(make_cache: CacheFactory, size: str | None, warnings: int) -> None:
    code = """
    import json, sys, warnings
    from dataset_rt import DatasetRuntime, DatasetRTWarning, ReaderConfig
    runtime = DatasetRuntime(num_workers=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            dataset = runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=0))
            list(dataset)
    assert all(entry.category is DatasetRTWarning for entry in caught)
    print(json.dumps([str(entry.message) for entry in caught]))
    """
    cache = make_cache(support.plain(3))
    changes = {} if size is None else {"WORLD_SIZE": size}
    messages = json.loads(support.run(code, cache, changes=changes).stdout)
    assert len(messages) == warnings
    for message in messages:
        assert "WORLD_SIZE" in message
        assert "4" in message


@pytest.mark.rule("Many readers share a cache", "A copied dataset is independent")
def test_two_runtimes_at_once(make_cache: CacheFactory) -> None:
    cache = make_cache(support.numbered(1000))
    datasets: list[CachedDataset] = [
        DatasetRuntime(num_workers=n).cached_dataset([cache], reader_config=ReaderConfig(seed=1))
        for n in (1, 2, 3)
    ]
    for first, second, third in zip(*datasets, strict=True):
        assert first == second == third
