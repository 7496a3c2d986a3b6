"""Files that are damaged, replaced, deleted, linked, or no files at all."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CacheInput, DatasetRuntime, ShardCompression, WriterConfig
from dataset_rt.errors import (
    CacheDamagedError,
    CacheFeatureError,
    CacheNotFoundError,
    CacheVersionError,
    DatasetRTError,
    StorageError,
)

from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataset_rt import CachedDataset

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core

LZ4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))
FILES = ["manifest.json", "metadata.arrow", "index.bin", "shards/000000.bin"]


def small() -> list[CacheInput]:
    return [
        CacheInput(support.payload(i, 30) + b"0" * 40, {"i": i, "t": f"text {i}"}) for i in range(5)
    ]


def content(dataset: CachedDataset) -> list[Any]:
    """All that a user can see of a dataset."""
    table = dataset.get_metadata().rows()
    return [table, [(sample.data, sample.metadata) for sample in dataset]]


@pytest.mark.rule("validate_cache finds every changed byte")
@pytest.mark.parametrize("config", [support.QUIET, LZ4], ids=["none", "lz4"])
@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_found(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str, config: WriterConfig
) -> None:
    file = make_cache(small(), "s", config) / name
    unnoticed = []
    for offset in range(file.stat().st_size):
        support.flip(file, offset)
        try:
            make_dataset(file.parents[name.count("/")], validate_cache=True)
        except CacheDamagedError as error:
            assert error.path == file
            assert file.name in str(error)
            assert error.code
        else:
            unnoticed.append(offset)
        support.flip(file, offset)
    assert unnoticed == []
    make_dataset(file.parents[name.count("/")], validate_cache=True)


@pytest.mark.rule("Damaged tables never pass", "Payloads are checked when they are read")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mapped", [True, False])
def test_damage_never_passes_unseen(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str, mapped: bool
) -> None:
    cache = make_cache(small(), "s", LZ4)
    right = content(make_dataset(cache, shuffle=False))
    file = cache / name
    for offset in range(file.stat().st_size):
        support.flip(file, offset)
        try:
            seen = content(make_dataset(cache, shuffle=False, use_mmap=mapped))
        except DatasetRTError as error:
            assert isinstance(error, CacheDamagedError)
            assert error.path == file
        else:
            assert seen == right, offset
            # Nothing that is read is left unchecked in the two files that are read whole.
            assert name != "manifest.json", offset
        support.flip(file, offset)


@pytest.mark.rule("Damaged tables never pass")
@pytest.mark.parametrize("mapped", [True, False])
def test_swapped_rows_of_the_index(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mapped: bool
) -> None:
    cache = make_cache(small())
    file = cache / "index.bin"
    index = file.read_bytes()
    # The first record begins behind the shard's header.
    start = index.index(struct.pack("<QI", 64, 70))
    first, second = index[start : start + 16], index[start + 16 : start + 32]
    assert first != second
    file.write_bytes(index[:start] + second + first + index[start + 32 :])
    with pytest.raises(CacheDamagedError) as caught:
        list(make_dataset(cache, use_mmap=mapped))
    assert caught.value.code == "index_damaged"
    assert caught.value.path == file


@pytest.mark.rule("Opening hashes no payloads")
def test_opening_reads_no_payloads(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(support.plain(100))
    support.flip(cache / "shards" / "000000.bin", 80)
    dataset = make_dataset(cache)
    assert len(dataset) == 100
    dataset.get_metadata()
    with pytest.raises(CacheDamagedError):
        make_dataset(cache, validate_cache=True)


@pytest.mark.rule("Opening hashes no payloads", "Damaged tables never pass")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [0, 1, -1, 1 << 20])
def test_files_of_another_size(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str, size: int
) -> None:
    cache = make_cache(small())
    file = cache / name
    before = file.stat().st_size
    os.truncate(file, size if size >= 0 else before + size)
    with pytest.raises(CacheDamagedError) as caught:
        list(make_dataset(cache))
    assert caught.value.path == file
    assert caught.value.code in {"file_size", "manifest_damaged"}


@pytest.mark.rule("Damaged tables never pass", "One bad path fails the call")
@pytest.mark.parametrize("name", FILES)
def test_missing_files(make_cache: CacheFactory, make_dataset: DatasetFactory, name: str) -> None:
    cache = make_cache(small())
    (cache / name).unlink()
    with pytest.raises(CacheDamagedError) as caught:
        list(make_dataset(cache))
    assert caught.value.code == "file_missing"
    assert caught.value.path == cache / name


@pytest.mark.rule("A cache that is too new says so")
def test_newer_caches(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(small())
    support.write_manifest(cache, lambda manifest: manifest.update(version=2))
    with pytest.raises(CacheVersionError) as version:
        make_dataset(cache)
    assert version.value.path is not None
    assert "2" in str(version.value)
    assert (version.value.found, version.value.supported) == (2, 1)
    support.write_manifest(
        cache, lambda manifest: manifest.update(version=1, required=["from the future"])
    )
    with pytest.raises(CacheFeatureError) as feature:
        make_dataset(cache)
    assert "from the future" in str(feature.value)
    assert feature.value.features == ["from the future"]
    support.write_manifest(
        cache, lambda manifest: manifest.update(required=[], optional=["new"], more={"a": [1]})
    )
    assert len(make_dataset(cache, validate_cache=True)) == 5


@pytest.mark.rule("Links out of a cache are not followed")
@pytest.mark.parametrize(
    "name",
    [
        "../000000",
        "../../outside",
        "/etc/passwd",
        "a/../../b",
        "C:\\x",
        "00000",
        "000000\0",
        "00000A",
    ],
    ids=ascii,
)
def test_names_that_lead_out(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str
) -> None:
    cache = make_cache(small())
    shutil.copy(cache / "shards" / "000000.bin", cache.parent / "outside.bin")
    shutil.copy(cache / "shards" / "000000.bin", cache / "000000.bin")

    def rename(manifest: dict[str, Any]) -> None:
        manifest["shards"][0]["name"] = name

    support.write_manifest(cache, rename)
    with pytest.raises(CacheDamagedError) as caught:
        make_dataset(cache)
    assert caught.value.code == "name_invalid"
    assert caught.value.path == cache / "manifest.json"


@pytest.mark.rule("Links out of a cache are not followed")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mapped", [True, False])
def test_linked_files(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str, mapped: bool
) -> None:
    cache = make_cache(small())
    right = content(make_dataset(cache, shuffle=False))
    (cache / name).rename(cache.parent / "elsewhere")
    (cache / name).symlink_to(cache.parent / "elsewhere")
    for validate in (False, True):
        with pytest.raises((CacheDamagedError, CacheNotFoundError)) as caught:
            list(make_dataset(cache, validate_cache=validate, use_mmap=mapped))
        assert name in str(caught.value)
    followed = make_dataset(
        cache, shuffle=False, follow_links=True, validate_cache=True, use_mmap=mapped
    )
    assert content(followed) == right


@pytest.mark.rule("Links out of a cache are not followed")
def test_a_linked_shard_folder(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(small())
    (cache / "shards").rename(cache.parent / "elsewhere")
    (cache / "shards").symlink_to(cache.parent / "elsewhere")
    with pytest.raises(CacheDamagedError):
        list(make_dataset(cache))
    assert len(list(make_dataset(cache, follow_links=True))) == 5


@pytest.mark.rule("Links out of a cache are not followed")
def test_a_linked_cache(
    make_cache: CacheFactory, make_dataset: DatasetFactory, tmp_path: Path
) -> None:
    cache = make_cache(small())
    (tmp_path / "link").symlink_to(cache)
    dataset = make_dataset(tmp_path / "link", shuffle=False)
    assert dataset.cache_paths == [tmp_path / "link"]
    assert content(dataset) == content(make_dataset(cache, shuffle=False))


def place_fifo(path: Path) -> None:
    os.mkfifo(path)


def place_folder(path: Path) -> None:
    path.mkdir()


def place_socket(path: Path) -> None:
    # The name of a socket is short, so it is made in a folder near by.
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            bound.bind(path.name)
        finally:
            os.chdir(here)


def place_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.rule("Special files never block")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [place_fifo, place_folder, place_socket, place_device])
def test_special_files(
    make_cache: CacheFactory,
    make_dataset: DatasetFactory,
    name: str,
    place: Callable[[Path], None],
) -> None:
    cache = make_cache(small())
    (cache / name).unlink()
    place(cache / name)
    for options in ({}, {"validate_cache": True}, {"follow_links": True, "use_mmap": False}):
        with pytest.raises((CacheDamagedError, CacheNotFoundError, StorageError)):
            list(make_dataset(cache, **options))


@pytest.mark.rule("Old files or an error")
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("begun", [True, False])
def test_files_deleted_under_a_dataset(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mapped: bool, begun: bool
) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=2000)
    cache = make_cache(support.numbered(500), config=config)
    dataset = make_dataset(cache, shuffle=False, use_mmap=mapped)
    if begun:
        list(dataset)
    shutil.rmtree(cache)
    iterator = iter(dataset)
    errors = 0
    for i in range(500):
        try:
            sample = next(iterator)
        except (CacheDamagedError, CacheNotFoundError, StorageError):
            errors += 1
        else:
            assert (sample.data, sample.sample_id) == (support.payload(i), i)
    assert errors <= 500
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.rule("Old files or an error")
@pytest.mark.parametrize("mapped", [True, False])
def test_files_replaced_under_a_dataset(
    runtime: DatasetRuntime,
    make_cache: CacheFactory,
    make_dataset: DatasetFactory,
    tmp_path: Path,
    mapped: bool,
) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=2000)
    cache = make_cache(support.numbered(500), config=config)
    other = support.write(
        runtime, tmp_path / "other", support.numbered(500, start=1000), config=config
    )
    dataset = make_dataset(cache, shuffle=False, use_mmap=mapped)
    next(iter(dataset))
    dataset.update_metadata(dataset.get_metadata())
    # Each file has the size of the one it replaces.
    for mine, theirs in zip(support.shards(cache), support.shards(other), strict=True):
        assert mine.stat().st_size == theirs.stat().st_size
        theirs.replace(mine)
    iterator = iter(dataset)
    # How many are old depends on what workers had opened when the files were replaced.
    for i in range(500):
        try:
            sample = next(iterator)
        except (CacheDamagedError, StorageError):
            continue
        assert (sample.data, sample.sample_id) == (support.payload(i), i)
    fresh = make_dataset(cache, use_mmap=mapped)
    with pytest.raises(CacheDamagedError) as caught:
        next(iter(fresh))
    assert caught.value.code == "shard_mismatch"


@pytest.mark.rule("Old files or an error")
def test_swapped_shards(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=2000)
    cache = make_cache(support.plain(300, 16), config=config)
    first, second, *_ = support.shards(cache)
    assert first.stat().st_size == second.stat().st_size
    first.rename(cache / "aside")
    second.rename(first)
    (cache / "aside").rename(second)
    dataset = make_dataset(cache, shuffle=False)
    iterator = iter(dataset)
    with pytest.raises(CacheDamagedError) as caught:
        next(iterator)
    assert caught.value.code == "shard_mismatch"


@pytest.mark.rule("A cache written again is a new cache")
@pytest.mark.parametrize("mapped", [True, False])
def test_a_cache_written_again(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mapped: bool
) -> None:
    cache = make_cache(support.numbered(50))
    old = make_dataset(cache, shuffle=False, use_mmap=mapped)
    assert len(list(old)) == 50
    shutil.rmtree(cache)
    make_cache(support.numbered(50, start=100))
    new = make_dataset(cache, shuffle=False, use_mmap=mapped)
    for sample in new:
        assert sample.data == support.payload(100 + sample.sample_id)
        assert sample.metadata == support.metadata(100 + sample.sample_id)
    for i in range(50):
        try:
            assert old.get_item(0, i).data == support.payload(i)
        except (CacheDamagedError, StorageError):
            continue


TRUNCATION = """
import faulthandler, json, os, sys
from dataset_rt import DatasetRuntime, ReaderConfig
from dataset_rt.errors import DatasetRTError
from tests import support
cache, name, when, mapped = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "True"
if when == "before":
    faulthandler.enable()
runtime = DatasetRuntime(num_workers=2)
dataset = runtime.cached_dataset(
    [cache], reader_config=ReaderConfig(seed=0, shuffle=False, use_mmap=mapped))
assert next(iter(dataset)).data == support.payload(0, 1000)
if when == "after":
    faulthandler.enable()
dataset.update_metadata(dataset.get_metadata())
os.truncate(os.path.join(cache, name), 5000)
outcomes = {"right": 0, "error": 0}
iterator = iter(dataset)
for i in range(len(dataset)):
    try:
        sample = next(iterator)
        assert sample.data == support.payload(i, 1000)
        assert sample.metadata == support.metadata(i)
        outcomes["right"] += 1
    except DatasetRTError as error:
        assert name in str(error), error
        outcomes["error"] += 1
for read in (dataset.get_metadata, lambda: dataset.get_item(0, 2999), lambda: dataset.rows[2000:]):
    try:
        read()
    except DatasetRTError:
        pass
print(json.dumps(outcomes))
"""


@pytest.mark.rule("A truncated file is an error")
@pytest.mark.parametrize(
    ("name", "when", "mapped"),
    [
        *((name, "never", mapped) for name in FILES[1:] for mapped in (True, False)),
        # Who else handles the signal matters for maps of payloads alone.
        (FILES[3], "before", True),
        (FILES[3], "after", True),
    ],
)
def test_files_truncated_under_a_dataset(
    make_cache: CacheFactory, name: str, when: str, mapped: bool
) -> None:
    cache = make_cache(support.numbered(3000, 1000))
    done = support.run(TRUNCATION, cache, name, when, mapped)
    outcomes = json.loads(done.stdout)
    assert outcomes["right"] + outcomes["error"] == 3000
    if name == FILES[3]:
        assert outcomes["error"] > 2900


@pytest.mark.rule("A truncated file is an error")
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", FILES[1:])
def test_files_truncated_within_a_page(
    make_cache: CacheFactory, make_dataset: DatasetFactory, name: str, mapped: bool
) -> None:
    # No signal tells of it: the rest of a page after the end of a file reads as zeros.
    samples = [*small(), CacheInput(b"", {"i": 7, "t": ""})]
    cache = make_cache(samples)
    file = cache / name
    whole = file.read_bytes()
    assert len(whole) < 4096
    for size in (0, 1, len(whole) // 2, len(whole) - 65, len(whole) - 1):
        dataset = make_dataset(cache, shuffle=False, use_mmap=mapped)
        right = content(dataset)
        os.truncate(file, size)
        try:
            seen = content(dataset)
        except DatasetRTError as error:
            assert file.name in str(error)
        else:
            assert seen == right, size
        file.write_bytes(whole)


@pytest.mark.rule("Maps can be turned off")
def test_without_maps(make_cache: CacheFactory) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=4000)
    cache = make_cache(support.numbered(300), config=config)
    code = """
    import sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    config = ReaderConfig(seed=0, shuffle=False, use_mmap=sys.argv[2] == "True")
    dataset = DatasetRuntime(num_workers=1).cached_dataset([sys.argv[1]], reader_config=config)
    for sample in dataset:
        assert sample.data == support.payload(sample.sample_id)
        assert sample.metadata == support.metadata(sample.sample_id)
    assert dataset.get_metadata().height == 300
    with open("/proc/self/maps") as maps:
        print(sum(sys.argv[1] in line for line in maps))
    """
    if not Path("/proc/self/maps").exists():
        pytest.skip("needs the list of maps")
    assert support.run(code, cache, False).stdout == "0\n"
    assert int(support.run(code, cache, True).stdout) > 0


@pytest.mark.rule("Reads go on where maps fail")
def test_maps_that_fail(make_cache: CacheFactory) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=1 << 30)
    zeros = bytes(1 << 20)
    cache = make_cache([CacheInput(zeros, {"i": i}) for i in range(300)], config=config)
    code = """
    import resource, sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    # Room for threads and objects, not for the map of the shard.
    resource.setrlimit(resource.RLIMIT_AS, (used + (250 << 20), resource.RLIM_INFINITY))
    config = ReaderConfig(seed=0, shuffle=False, prefetch_size=2)
    dataset = DatasetRuntime(num_workers=1).cached_dataset([sys.argv[1]], reader_config=config)
    zeros = bytes(1 << 20)
    assert all(sample.data == zeros for sample in dataset)
    with open("/proc/self/maps") as maps:
        print(any("shards" in line for line in maps))
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs the size of the process")
    assert support.run(code, cache).stdout == "False\n"


@pytest.mark.rule("Interrupted system calls are repeated")
@pytest.mark.parametrize("mapped", [True, False])
def test_many_signals(base: Path, mapped: bool) -> None:
    code = """
    import signal, sys
    from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
    from tests import support
    count = 0
    def handler(*_):
        global count
        count += 1
    signal.signal(signal.SIGALRM, handler)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
    runtime = DatasetRuntime(num_workers=2)
    config = WriterConfig(show_progress=False, max_shard_bytes=100_000)
    cache = support.write(runtime, sys.argv[1], support.numbered(2000, 1000), config=config)
    config = ReaderConfig(seed=0, validate_cache=True, use_mmap=sys.argv[2] == "True")
    for sample in runtime.cached_dataset([cache], reader_config=config):
        assert sample.data == support.payload(sample.sample_id, 1000)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(count > 10)
    """
    assert support.run(code, base, mapped).stdout == "True\n"


@pytest.mark.rule("Open files are bounded")
@pytest.mark.parametrize("mapped", [True, False])
def test_many_shards_with_few_descriptors(make_cache: CacheFactory, mapped: bool) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=1)
    cache = make_cache(support.plain(1200), config=config)
    assert len(support.shards(cache)) == 1200
    code = """
    import os, resource, sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    runtime = DatasetRuntime(num_workers=2)
    for shuffle in (False, True):
        config = ReaderConfig(seed=0, shuffle=shuffle, use_mmap=sys.argv[2] == "True")
        dataset = runtime.cached_dataset([sys.argv[1]], reader_config=config)
        iterators = [iter(dataset) for _ in range(3)]
        for sample in iterators[0]:
            assert sample.data == support.payload(sample.sample_id, 8)
        for iterator in iterators[1:]:
            next(iterator)
    runtime.cached_dataset([sys.argv[1]], reader_config=ReaderConfig(seed=0, validate_cache=True))
    print(len(os.listdir("/proc/self/fd")))
    """
    assert int(support.run(code, cache, mapped).stdout) < 200


@pytest.mark.rule("Many readers share a cache")
def test_a_read_only_cache(make_cache: CacheFactory, base: Path) -> None:
    cache = make_cache(support.numbered(200))
    for path in [*cache.rglob("*"), cache, base]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    code = """
    import sys
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    config = ReaderConfig(seed=0, validate_cache=True)
    runtimes = [DatasetRuntime(num_workers=1) for _ in range(3)]
    datasets = [r.cached_dataset([sys.argv[1]], reader_config=config) for r in runtimes]
    for samples in zip(*datasets):
        assert len({sample.sample_id for sample in samples}) == 1
        assert samples[0].data == support.payload(samples[0].sample_id)
    """
    before = support.tree(base)
    try:
        support.run(code, cache)
    finally:
        for path in [base, cache, *cache.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert support.tree(base) == before
