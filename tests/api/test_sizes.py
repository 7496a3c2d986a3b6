"""Payloads and shards around 2 and 4 GiB, and memory that is not there."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CacheInput, ReaderConfig, ShardCompression, WriterConfig

from tests import support

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dataset_rt import DatasetRuntime

    from tests.conftest import CacheFactory, DatasetFactory

LONG = pytest.mark.skipif(
    os.environ.get("DATASET_RT_LONG") != "1", reason="DATASET_RT_LONG=1 runs it: minutes and 10 GB"
)
GIB = 1 << 30
MOST = 2**32 - 1


def config(algo: str, **options: Any) -> WriterConfig:
    compression = ShardCompression.model_validate({"algo": algo})
    return WriterConfig(show_progress=False, shard_compression=compression, **options)


LIMITED = """
import mmap, resource, sys
from dataset_rt import DatasetRuntime, ReaderConfig, ShardCompression, WriterConfig
from tests import support
def memory():
    with open("/proc/self/statm") as statm:
        return [int(pages) * resource.getpagesize() for pages in statm.read().split()[:2]]
def limit(room):
    resource.setrlimit(resource.RLIMIT_AS, (memory()[0] + room, resource.RLIM_INFINITY))
"""


@pytest.mark.rule("Payloads have at most 2^32 - 1 bytes")
@pytest.mark.parametrize("algo", ["none", "lz4"])
@pytest.mark.parametrize("kind", ["bytes", "map", "view", "strided", "numpy"])
def test_payloads_of_4_gib_are_refused_at_once(base: Path, kind: str, algo: str) -> None:
    if kind in {"strided", "numpy"}:
        pytest.importorskip("numpy")
    code = (
        LIMITED
        + """
kind, size = sys.argv[2], 2**32
if kind == "bytes":
    data = bytes(size)
elif kind in {"map", "view"}:
    # No page of it exists until it is touched.
    data = mmap.mmap(-1, size)
    data = memoryview(data) if kind == "view" else data
else:
    import numpy as np
    data = np.broadcast_to(np.zeros(1, np.uint8), (size,))
    data = memoryview(data) if kind == "strided" else data
compression = ShardCompression.model_validate({"algo": sys.argv[3]})
config = WriterConfig(show_progress=False, shard_compression=compression)
runtime = DatasetRuntime(num_workers=2)
before = memory()[1]
limit(1 << 30)
sources = [support.Source("large", [(b"x", {}), (data, {})]), support.Source("small", [(b"", {})])]
large, small = runtime.write_cache(sources, sys.argv[1], writer_config=config)
error = large.cause
print(type(error).__name__, error.sample, error.field, small.status)
print(str(2**32) in str(error), str(2**32 - 1) in str(error))
assert memory()[1] - before < 200 << 20
# Not ru_maxrss: that starts with what the parent had when it forked.
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
assert peak - before < 400 << 20, peak
"""
    )
    done = support.run(code, base, kind, algo)
    assert done.stdout == "SampleValueError 1 data written\nTrue True\n"
    assert support.listing(base) == ["small"]


@pytest.mark.rule("Payloads have at most 2^32 - 1 bytes")
def test_copies_that_find_no_memory(base: Path) -> None:
    code = (
        LIMITED
        + """
data = bytearray(1 << 30)
views = [data, memoryview(data), memoryview(data)[::2]]
runtime = DatasetRuntime(num_workers=2)
list(runtime.write_cache(support.Source("first", [(b"x", {})]), sys.argv[1],
                         writer_config=support.QUIET))
limit(200 << 20)
for i, view in enumerate(views):
    [result] = runtime.write_cache(
        support.Source(str(i), [(view, {})]), sys.argv[1], writer_config=support.QUIET)
    print(type(result.cause).__name__)
"""
    )
    assert support.run(code, base).stdout == "MemoryError\n" * 3
    assert support.listing(base) == ["first"]


@pytest.mark.rule("No memory is an error")
@pytest.mark.parametrize("mapped", [True, False])
def test_reads_and_writes_that_find_no_memory(base: Path, mapped: bool) -> None:
    begin = (
        LIMITED
        + """
data, size = sys.argv[1], 300 << 20
runtime = DatasetRuntime(num_workers=1)
lz4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))
whole = bytes(size)
samples = [(whole, {"i": 0}), (b"small", {"i": 1})]
"""
    )
    # In a process of its own: memory that a write has freed may serve the next one.
    support.run(begin + 'support.write(runtime, data, samples, "whole", lz4)', base)
    code = (
        begin
        + """
config = ReaderConfig(seed=0, shuffle=False, use_mmap=sys.argv[2] == "True")
dataset = runtime.cached_dataset([f"{data}/whole"], reader_config=config)
dataset.get_item(0, 1)
support.write(runtime, data, [(b"x", {})], "before", lz4)
limit(100 << 20)
sources = [support.Source("large", samples), support.Source("after", [(b"x", {})])]
large, after = runtime.write_cache(sources, data, writer_config=lz4)
print(type(large.cause).__name__, "memory" in str(large.cause), after.status)
for read in (lambda: dataset.get_item(0, 0), lambda: next(iter(dataset)), lambda: dataset.rows[:1]):
    try:
        read()
    except MemoryError as error:
        print("MemoryError")
print(dataset.get_item(0, 1).data)
"""
    )
    expected = "StorageError True written\nMemoryError\nMemoryError\nMemoryError\nb'small'\n"
    assert support.run(code, base, mapped).stdout == expected
    assert support.listing(base) == ["after", "before", "whole"]


@pytest.mark.rule("Shards end at max_shard_bytes")
@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_payloads_longer_than_a_shard(
    make_cache: CacheFactory, make_dataset: DatasetFactory, algo: str
) -> None:
    sizes = [10, 100_000, 20, 0, 300_000, 300_000, 30]
    contents = [support.payload(i, size) for i, size in enumerate(sizes)]
    samples = [CacheInput(data, {"i": i}) for i, data in enumerate(contents)]
    cache = make_cache(samples, "s", config(algo, max_shard_bytes=1000))
    shards = support.read_manifest(cache)["shards"]
    assert [shard["samples"] for shard in shards] == [1, 1, 2, 1, 1, 1]
    assert [file.stat().st_size for file in support.shards(cache)] == [s["size"] for s in shards]
    dataset = make_dataset(cache, shuffle=False, validate_cache=True)
    assert [sample.data for sample in dataset] == contents


def long_content(size: int, kind: str) -> bytes:
    """Zeros, or bytes that LZ4 can't shorten, with an end of their own."""
    end = size.to_bytes(8, "little")
    if kind == "zeros":
        return bytes(size - 8) + end
    noise = random.Random(size).randbytes(8 << 20)
    return (noise * (size // len(noise) + 1))[: size - 8] + end


LIMIT_OF_LZ4 = 0x7E000000


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """A base folder that is removed at once: each of these caches takes gigabytes."""
    yield tmp_path / "base"
    shutil.rmtree(tmp_path / "base", ignore_errors=True)


@LONG
@pytest.mark.timeout(1800)
@pytest.mark.rule("Payloads have at most 2^32 - 1 bytes", "Each record is compressed by itself")
@pytest.mark.parametrize("kind", ["zeros", "noise"])
@pytest.mark.parametrize("algo", ["none", "lz4"])
@pytest.mark.parametrize(
    "size",
    [
        LIMIT_OF_LZ4 - 1,
        LIMIT_OF_LZ4,
        LIMIT_OF_LZ4 + 1,
        2**31 - 1,
        2**31,
        2**31 + 1,
        MOST,
    ],
    ids=hex,
)
def test_payloads_around_2_gib(
    runtime: DatasetRuntime, room: Path, size: int, algo: str, kind: str
) -> None:
    data = long_content(size, kind)
    samples = [
        CacheInput(b"before", {"i": 0}),
        CacheInput(data, {"i": 1}),
        CacheInput(b"", {"i": 2}),
    ]
    cache = support.write(runtime, room, samples, config=config(algo))
    manifest = support.read_manifest(cache)
    assert manifest["payload_bytes"] == size + 6
    shortened = algo == "lz4" and kind == "zeros" and size <= LIMIT_OF_LZ4
    assert (manifest["stored_bytes"] < size // 100) == shortened
    if not shortened:
        assert manifest["stored_bytes"] == size + 6
    for mapped in (True, False):
        reader = ReaderConfig(
            seed=0, shuffle=False, use_mmap=mapped, validate_cache=mapped and size != MOST
        )
        dataset = runtime.cached_dataset([cache], reader_config=reader)
        iterator = iter(dataset)
        assert next(iterator).data == b"before"
        assert next(iterator).data == data
        assert next(iterator).data == b""
        assert dataset.get_item(0, 2).metadata == {"i": 2}


@LONG
@pytest.mark.timeout(1800)
@pytest.mark.rule("Shards end at max_shard_bytes", "Each record is compressed by itself")
def test_a_shard_of_8_gib(runtime: DatasetRuntime, room: Path) -> None:
    size, count = 64 << 20, 136

    def content(number: int) -> bytes:
        return random.Random(number).randbytes(size)

    def samples() -> Iterator[CacheInput]:
        for i in range(count):
            yield CacheInput(content(i), {"i": i})

    cache = support.write(runtime, room, samples(), config=config("none", max_shard_bytes=8 * GIB))
    manifest = support.read_manifest(cache)
    assert manifest["payload_bytes"] == count * size > 2**33
    assert [shard["samples"] for shard in manifest["shards"]] == [127, 9]
    for mapped in (True, False):
        reader = ReaderConfig(
            seed=0, shuffle=False, use_mmap=mapped, validate_cache=mapped, prefetch_size=2
        )
        dataset = runtime.cached_dataset([cache], reader_config=reader)
        for number, sample in enumerate(dataset):
            assert sample.data == content(number)
            assert sample.metadata == {"i": number}
        # On both sides of 2^31 and 2^32, each by itself.
        for number in (31, 32, 33, 62, 63, 64, 65, 126, 127, 135):
            assert dataset.get_item(0, number).data == content(number)
