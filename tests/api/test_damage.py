"""Damage of every kind: right data or a typed error; verify and repair say what is left."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pickle
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataset_rt
import pytest
from dataset_rt import (
    CacheInput,
    CacheProblem,
    DatasetRuntime,
    ReaderConfig,
    RepairReport,
    ShardCompression,
    VerifyReport,
    WriterConfig,
)
from dataset_rt.errors import (
    ArgumentTypeError,
    CacheDamagedError,
    CacheExistsError,
    CacheFeatureError,
    CacheNotFoundError,
    CacheVersionError,
    DatasetRTError,
    InvalidArgumentError,
)

from tests import support

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from tests.conftest import CacheFactory, DatasetFactory

LONG = bool(os.environ.get("DATASET_RT_LONG"))
LZ4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))
SHARDS = WriterConfig(show_progress=False, max_shard_bytes=400)
FILES = ["manifest.json", "metadata.arrow", "index.bin", "shards/000000.bin"]


def small() -> list[CacheInput]:
    return [
        CacheInput(support.payload(i, 30) + b"0" * 40, {"i": i, "t": f"text {i}"}) for i in range(5)
    ]


def look(
    runtime: DatasetRuntime, cache: Path, right: list[Any], file: Path, *, mapped: bool
) -> bool:
    """Reads all that a cache has; whether anything was an error, which must be about `file`."""
    config = ReaderConfig(seed=0, shuffle=False, use_mmap=mapped)
    failed = False

    def expected(error: DatasetRTError) -> None:
        nonlocal failed
        failed = True
        assert isinstance(error, CacheDamagedError), error
        assert error.path == file
        assert error.code
        assert file.name in str(error)
        if error.code == "record_damaged":
            assert error.sample_id is not None
            assert error.offset is not None

    try:
        dataset = runtime.cached_dataset([cache], reader_config=config)
    except DatasetRTError as error:
        expected(error)
        return True
    for i, (data, metadata) in enumerate(right):
        try:
            sample = dataset.get_item(0, i)
            assert sample.data == data
            assert sample.metadata == metadata
        except DatasetRTError as error:
            expected(error)
    try:
        assert dataset.get_metadata().select("i", "t").rows(named=True) == [m for _, m in right]
    except DatasetRTError as error:
        expected(error)
    return failed


@pytest.mark.rule("Damaged tables never pass", "validate_cache finds every changed byte")
@pytest.mark.parametrize("config", [support.QUIET, LZ4], ids=["none", "lz4"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.timeout(1200 if LONG else 60)
def test_bytes_that_become_anything(
    runtime: DatasetRuntime, make_cache: CacheFactory, name: str, config: WriterConfig
) -> None:
    """Not one bit alone: bytes become zero, all ones, or their neighbour in value."""
    cache = make_cache(small(), "s", config)
    right = [(sample.data, dict(sample.metadata)) for sample in small()]
    file = cache / name
    good = file.read_bytes()
    validating = ReaderConfig(seed=0, validate_cache=True)
    step = 1 if LONG else 5
    for offset in range(0, len(good), step):
        for value in {0, 255, (good[offset] + 1) % 256} - {good[offset]}:
            with file.open("r+b") as opened:
                opened.seek(offset)
                opened.write(bytes([value]))
            look(runtime, cache, right, file, mapped=offset % 2 == 0)
            with pytest.raises(CacheDamagedError) as caught:
                runtime.cached_dataset([cache], reader_config=validating)
            assert caught.value.path == file, offset
        file.write_bytes(good)
    assert not look(runtime, cache, right, file, mapped=True)


@pytest.mark.rule("Damaged tables never pass", "Opening hashes no payloads")
@pytest.mark.parametrize("config", [support.QUIET, LZ4], ids=["none", "lz4"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.timeout(600 if LONG else 60)
def test_every_length(
    runtime: DatasetRuntime, make_cache: CacheFactory, name: str, config: WriterConfig
) -> None:
    cache = make_cache(small(), "s", config)
    right = [(sample.data, dict(sample.metadata)) for sample in small()]
    file = cache / name
    good = file.read_bytes()
    step = 1 if LONG else 7
    lengths = [*range(0, len(good), step), len(good) - 1, len(good) + 1, len(good) + 4096]
    for length in lengths:
        file.write_bytes(good[:length] + bytes(max(0, length - len(good))))
        assert look(runtime, cache, right, file, mapped=length % 2 == 0), length
        for validate in (False, True):
            with pytest.raises(CacheDamagedError) as caught:
                runtime.cached_dataset(
                    [cache], reader_config=ReaderConfig(seed=0, validate_cache=validate)
                )
            assert caught.value.path == file
        report = dataset_rt.verify(cache)
        assert file in [problem.path for problem in report.problems]
        assert report.samples_readable == 0


class Watch:
    """What happens to some files, as the kernel tells it."""

    def __init__(self, paths: list[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            pytest.skip("needs inotify")
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            pytest.skip("needs inotify")
        every = 0xFFF
        for path in paths:
            assert libc.inotify_add_watch(self.fd, os.fsencode(path), every) >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def events(self) -> int:
        """The number of things that happened since the last call."""
        count = 0
        try:
            content = os.read(self.fd, 65536)
        except BlockingIOError:
            return 0
        while content:
            [length] = struct.unpack_from("I", content, 12)
            content = content[16 + length :]
            count += 1
        return count


@pytest.mark.rule("Links out of a cache are not followed")
@pytest.mark.parametrize(
    "name",
    [
        "../../outside",
        "../../../base/outside",
        "./../../outside",
        "000000/../../../outside",
        "{base}/outside",
        "C:\\outside",
        "..\\..\\outside",
        "..",
        "",
        "000000.bin/../000000",
        "shards/000000",
        "%2e%2e/outside",
    ],
    ids=ascii,
)
def test_what_lies_outside_is_never_opened(
    runtime: DatasetRuntime, make_cache: CacheFactory, base: Path, name: str
) -> None:
    cache = make_cache(small())
    outside = base / "outside.bin"
    shutil.copy(cache / "shards" / "000000.bin", outside)
    name = name.replace("{base}", str(base))
    support.write_manifest(cache, lambda manifest: manifest["shards"][0].update(name=name))
    before = support.tree(base)
    with Watch([outside]) as watch:
        for options in ({}, {"validate_cache": True}, {"follow_links": True}):
            with pytest.raises(CacheDamagedError) as caught:
                runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, **options))
            assert caught.value.code == "name_invalid"
            assert ascii(name)[1:-1].replace("'", '"') in str(caught.value) or not name.isascii()
        report = dataset_rt.verify(cache)
        assert report.problems[0].code == "name_invalid"
        repaired = dataset_rt.repair(cache, base / "repaired")
        # A manifest of a wrong name is no manifest; the shard in the folder is the cache's own.
        assert repaired.ok
        assert watch.events() == 0
        outside.read_bytes()
        assert watch.events() > 0
    shutil.rmtree(base / "repaired")
    assert support.tree(base) == before


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def long_loop(path: Path) -> None:
    path.symlink_to("loop-b")
    (path.parent / "loop-b").symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nothing-here")


def up(path: Path) -> None:
    path.symlink_to("..")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/full")


@pytest.mark.rule("Special files never block", "Links out of a cache are not followed")
@pytest.mark.parametrize("name", [*FILES, "shards"])
@pytest.mark.parametrize("place", [loop, long_loop, dangling, up, terminal, os.mkfifo])
def test_links_that_lead_nowhere(
    runtime: DatasetRuntime, make_cache: CacheFactory, name: str, place: Any
) -> None:
    cache = make_cache(small())
    path = cache / name
    shutil.move(path, cache.parent / "aside")
    place(path)
    for options in ({}, {"validate_cache": True}, {"follow_links": True, "use_mmap": False}):
        with pytest.raises((DatasetRTError, OSError)) as caught:
            list(runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, **options)))
        assert isinstance(caught.value, (CacheDamagedError, CacheNotFoundError, OSError))
        assert Path(name).name in str(caught.value)
    assert not dataset_rt.verify(cache).ok
    repaired = dataset_rt.repair(cache, cache.parent / "new")
    assert repaired.ok == (name in {"manifest.json", "index.bin"})


@pytest.mark.rule("Links out of a cache are not followed")
def test_a_loop_in_place_of_a_cache(runtime: DatasetRuntime, tmp_path: Path) -> None:
    loop(tmp_path / "cache")
    with pytest.raises((DatasetRTError, OSError)):
        runtime.cached_dataset([tmp_path / "cache"], reader_config=ReaderConfig(seed=0))
    with pytest.raises((DatasetRTError, OSError)):
        dataset_rt.verify(tmp_path / "cache")


def claims(file: str, content: bytearray) -> Iterator[tuple[str, bytearray]]:
    """Files whose lengths and counts claim more than there is; checksums are left wrong."""
    huge = (2**40 - 64).to_bytes(8, "little")
    for offset in range(0, min(len(content), 4096) - 8, 8):
        claimed = bytearray(content)
        claimed[offset : offset + 8] = huge
        yield f"{file}:{offset}", claimed
    if len(content) > 4096:
        return
    for offset in range(max(0, len(content) - 512), len(content) - 8):
        claimed = bytearray(content)
        claimed[offset : offset + 8] = huge
        yield f"{file}:{offset}", claimed


CLAIMS = """
import resource, sys
from pathlib import Path
from dataset_rt import DatasetRuntime, ReaderConfig, repair, verify
from dataset_rt.errors import CacheDamagedError, DatasetRTError
from tests.api.test_damage import FILES, claims
cache = Path(sys.argv[1])
runtime = DatasetRuntime(num_workers=1)
configs = [ReaderConfig(seed=0, use_mmap=mapped) for mapped in (True, False)]
def attempt():
    for config in configs:
        try:
            dataset = runtime.cached_dataset([cache], reader_config=config)
            dataset.get_metadata()
            list(dataset)
        except CacheDamagedError:
            pass
    verify(cache)
attempt()
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
# Threads that come later have arenas of 64 MiB each; what is claimed is a terabyte.
resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), resource.RLIM_INFINITY))
count = 0
for name in FILES:
    file = cache / name
    good = file.read_bytes()
    for what, claimed in claims(name, bytearray(good)):
        file.write_bytes(claimed)
        attempt()
        count += 1
    file.write_bytes(good)
print(count)
"""


@pytest.mark.rule("Claimed lengths don't decide memory")
def test_claims_under_a_limit_of_memory(make_cache: CacheFactory) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs the size of the process")
    cache = make_cache(small(), "s", LZ4)
    assert int(support.run(CLAIMS, cache, timeout=60).stdout) > 500


@pytest.mark.rule("verify lists all that is wrong")
@pytest.mark.parametrize("config", [support.QUIET, LZ4, SHARDS], ids=["none", "lz4", "shards"])
def test_a_whole_cache_verifies(make_cache: CacheFactory, config: WriterConfig) -> None:
    cache = make_cache(small(), "s", config)
    report = dataset_rt.verify(cache)
    assert report == VerifyReport(
        path=cache,
        samples=5,
        samples_readable=5,
        problems=(),
        problems_omitted=0,
        repairable=True,
    )
    assert report.ok
    assert str(report) == f"{cache}: whole, 5 samples"
    assert dataset_rt.verify(str(cache)) == report


@pytest.mark.rule("verify lists all that is wrong")
def test_all_problems_are_listed(runtime: DatasetRuntime, make_cache: CacheFactory) -> None:
    cache = make_cache(support.numbered(100, 40), config=SHARDS)
    assert len(support.shards(cache)) > 10
    damaged = []
    for number in (3, 4, 50):
        for shard in support.shards(cache):
            at = shard.read_bytes().find(support.payload(number, 40))
            if at >= 0:
                support.flip(shard, at + 7)
                damaged.append((f"shards/{shard.name}", "record_damaged", at, (number,)))
    support.flip(support.shards(cache)[-1], 12)
    report = dataset_rt.verify(cache)
    found = [
        (problem.file, problem.code, problem.offset, tuple(i for r in problem.lost for i in r))
        for problem in report.problems
    ]
    assert found[:3] == damaged
    last = f"shards/{support.shards(cache)[-1].name}"
    assert [(file, code, lost) for file, code, _, lost in found[3:]] == [
        (last, "shard_damaged", ())
    ]
    assert (report.samples, report.samples_readable, report.ok) == (100, 97, False)
    assert not report.repairable
    text = str(report)
    assert "97 of 100 samples" in text
    assert "samples lost: 50" in text
    # The report says what a dataset gives.
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, shuffle=False))
    unreadable = []
    for i in range(100):
        try:
            assert dataset.get_item(0, i).data == support.payload(i, 40)
        except CacheDamagedError:
            unreadable.append(i)
    assert unreadable == [3, 4, 50]


@pytest.mark.rule("verify lists all that is wrong")
def test_reports_are_frozen_values(make_cache: CacheFactory) -> None:
    cache = make_cache(small())
    support.flip(cache / "shards" / "000000.bin", 80)
    report = dataset_rt.verify(cache)
    [problem] = report.problems
    assert isinstance(problem, CacheProblem)
    assert (problem.path, problem.file) == (cache / problem.file, "shards/000000.bin")
    assert (problem.lost, problem.samples_lost) == ((range(1),), 1)
    assert "000000.bin" in problem.message
    for value in (report, problem, dataset_rt.repair(cache, cache.parent / "new")):
        assert pickle.loads(pickle.dumps(value)) == value
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.path = cache  # type: ignore[misc]


@pytest.mark.rule("verify lists all that is wrong")
def test_what_is_no_damage_raises(make_cache: CacheFactory, tmp_path: Path) -> None:
    with pytest.raises(CacheNotFoundError):
        dataset_rt.verify(tmp_path)
    with pytest.raises(CacheNotFoundError):
        dataset_rt.verify(tmp_path / "none")
    with pytest.raises(ArgumentTypeError):
        dataset_rt.verify(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError):
        dataset_rt.verify(tmp_path, follow_links=1)  # type: ignore[arg-type]
    cache = make_cache(small())
    support.write_manifest(cache, lambda manifest: manifest.update(required=["new"]))
    for look_at in (dataset_rt.verify, lambda path: dataset_rt.repair(path, tmp_path / "new")):
        with pytest.raises(CacheFeatureError):
            look_at(cache)
    support.write_manifest(cache, lambda manifest: manifest.update(required=[], version=9))
    for look_at in (dataset_rt.verify, lambda path: dataset_rt.repair(path, tmp_path / "new")):
        with pytest.raises(CacheVersionError):
            look_at(cache)


@pytest.mark.rule("verify lists all that is wrong", "Links out of a cache are not followed")
def test_verify_follows_links_when_told(make_cache: CacheFactory) -> None:
    cache = make_cache(small())
    (cache / "index.bin").rename(cache.parent / "elsewhere")
    (cache / "index.bin").symlink_to(cache.parent / "elsewhere")
    assert [problem.file for problem in dataset_rt.verify(cache).problems] == ["index.bin"]
    assert dataset_rt.verify(cache, follow_links=True).ok


@pytest.mark.rule("repair makes index and manifest again")
@pytest.mark.parametrize("config", [support.QUIET, LZ4, SHARDS], ids=["none", "lz4", "shards"])
@pytest.mark.parametrize("gone", [["index.bin"], ["manifest.json"], ["index.bin", "manifest.json"]])
def test_repair(
    runtime: DatasetRuntime,
    make_dataset: DatasetFactory,
    base: Path,
    gone: list[str],
    config: WriterConfig,
) -> None:
    source = support.PrintedSource("origin", small(), "print-1")
    cache = support.succeed(runtime.write_cache(source, base, writer_config=config)).path
    good = support.tree(cache)
    dataset = make_dataset(cache, shuffle=False)
    right = [dataset.get_metadata().rows(), [(s.data, s.metadata) for s in dataset]]
    for name in gone:
        (cache / name).unlink()
    damaged = support.tree(cache)
    report = dataset_rt.verify(cache)
    assert report.repairable
    assert report.samples_readable == 0
    repaired = dataset_rt.repair(cache, base / "new")
    assert isinstance(repaired, RepairReport)
    assert repaired.ok
    assert (repaired.path, repaired.samples, repaired.problems) == (base / "new", 5, ())
    assert repaired.remade == tuple(gone)
    assert repaired.proven == (len(gone) == 1)
    assert support.tree(cache) == damaged
    assert support.listing(base) == ["new", "origin"]
    new = support.tree(base / "new")
    kept = set(good) - ({"manifest.json"} & set(gone))
    assert {name: new[name] for name in kept} == {name: good[name] for name in kept}
    assert dataset_rt.verify(base / "new").ok
    dataset = make_dataset(base / "new", shuffle=False, validate_cache=True)
    assert [dataset.get_metadata().rows(), [(s.data, s.metadata) for s in dataset]] == right
    manifest = support.read_manifest(base / "new")
    if "manifest.json" in gone:
        assert manifest["source"] == {"name": "origin", "fingerprint": None}
        assert any("fingerprint" in lost for lost in repaired.lost)
        assert any("date" in lost for lost in repaired.lost)
    else:
        assert manifest["source"]["fingerprint"] == "print-1"
        assert repaired.lost == ()


@pytest.mark.rule("repair refuses what is not whole")
def test_repair_refuses(make_cache: CacheFactory, base: Path) -> None:
    cache = make_cache(support.numbered(40), config=SHARDS)
    (cache / "manifest.json").unlink()
    files = [cache / "metadata.arrow", *support.shards(cache)[:2], support.shards(cache)[-1]]
    for file in files:
        good = file.read_bytes()
        for content in (None, b"", good[:-1], good[:-80] + bytes([good[-80] ^ 4]) + good[-79:]):
            if content is None:
                file.unlink()
            else:
                file.write_bytes(content)
            report = dataset_rt.repair(cache, base / "new")
            assert not report.ok
            assert report.samples is None
            assert report.problems
            assert "not repaired" in str(report)
            assert report.problems[0].message in str(report)
            assert not dataset_rt.verify(cache).repairable
        file.write_bytes(good)
    assert support.listing(base) == ["s"]
    assert dataset_rt.repair(cache, base / "new").ok


@pytest.mark.rule("repair refuses what is not whole")
def test_the_place_of_a_repair(make_cache: CacheFactory, base: Path) -> None:
    cache = make_cache(small())
    (base / "taken").mkdir()
    (base / "link").symlink_to("nothing")
    for taken in ("taken", "link", "s"):
        with pytest.raises(CacheExistsError) as exists:
            dataset_rt.repair(cache, base / taken)
        assert exists.value.path == base / taken
    for name in ("tmp", "s/new", "s/shards/new", "a:b", " a", "../base/s/x"):
        with pytest.raises(InvalidArgumentError) as caught:
            dataset_rt.repair(cache, base / name)
        assert caught.value.argument == "output"
    assert support.listing(base) == ["link", "s", "taken"]
    assert dataset_rt.verify(cache).ok
    # What is whole is copied.
    assert dataset_rt.repair(cache, base / "a" / "b").remade == ()
    assert support.tree(base / "a" / "b") == support.tree(cache)
