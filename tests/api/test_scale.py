"""Many shards, many caches, few descriptors."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dataset_rt import CacheWriteSuccess, DatasetRuntime, ReaderConfig, WriterConfig

from tests import support
from tests.support import QUIET, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = pytest.mark.skipif(
    os.environ.get("DATASET_RT_LONG") != "1", reason="DATASET_RT_LONG=1 runs it: minutes"
)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are flushed one by one."""
    memory = Path("/dev/shm")  # noqa: S108 - a fresh folder in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


MANY_SHARDS = """
import json, os, resource, sys, time
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
cache, count, files, mapped = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
def peak():
    # Not ru_maxrss: that starts with what the parent had when it forked.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
def used():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
runtime = DatasetRuntime(num_workers=2)
figures = {}
def timed(name, work):
    before, started = used(), time.monotonic()
    result = work()
    figures[name] = [round(time.monotonic() - started, 3), used() - before]
    return result
def dataset(**options):
    config = ReaderConfig(seed=0, use_mmap=mapped == "True", **options)
    return runtime.cached_dataset([cache], reader_config=config)
def read(shuffle):
    seen = 0
    made = dataset(shuffle=shuffle, replacement=False)
    held = [iter(made) for _ in range(3)]
    for sample in held[0]:
        assert sample.data == support.payload(sample.sample_id, 8)
        assert sample.metadata == {"label": sample.sample_id % 3}
        seen += 1
        if seen % 1000 == 0:
            # What the program itself opens is never refused.
            with open(os.devnull) as own:
                own.read()
    assert seen == count
    for iterator in held[1:]:
        next(iterator)
    for batch in made.iter_batches(777):
        assert batch.data[0] == support.payload(batch.sample_id[0], 8)
kept = timed("open", dataset)
timed("ordered", lambda: read(False))
timed("shuffled", lambda: read(True))
timed("validate", lambda: dataset(validate_cache=True))
assert kept.get_item(0, count - 1).data == support.payload(count - 1, 8)
figures["descriptors"] = len(os.listdir("/proc/self/fd"))
with open("/proc/self/maps") as maps:
    figures["maps"] = sum(1 for _ in maps)
figures["peak"] = peak()
print(json.dumps(figures))
"""


def one_sample_a_shard(base: Path, count: int) -> Path:
    """A cache with as many shards as samples."""
    config = WriterConfig(show_progress=False, max_shard_bytes=1)
    runtime = DatasetRuntime(num_workers=2)
    samples = ((support.payload(i, 8), {"label": i % 3}) for i in range(count))
    cache = support.write(runtime, base, samples, config=config)
    assert len(support.shards(cache)) == count
    return cache


@pytest.mark.rule("Open files are bounded")
def test_few_descriptors_are_enough(scratch: Path) -> None:
    count = 3000
    cache = one_sample_a_shard(scratch, count)
    for mapped in (True, False):
        done = support.run(MANY_SHARDS, cache, count, 64, mapped)
        figures = json.loads(done.stdout)
        assert figures["descriptors"] < 48
        assert figures["maps"] < 4096 + 1500


@pytest.mark.rule("Open files are bounded")
def test_kept_files_give_way(scratch: Path) -> None:
    cache = one_sample_a_shard(scratch, 200)
    code = """
    import os, resource, sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from dataset_rt.errors import StorageError
    runtime = DatasetRuntime(num_workers=2)
    config = ReaderConfig(seed=0, shuffle=False, use_mmap=sys.argv[2] == "True")
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=config)
    assert len(list(dataset)) == 200
    # From now on every descriptor is taken, some of them by shards that are kept open.
    here = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (here + 6, here + 6))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    assert len(list(dataset)) == 200
    assert len(runtime.cached_dataset([sys.argv[1]], reader_config=config)) == 200
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
            dataset.get_item(0, len(taken) % 200)
    except (OSError, StorageError) as error:
        print(error.errno)
    for descriptor in taken:
        os.close(descriptor)
    assert len(list(dataset)) == 200
    """
    for mapped in (True, False):
        assert support.run(code, cache, mapped).stdout == "24\n"


@LONG
@pytest.mark.timeout(3600)
@pytest.mark.rule("Open files are bounded")
@pytest.mark.parametrize("mapped", [True, False])
def test_100_000_shards(scratch: Path, mapped: bool) -> None:
    count = 100_000
    cache = one_sample_a_shard(scratch, count)
    done = support.run(MANY_SHARDS, cache, count, 256, mapped, timeout=3000)
    figures = json.loads(done.stdout)
    files = sum((cache / name).stat().st_size for name in ("manifest.json", "index.bin"))
    print(files, figures)  # noqa: T201 - the measure is what this form is run for
    assert figures["descriptors"] < 200
    assert figures["maps"] < 4096 + 1500


@pytest.mark.rule("Many caches are one dataset", "Open files are bounded")
@pytest.mark.timeout(300)
def test_many_caches(scratch: Path) -> None:
    count = 2000
    runtime = DatasetRuntime(num_workers=2)
    sources = [
        Source(f"cache {i}", [(support.payload(3 * i + j, 8), {"n": 3 * i + j}) for j in range(3)])
        for i in range(count)
    ]
    results = runtime.write_cache(sources, scratch / "base", writer_config=QUIET)
    paths = [result.path for result in results if isinstance(result, CacheWriteSuccess)]
    assert len(paths) == count
    code = """
    import os, resource, sys
    from pathlib import Path
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    count = int(sys.argv[2])
    paths = [Path(sys.argv[1]) / f"cache {i}" for i in range(count)]
    runtime = DatasetRuntime(num_workers=2)
    for shuffle in (False, True):
        config = ReaderConfig(seed=0, shuffle=shuffle, replacement=False)
        dataset = runtime.cached_dataset(paths, reader_config=config)
        assert len(dataset) == 3 * count
        for sample in dataset:
            number = 3 * sample.cache_id + sample.sample_id
            assert sample.data == support.payload(number, 8)
            assert sample.metadata == {"n": number}
    assert dataset.get_metadata()["n"].to_list() == list(range(3 * count))
    with open("/proc/self/maps") as maps:
        print(sum(1 for _ in maps) < 3 * count + 4096 + 1500)
    """
    done = support.run(code, scratch / "base", count)
    assert done.stdout == "True\n"
    table = runtime.cached_dataset(paths[::-1], reader_config=ReaderConfig(seed=0)).get_metadata()
    assert table["n"][0] == 3 * (count - 1)
