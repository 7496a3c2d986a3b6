"""The end of a process: with its own exit code, soon, and in silence, whatever is under way."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from dataset_rt import DatasetRuntime, ReaderConfig

from tests import support

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CacheFactory

SETUP = """
import atexit, collections, itertools, os, sys, threading, time
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
cache, base = sys.argv[1], sys.argv[2]
runtime = DatasetRuntime(num_workers=4)
dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
dataset.set_epoch_len(10**9)
def endless():
    for number in itertools.count():
        yield b"x" * 10_000, {"label": number}
def read_on():
    for sample in dataset:
        sample.metadata
        started.set()
def batches_on():
    for batch in dataset.iter_batches(100):
        batch.metadata
        started.set()
def write_on(samples=endless, name="endless"):
    started.set()
    support.write(runtime, base, samples(), name)
def slow(function, seconds=0.1):
    def wrapped(*arguments):
        time.sleep(seconds)
        return function(*arguments)
    return wrapped
class SlowKeys(collections.UserDict):
    __iter__ = slow(collections.UserDict.__iter__)
class SlowValues(collections.UserDict):
    __getitem__ = slow(collections.UserDict.__getitem__)
def slow_keys():
    for number in itertools.count():
        yield b"x" * 100, SlowKeys(label=number)
def slow_values():
    for number in itertools.count():
        yield b"x" * 100, SlowValues(label=number)
def slow_samples():
    for number in itertools.count():
        time.sleep(0.1)
        yield b"x" * 100, {"label": number}
class SlowSource:
    name = "endless"
    __iter__ = slow(lambda self: endless(), 0.5)
def start_slowly():
    runtime.write_cache(SlowSource(), base, writer_config=support.QUIET)
class SlowTable:
    __arrow_c_stream__ = slow(lambda self: dataset._native.export().__arrow_c_stream__())
def slow_tables():
    while True:
        started.set()
        dataset._native.update(SlowTable(), 0, None)
def update_on():
    while True:
        dataset.update_metadata(dataset.get_metadata())
        started.set()
class Late:
    # Sources come back while the interpreter is taken apart.
    def __del__(self, sleep=time.sleep):
        sleep(0.3)
started = threading.Event()
def daemon(work):
    started.clear()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    started.wait()
    return thread
"""

WORK = {
    "half read": """
        iterators = [iter(dataset), dataset.iter_batches(50), iter(dataset), iter(dataset)]
        kept = [next(iterator) for iterator in iterators[:3]]
    """,
    "threads that read": """
        threads = [daemon(work) for work in (read_on, read_on, batches_on)]
        time.sleep(0.05)
    """,
    "a thread that writes": """
        thread = daemon(write_on)
        time.sleep(0.2)
    """,
    "threads whose Python code below ours comes back late": """
        last = Late()
        works = [(write_on, slow_samples, "samples"), (write_on, slow_keys, "keys"),
                 (write_on, slow_values, "values"), (start_slowly,), (slow_tables,)]
        for work, *arguments in works:
            threading.Thread(target=work, args=arguments, daemon=True).start()
        time.sleep(0.3)
    """,
    "a thread that updates": """
        thread = daemon(update_on)
        time.sleep(0.05)
    """,
    "everything at once": """
        threads = [daemon(work) for work in (read_on, batches_on, write_on, update_on)]
        iterator = iter(dataset)
        next(iterator)
    """,
    "a cycle": """
        class Cycle:
            pass
        cycle = Cycle()
        cycle.me, cycle.iterator, cycle.dataset = cycle, iter(dataset), dataset
        next(cycle.iterator)
    """,
    "a finaliser that reads": """
        class Last:
            def __del__(self, dataset=dataset):
                next(iter(dataset))
                dataset.get_metadata()
        last = Last()
    """,
    "an exit function that reads": """
        def last():
            assert next(iter(dataset)) is not None
            assert dataset.get_metadata().height
            support.write(runtime, base, support.plain(5), "last")
        atexit.register(last)
    """,
}

ENDINGS = {
    "end": ("pass", 0),
    "exit": ("sys.exit(7)", 7),
    "raise": ("raise RuntimeError('the end')", 1),
    "os._exit": ("os._exit(9)", 9),
    "signal": ("os.kill(os.getpid(), 15); time.sleep(60)", -signal.SIGTERM),
}


def program(work: str, ending: str) -> str:
    lines = [line.strip("\n") for line in WORK[work].splitlines()]
    body = "\n".join(line.removeprefix("        ") for line in lines)
    return SETUP + body + "\n" + ending + "\n"


@pytest.mark.rule("A process ends at once")
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_end_in_the_middle(make_cache: CacheFactory, base: Path, work: str, ending: str) -> None:
    cache = make_cache(support.plain(5000, 500))
    statement, code = ENDINGS[ending]
    done = support.run(program(work, statement), cache, base, check=False)
    assert done.returncode == code, done.stderr
    if ending == "raise":
        assert done.stderr.startswith("Traceback")
        assert done.stderr.endswith("RuntimeError: the end\n")
        assert done.stderr.count("Traceback") == 1
    else:
        assert done.stderr == ""
    # A daemon thread that wrote leaves what a kill leaves, and the next writer removes it.
    assert not (base / "endless").exists()
    support.write(DatasetRuntime(num_workers=1), base, support.plain(3), "next")
    assert not support.leftovers(base)


@pytest.mark.rule("A process ends at once", "A cache appears whole")
def test_a_thread_that_is_no_daemon_is_waited_for(make_cache: CacheFactory, base: Path) -> None:
    code = (
        SETUP
        + """
def write():
    def samples():
        for sample in support.plain(3000, 100):
            if sample.metadata["label"] == 0:
                time.sleep(1e-4)
            yield sample
    support.write(runtime, base, samples(), "whole")
thread = threading.Thread(target=write)
thread.start()
sys.exit(3)
"""
    )
    done = support.run(code, make_cache(support.plain(10)), base, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    config = ReaderConfig(seed=0, validate_cache=True)
    dataset = DatasetRuntime(num_workers=1).cached_dataset([base / "whole"], reader_config=config)
    assert len(dataset) == 3000


@pytest.mark.rule("A process ends at once")
@pytest.mark.parametrize("how", ["sys.exit(5)", "raise SystemExit(5)", "os._exit(5)"])
def test_a_source_that_ends_the_process(make_cache: CacheFactory, base: Path, how: str) -> None:
    code = (
        SETUP
        + f"""
iterator = iter(dataset)
next(iterator)
def samples():
    yield from support.plain(2000, 100)
    {how}
support.write(runtime, base, samples(), "other")
"""
    )
    done = support.run(code, make_cache(support.plain(100)), base, check=False)
    assert (done.returncode, done.stderr) == (5, "")
    assert not (base / "other").exists()
    if "os._exit" not in how:
        assert not support.leftovers(base)


@pytest.mark.rule("A process ends at once")
def test_an_end_without_output_streams(make_cache: CacheFactory, base: Path) -> None:
    code = (
        SETUP
        + """
threads = [daemon(work) for work in (read_on, write_on)]
os.close(0)
os.close(1)
os.close(2)
os._exit(6) if len(sys.argv) > 3 else sys.exit(6)
"""
    )
    cache = make_cache(support.plain(1000))
    for arguments in ((), ("hard",)):
        done = support.run(code, cache, base, *arguments, check=False)
        # The interpreter itself answers 120 when it can't flush what it wrote; nothing was written.
        assert done.returncode == 6
