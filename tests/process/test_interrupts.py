"""Ctrl-C in every phase, once and twice: noticed soon, nothing left behind, everything goes on."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from dataset_rt import ReaderConfig

from tests import support
from tests.process.program import Program, stalling_library

if TYPE_CHECKING:
    from pathlib import Path

    from dataset_rt import DatasetRuntime

    from tests.conftest import CacheFactory

# Makes the kernel say that no byte is in the page cache, for this thread and those it starts: files
# that were just written would be, and then reads would be no matter of the disk.
COLD = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 327, "aarch64": 286}[platform.machine()]  # preadv2
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | 11), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Filter(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
program = Filter(len(steps), ctypes.addressof(code))
if libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
    print("no filter", flush=True)
    sys.exit(0)
"""

STALLED_READ = (
    COLD
    + """
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
base, marker, how = sys.argv[1:]
runtime = DatasetRuntime(num_workers=2)
cache = support.write(runtime, base, support.plain(20_000, 1000))
def opened():
    config = ReaderConfig(seed=0, prefetch_size=2, use_mmap=False)
    return runtime.cached_dataset([cache], reader_config=config)
expected = support.rows(opened())
dataset = opened()
got = []
iterator = dataset.iter_batches(100) if how == "batches" else iter(dataset)
def take():
    item = next(iterator)
    got.extend(item.sample_id.to_list() if how == "batches" else [item.sample_id])
take()
open(marker, "x").close()
for word in ("first", "second"):
    print(word, flush=True)
    try:
        while True:
            take()
    except KeyboardInterrupt:
        assert len(got) < 19_000, len(got)
# The table is in memory or of another file, and the objects work.
dataset.set_epoch_len(100)
other = iter(dataset)
print("third", flush=True)
try:
    next(other)
    print("not stalled", flush=True)
except KeyboardInterrupt:
    pass
os.unlink(marker)
try:
    while True:
        take()
except StopIteration:
    pass
assert got == expected
assert len(list(other)) == 100
dataset.update_metadata(dataset.get_metadata())
dataset.set_epoch_len(20_000)
assert support.rows(dataset) == expected
print("done", flush=True)
"""
)


@pytest.mark.rule("Reading can be interrupted")
@pytest.mark.parametrize("how", ["samples", "batches"])
def test_reads_of_a_disk_that_hangs(base: Path, tmp_path: Path, how: str) -> None:
    marker = tmp_path / "stalled"
    changes = {"LD_PRELOAD": stalling_library(tmp_path), "STALL_READ": str(marker)}
    with Program(STALLED_READ, base, marker, how, **changes) as program:
        program.expect("first")
        program.interrupt()
        program.expect("second")
        program.interrupt()
        program.expect("third")
        program.interrupt()
        program.expect("done")
        program.succeed()


VALIDATION = """
import os, sys, time
from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
from tests import support
base, how = sys.argv[1:]
runtime = DatasetRuntime(num_workers=2)
samples = support.plain(3000, 100)
small = WriterConfig(show_progress=False, max_shard_bytes=1000, validate_cache=True)
source = support.PrintedSource("s", samples, "v")
cache = support.succeed(runtime.write_cache(source, base, writer_config=small)).path
checked = ReaderConfig(seed=0, validate_cache=True, use_mmap=False)
def call():
    if how == "open":
        return runtime.cached_dataset([cache], reader_config=checked)
    unchecked = ReaderConfig(seed=0)
    return runtime.from_cache_sources(source, base, reader_config=unchecked, writer_config=small)
for word in ("first", "second"):
    os.environ["DELAY_READ"] = "50"
    print(word, flush=True)
    try:
        call()
        print("not interrupted", flush=True)
    except KeyboardInterrupt:
        pass
    del os.environ["DELAY_READ"]
call()
assert source.started == 1
assert support.listing(__import__("pathlib").Path(base)) == ["s"]
print("done", flush=True)
"""


@pytest.mark.rule("Opening can be interrupted", "validate_cache of a writer checks what is reused")
@pytest.mark.parametrize("how", ["open", "reuse"])
def test_checks_of_a_large_cache(base: Path, tmp_path: Path, how: str) -> None:
    # Each read is slow, as from a far away disk; there are hundreds. (Maps would not be slowed.)
    library = stalling_library(tmp_path)
    with Program(VALIDATION, base, how, LD_PRELOAD=library) as program:
        program.expect("first")
        program.interrupt()
        program.expect("second")
        program.interrupt()
        program.expect("done")
        program.succeed()


STALLED_WRITE = """
import json, os, pathlib, sys, time
from dataset_rt import DatasetRuntime, WriterConfig, WriterProfilerConfig
from tests import support
base, marker, how = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
profile = base.parent / "profile.json"
config = WriterConfig(show_progress=False, max_shard_bytes=20_000,
                      profiler=WriterProfilerConfig(enabled=True, path=profile))
runtime = DatasetRuntime(num_workers=2)
support.write(runtime, base, support.plain(5), "before")
def samples():
    yield from support.plain(1000, 100)
    open(marker, "x").close()
    yield from support.plain(1000, 100)
    if how == "failing":
        # Time for the workers to get stuck.
        time.sleep(1)
    print("ready", flush=True)
    if how == "failing":
        raise ValueError("the source's own")
try:
    runtime.write_cache(support.Source("s", samples()), base, writer_config=config)
except KeyboardInterrupt:
    print("stopped", flush=True)
assert not (base / "s").exists()
json.loads(profile.read_text())
os.unlink(marker)
support.write(runtime, base, support.plain(7), "s", config)
support.write(runtime, base, support.plain(7), "t")
deadline = time.monotonic() + 20
# What the disk held up is cleaned when it answers.
while support.leftovers(base) and time.monotonic() < deadline:
    time.sleep(0.01)
assert support.listing(base) == ["before", "s", "t"], support.listing(base)
print("done", flush=True)
"""


@pytest.mark.rule("Interrupting a write leaves nothing", "The profiler writes JSON")
@pytest.mark.parametrize("how", ["ended", "failing"])
@pytest.mark.parametrize("times", [1, 2])
def test_writes_to_a_disk_that_hangs(base: Path, tmp_path: Path, how: str, times: int) -> None:
    marker = tmp_path / "stalled"
    changes = {"LD_PRELOAD": stalling_library(tmp_path), "STALL_SYNC": str(marker)}
    with Program(STALLED_WRITE, base, marker, how, **changes) as program:
        program.expect("ready")
        for _ in range(times):
            program.interrupt()
        program.expect("stopped")
        program.expect("done")
        program.succeed()


@pytest.mark.rule("Interrupting a write leaves nothing", "A process ends at once")
@pytest.mark.parametrize("kind", ["sleeping", "fast"])
def test_two_interrupts_that_nobody_handles(base: Path, kind: str) -> None:
    code = """
    import itertools, sys, time
    from dataset_rt import DatasetRuntime
    from tests import support
    def samples():
        yield from support.plain(2000)
        print("ready", flush=True)
        if sys.argv[2] == "sleeping":
            time.sleep(1000)
        for i in itertools.count():
            yield b"x" * 1000, {"label": i}
    support.write(DatasetRuntime(num_workers=2), sys.argv[1], samples())
    """
    with Program(code, base, kind) as program:
        program.expect("ready")
        program.interrupt()
        program.interrupt(after=0.001)
        code_, err = program.end()
    assert code_ == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    assert "panicked" not in err
    # The second one may have ended the cleaning; then the next writer does it.
    if base.exists() and support.listing(base):
        assert support.listing(base) == ["tmp"]


@pytest.mark.rule("Interrupting a write leaves nothing", "Reading can be interrupted")
def test_interrupts_again_and_again(base: Path) -> None:
    # The same objects through many interrupts, in whatever they were doing.
    code = """
    import itertools, json, os, pathlib, sys
    from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig, WriterProfilerConfig
    from tests import support
    base = pathlib.Path(sys.argv[1])
    runtime = DatasetRuntime(num_workers=2)
    cache = support.write(runtime, base, support.numbered(3000), "read")
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
    expected = support.rows(dataset)
    profile = base.parent / "profile.json"
    profiled = WriterProfilerConfig(enabled=True, path=profile)
    config = WriterConfig(show_progress=False, profiler=profiled)
    def samples():
        for i in itertools.count():
            yield b"x" * 1000, {"label": i}
    def write():
        runtime.write_cache(support.Source("s", samples()), base, writer_config=config)
    def read():
        dataset.set_epoch_len(2**60)
        for sample in dataset:
            sample.metadata
    def batches():
        dataset.set_epoch_len(2**60)
        for batch in dataset.iter_batches(64):
            batch.metadata
    def update():
        # From us to us: an interrupt that comes inside of Polars may be lost there.
        while True:
            dataset._native.update(dataset._native.export(), 0, None)
    for work in (write, read, batches, update, write, update, read):
        try:
            print(work.__name__, flush=True)
            work()
        except KeyboardInterrupt:
            pass
        assert support.listing(base) == ["read"]
        json.loads(profile.read_text())
        dataset.update_metadata(dataset.get_metadata())
        dataset.set_epoch_len(3000)
        assert support.rows(dataset) == expected
    support.write(runtime, base, support.plain(5), "s")
    print("done", flush=True)
    """
    with Program(code, base) as program:
        for word in ("write", "read", "batches", "update", "write", "update", "read"):
            program.expect(word)
            program.interrupt(after=0.2)
        program.expect("done")
        program.succeed()


@pytest.mark.rule("An update is all or nothing", "Updates can be interrupted")
def test_an_interrupt_at_any_moment_of_an_update(make_cache: CacheFactory) -> None:
    # A timer raises in the middle of whatever is going on. Table and order must be of one update.
    code = """
    import random, signal, sys
    import polars as pl
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    class Alarm(Exception):
        pass
    def ring(number, frame):
        if armed:
            raise Alarm
    armed = False
    signal.signal(signal.SIGALRM, ring)
    runtime = DatasetRuntime(num_workers=2)
    dataset = runtime.cached_dataset(
        [sys.argv[1]], reader_config=ReaderConfig(seed=0, shuffle=False))
    whole = dataset.get_metadata()
    # Rows enough that an update takes a while; the first id of table k is k.
    tables = [
        pl.concat([whole.slice(k, 1000)] * 100).with_columns(mark=pl.lit(k)) for k in range(4)]
    dataset.update_metadata(tables[0])
    dataset.set_epoch_len(3)
    interrupted = 0
    random.seed(1)
    for turn in range(int(sys.argv[2])):
        table = tables[turn % 4]
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 8e-3))
            while True:
                dataset.update_metadata(table)
                dataset.get_metadata()
                table = tables[random.randrange(4)]
        except Alarm:
            interrupted += 1
        armed = False
        found = dataset.get_metadata()
        mark = found["mark"][0]
        assert found["sample_id"][0] == mark
        assert support.rows(dataset.rows[:3]) == [mark, mark + 1, mark + 2]
        first = next(iter(dataset)).sample_id
        assert mark <= first < mark + 1000, (mark, first)
        dataset.update_metadata(tables[turn % 4])
        assert support.rows(dataset)[0] == turn % 4
    print(interrupted)
    """
    cache = make_cache(support.plain(1100))
    turns = 150
    assert support.run(code, cache, turns, timeout=90).stdout == f"{turns}\n"


@pytest.mark.rule("Reading can be interrupted")
def test_a_handler_that_raises_something_else(
    make_cache: CacheFactory, runtime: DatasetRuntime
) -> None:
    class EnoughError(Exception):
        pass

    def ring(*_: object) -> None:
        raise EnoughError

    dataset = runtime.cached_dataset(
        [make_cache(support.plain(3000))], reader_config=ReaderConfig(seed=0)
    )
    dataset.set_epoch_len(2**62)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for iterator in (iter(dataset), dataset.iter_batches(100)):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(EnoughError):
                for _ in iterator:
                    pass
            assert next(iterator) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.rule("The profiler writes JSON")
def test_the_profile_of_an_interrupted_write_tells_it(base: Path, tmp_path: Path) -> None:
    code = """
    import sys, time
    from dataset_rt import DatasetRuntime, WriterConfig, WriterProfilerConfig
    from tests import support
    profile = WriterProfilerConfig(enabled=True, path=sys.argv[2])
    def samples():
        yield from support.plain(2000)
        print("ready", flush=True)
        time.sleep(1000)
    sources = [support.Source("a", support.plain(3)), support.Source("b", samples())]
    config = WriterConfig(show_progress=False, profiler=profile)
    DatasetRuntime(num_workers=1).write_cache(sources, sys.argv[1], writer_config=config)
    """
    profile = tmp_path / "p.json"
    with Program(code, base, profile) as program:
        program.expect("ready")
        program.interrupt()
        code_, _ = program.end()
    assert code_ == -signal.SIGINT
    found = json.loads(profile.read_text(encoding="utf-8"))
    assert found["interrupted"] is True
    assert [source["outcome"] for source in found["sources"]] == ["written", "aborted"]
    assert support.listing(base) == ["a"]
