"""System calls that fail under writes, opens and reads, by a library that stands before libc."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import support

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parent.parent / "shim" / "faults.c"


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler (cc) for the library that makes system calls fail")
    library = tmp_path_factory.mktemp("shim") / "faults.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)  # noqa: S603 - the system's compiler on our own source
    return library


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A base folder in memory where there is one: hundreds of writes need not reach a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="faults-", dir=place) as folder:
        yield Path(folder) / "base"


START = """
import errno, itertools, os, sys
from pathlib import Path
from dataset_rt import (
    CacheWriteError, DatasetRuntime, ReaderConfig, ShardCompression, WriterConfig,
)
from dataset_rt.errors import CacheDamagedError, DatasetRTError, StorageError
from tests import faults, support
from tests.faults import Rule
root = Path(sys.argv[1])
runtime = DatasetRuntime(num_workers=2)
WRITER = WriterConfig(
    show_progress=False, max_shard_bytes=2000, shard_compression=ShardCompression(algo="lz4"))
PLAIN = WriterConfig(show_progress=False, max_shard_bytes=20_000)

def reader(**options):
    return ReaderConfig(seed=0, shuffle=False, **options)

def assert_whole(cache, count=60, size=50, **options):
    dataset = runtime.cached_dataset([cache], reader_config=reader(**options))
    assert len(dataset) == count
    for i, sample in enumerate(dataset):
        assert sample.data == support.payload(i, size)
        assert sample.metadata == support.metadata(i)
    return dataset

def source(name, count=60, size=50):
    return support.Source(name, support.numbered(count, size))
"""


def run(shim: Path, code: str, *arguments: object) -> str:
    """Runs a script in a process with the shim."""
    program = START + textwrap.dedent(code)
    changes = {"LD_PRELOAD": str(shim)}
    return support.run(program, *arguments, changes=changes).stdout


@pytest.mark.rule("A failed write is never a success", "A failure leaves nothing behind")
@pytest.mark.parametrize(
    "call",
    [
        "create",
        "write",
        "fsync",
        "mkdir",
        "renameat2",
        "open",
        "unlink",
        "unlinkat",
        "rmdir",
        "flock",
    ],
)
def test_each_call_of_a_write_fails_once(shim: Path, base: Path, call: str) -> None:
    code = """
    call = sys.argv[2]
    names = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "EACCES", "EROFS"]
    total = 0
    for name in names:
        number = getattr(errno, name)
        for k in itertools.count():
            base = root / f"{name}-{k}"
            rules = [Rule(call, number, base, first=k, count=1)]
            if call == "unlinkat":
                # Files are removed after a failure alone.
                rules.append(Rule("fsync", errno.EIO, base, suffix="manifest.json"))
            faults.arrange(*rules)
            results = runtime.write_cache([source("a"), source("b")], base, writer_config=WRITER)
            fired = faults.fired()
            faults.arrange()
            errors = [result for result in results if isinstance(result, CacheWriteError)]
            if call == "unlinkat":
                assert [error.cause.errno for error in errors] == [errno.EIO] * 2, errors
                fired, errors, results = fired - 2, [], []
            if not fired:
                assert not errors, errors
                break
            total += 1
            # Locks spare work alone, and what is removed was not wanted. Folders are opened for
            # cleaning up too.
            most = 0 if call in {"flock", "unlinkat", "rmdir"} else 1
            least = 0 if call == "open" else most
            assert least <= len(errors) <= most, (name, k, results)
            for error in errors:
                cause = error.cause
                assert isinstance(cause, StorageError), error
                assert cause.errno == number, error
                assert Path(cause.filename).is_relative_to(base), error
                assert error.message.startswith(cause.filename), error
                assert os.strerror(number) in error.message
                full = name in {"ENOSPC", "EDQUOT"}
                assert ("bytes needed" in error.message) == full or call == "open", error
                assert ("bytes free" in error.message) == full or call == "open", error
            kept = [result for result in results if result not in errors]
            for result in kept:
                assert_whole(result.path, validate_cache=True)
            if call in {"open", "unlinkat", "rmdir"}:
                [later] = runtime.write_cache(source("c"), base, writer_config=WRITER)
                kept.append(later)
            assert support.listing(base) == sorted(r.source_name for r in kept), (name, k)
    print(total)
    """
    assert int(run(shim, code, base, call)) >= 6


@pytest.mark.rule("Interrupted system calls are repeated")
def test_interrupted_and_partial_calls(shim: Path, base: Path) -> None:
    code = """
    calls = ["create", "open", "write", "fsync", "mkdir", "renameat2", "unlink", "rmdir", "flock"]
    for call, first in itertools.product(calls, (0, 1, 4, 9)):
        base = root / f"{call}-{first}"
        faults.arrange(Rule(call, errno.EINTR, base, first=first, count=4))
        [result] = runtime.write_cache(source("a"), base, writer_config=WRITER)
        assert faults.fired() == 4 or first > 0, (call, first)
        faults.arrange()
        assert support.listing(base) == ["a"]
        assert_whole(result.path, validate_cache=True)
    base = root / "failed"
    faults.arrange(
        Rule("fsync", errno.EIO, base, suffix="manifest.json"),
        Rule("unlinkat", errno.EINTR, base, count=9),
    )
    [result] = runtime.write_cache(source("a"), base, writer_config=WRITER)
    assert isinstance(result, CacheWriteError)
    assert faults.fired() == 10
    assert support.listing(base) == []
    base = root / "partial"
    faults.arrange(Rule("write", faults.SHORT, base))
    [result] = runtime.write_cache(source("a", 40, 3000), base, writer_config=PLAIN)
    assert faults.fired() > 40
    for mapped in (True, False):
        for number in (faults.SHORT, errno.EINTR):
            count = faults.ALWAYS if number == faults.SHORT else 20
            faults.arrange(
                Rule("open", errno.EINTR, base, count=7),
                Rule("pread", number, base, count=count),
                Rule("preadv2", errno.EINTR, base, first=1, count=3),
            )
            assert_whole(result.path, 40, 3000, use_mmap=mapped, validate_cache=True)
            assert faults.fired() > 10
    """
    run(shim, code, base)


@pytest.mark.rule("File systems may lack locks and renames that refuse")
def test_without_locks(shim: Path, base: Path) -> None:
    code = """
    for name in ("ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO"):
        base = root / name
        faults.arrange(Rule("flock", getattr(errno, name), base))
        [result] = runtime.write_cache(source("a"), base, writer_config=WRITER)
        assert support.listing(base) == ["a"]
        fresh = support.PrintedSource("a", support.numbered(60, 50), "new")
        rebuild = WRITER.model_copy(update={"on_mismatch": "rebuild"})
        runtime.from_cache_sources(
            fresh, base, reader_config=reader(), writer_config=rebuild)
        runtime.from_cache_sources(
            fresh, base, reader_config=reader(), writer_config=rebuild)
        assert fresh.started == 1
        assert support.listing(base) == ["a"]
        fired = faults.fired()
        assert fired > 2
        assert_whole(result.path, validate_cache=True)
        assert faults.fired() == fired, "a reader asked for a lock"
    """
    run(shim, code, base)


@pytest.mark.rule("File systems may lack locks and renames that refuse")
def test_without_the_kernels_rename(shim: Path, base: Path) -> None:
    code = """
    for name in ("ENOSYS", "EINVAL"):
        base = root / name
        faults.arrange(Rule("renameat2", getattr(errno, name), base))
        [result] = runtime.write_cache(source("a"), base, writer_config=WRITER)
        assert_whole(result.path, validate_cache=True)
        before = support.tree(result.path)
        [again] = runtime.write_cache(source("a"), base, writer_config=WRITER)
        assert "exists" in again.message or "stands" in again.message, again
        assert support.tree(result.path) == before
        fresh = support.PrintedSource("a", support.numbered(30, 50), "new")
        runtime.from_cache_sources(
            fresh, base, reader_config=reader(),
            writer_config=WRITER.model_copy(update={"on_mismatch": "rebuild"}))
        assert faults.fired() >= 2
        assert support.listing(base) == ["a"]
        assert_whole(base / "a", 30, validate_cache=True)
    """
    run(shim, code, base)


@pytest.mark.rule(
    "File systems may lack locks and renames that refuse", "Interrupted system calls are repeated"
)
def test_a_rename_that_is_busy_or_crosses_devices(shim: Path, base: Path) -> None:
    code = """
    faults.arrange(Rule("renameat2", errno.EBUSY, root / "once", count=3))
    [result] = runtime.write_cache(source("a"), root / "once", writer_config=WRITER)
    assert faults.fired() == 3
    assert_whole(result.path)
    for name in ("EBUSY", "EXDEV", "EPERM"):
        base = root / name
        faults.arrange(Rule("renameat2", getattr(errno, name), base))
        [error] = runtime.write_cache(source("a"), base, writer_config=WRITER)
        assert isinstance(error.cause, StorageError)
        assert error.cause.errno == getattr(errno, name)
        assert str(base / "a") in error.message
        assert support.listing(base) == []
    """
    run(shim, code, base)


@pytest.mark.rule("Reads go on where maps fail")
def test_maps_that_are_refused(shim: Path, base: Path) -> None:
    code = """
    [result] = runtime.write_cache(source("a", 300, 500), root, writer_config=PLAIN)
    for name in ("ENODEV", "ENOMEM", "EACCES"):
        faults.arrange(Rule("mmap", getattr(errno, name), root))
        dataset = assert_whole(result.path, 300, 500)
        assert faults.fired() > 2
        assert dataset.get_metadata().height == 300
        assert dataset.rows[5:10].data == [support.payload(i, 500) for i in range(5, 10)]
        with open("/proc/self/maps") as maps:
            assert str(root) not in maps.read()
        assert_whole(result.path, 300, 500, validate_cache=True)
        # A system that refuses in the middle.
        faults.arrange(Rule("mmap", getattr(errno, name), root, first=4))
        assert_whole(result.path, 300, 500)
        assert faults.fired() > 0
    """
    run(shim, code, base)


@pytest.mark.rule("Many readers share a cache")
def test_readers_change_nothing(shim: Path, base: Path) -> None:
    code = """
    [result] = runtime.write_cache(source("a", 300, 500), root, writer_config=PLAIN)
    for mapped in (True, False):
        changes = ["create", "write", "fsync", "mkdir", "rename", "renameat2", "unlinkat", "rmdir"]
        faults.arrange(*(Rule(call, errno.EIO, root) for call in [*changes, "flock"]))
        dataset = assert_whole(result.path, 300, 500, use_mmap=mapped, validate_cache=True)
        dataset.update_metadata(dataset.get_metadata().head(10))
        assert len(list(dataset)) == 10
        assert faults.seen() == 0
    """
    run(shim, code, base)


@pytest.mark.rule("An iterator goes on after a bad sample", "A failed read names its file")
@pytest.mark.parametrize("mapped", [True, False])
def test_reads_that_fail(shim: Path, base: Path, mapped: bool) -> None:
    code = """
    mapped = sys.argv[2] == "True"
    [result] = runtime.write_cache(source("a", 300, 500), root, writer_config=PLAIN)
    shards = support.shards(result.path)
    calls = ["pread", "open"] if not mapped else ["open"]
    for call, name, count in itertools.product(calls, ("EIO", "EMFILE", "EACCES"), (1, None)):
        number = getattr(errno, name)
        shard = shards[3]
        dataset = runtime.cached_dataset([result.path], reader_config=reader(use_mmap=mapped))
        faults.arrange(
            Rule(call, number, root, suffix=shard.name, first=0 if call == "open" else 3,
                 count=count or faults.ALWAYS))
        iterator = iter(dataset)
        failed = []
        for i in range(300):
            try:
                sample = next(iterator)
            except StorageError as error:
                assert error.errno == number, error
                assert Path(error.filename) == shard, error
                assert str(shard) in str(error)
                failed.append(i)
            else:
                assert (sample.data, sample.metadata) == (
                    support.payload(i, 500), support.metadata(i))
        try:
            next(iterator)
        except StopIteration:
            pass
        else:
            raise AssertionError("one sample too many")
        assert faults.fired() > 0, (call, name, count)
        if count is None:
            # The samples of one shard, and no others.
            assert 20 < len(failed) < 45, failed
            assert failed == list(range(failed[0], failed[-1] + 1))
        else:
            assert len(failed) <= 1, failed
            assert call == "open" or len(failed) == 1
        faults.arrange()
        # Nothing of it stays.
        assert [sample.data for sample in dataset] == [support.payload(i, 500) for i in range(300)]
    """
    run(shim, code, base, mapped)


@pytest.mark.rule("A failed read names its file")
@pytest.mark.parametrize("mapped", [True, False])
def test_opens_that_fail(shim: Path, base: Path, mapped: bool) -> None:
    code = """
    mapped = sys.argv[2] == "True"
    [result] = runtime.write_cache(source("a", 300, 500), root, writer_config=PLAIN)
    files = ["manifest.json", "metadata.arrow", "index.bin"]
    runtime.cached_dataset([result.path], reader_config=reader(use_mmap=mapped))
    descriptors = len(os.listdir("/proc/self/fd"))
    met = set()
    for call, suffix, name in itertools.product(
        ("open", "pread"), [*files, "a", "shards"], ("EIO", "EMFILE", "EACCES")
    ):
        for k in itertools.count():
            faults.arrange(
                Rule(call, getattr(errno, name), root, suffix="/" + suffix, first=k, count=1))
            try:
                dataset = runtime.cached_dataset(
                    [result.path], reader_config=reader(use_mmap=mapped))
                rows = [(sample.data, sample.metadata) for sample in dataset]
                assert dataset.get_metadata().height == 300
            except StorageError as error:
                met.add(f"{call} {suffix} {name}")
                assert error.errno == getattr(errno, name), error
                assert str(error.filename).endswith(suffix), error
                assert str(error.filename) in str(error)
                assert len(os.listdir("/proc/self/fd")) <= descriptors + 64
            else:
                assert rows == [(support.payload(i, 500), support.metadata(i)) for i in range(300)]
            if faults.fired() == 0:
                break
            faults.arrange()
    print("\\n".join(sorted(met)))
    """
    met = set(run(shim, code, base, mapped).splitlines())
    # Opens without a descriptor left are not among them: kept files give way, and the open is
    # repeated.
    opened = ["manifest.json", "metadata.arrow", "index.bin", "a", "shards"]
    read = (
        ["manifest.json", "index.bin"]
        if mapped
        else ["manifest.json", "index.bin", "metadata.arrow"]
    )
    expected = {f"open {file} {name}" for file in opened for name in ("EACCES", "EIO")}
    expected |= {f"pread {file} {name}" for file in read for name in ("EACCES", "EIO", "EMFILE")}
    assert expected <= met
