"""Files that may not be read or written, and file systems that are read-only, full or in layers.

The superuser ignores modes, so what is about them runs in a process that has given its rights up.
"""

from __future__ import annotations

import json
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

START = """
import errno, json, os, sys
from pathlib import Path
from dataset_rt import (
    CacheSourcesDatasetSuccess, CacheWriteError, CacheWriteSuccess, DatasetRuntime, ReaderConfig,
    WriterConfig,
)
from dataset_rt.errors import CacheNotFoundError, DatasetRTError, StorageError
from tests import support
root = Path(sys.argv[1])
runtime = DatasetRuntime(num_workers=2)
WRITER = WriterConfig(show_progress=False, max_shard_bytes=20_000)
REBUILD = WRITER.model_copy(update={"on_mismatch": "rebuild"})

def reader(**options):
    return ReaderConfig(seed=0, shuffle=False, **options)

def read(cache, count=100, **options):
    dataset = runtime.cached_dataset([cache], reader_config=reader(**options))
    for i, sample in enumerate(dataset):
        assert (sample.data, sample.metadata) == (support.payload(i, 500), support.metadata(i))
    assert dataset.get_metadata().height == count
    assert dataset.rows[3:5].data == [support.payload(i, 500) for i in (3, 4)]

def source(name, count=100, fingerprint="print"):
    return support.PrintedSource(name, support.numbered(count, 500), fingerprint)

def write(base, name="s", config=WRITER):
    [result] = runtime.write_cache(source(name), base, writer_config=config)
    return result

def give_up_rights():
    # All that is imported late is imported by now: the package may lie where others can't read.
    read(write(root / "first").path)
    assert isinstance(write(root / "first"), CacheWriteError)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

def assert_refused(error, number, path):
    assert isinstance(error, StorageError), repr(error)
    assert error.errno == number, error
    assert str(error.filename).startswith(str(path)), error
    assert str(error).startswith(str(error.filename)), error
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="rights-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


def run(code: str, *arguments: object) -> str:
    return support.run(START + textwrap.dedent(code), *arguments).stdout


@pytest.mark.rule("Rights are asked of the system alone", "A failed read names its file")
@pytest.mark.parametrize("mapped", [True, False])
def test_what_may_not_be_read(shared: Path, mapped: bool) -> None:
    code = """
    mapped = sys.argv[2] == "True"
    cases = ["manifest.json", "metadata.arrow", "index.bin", "shards/000001.bin", "shards", "."]
    bases = [root / str(number) for number in range(len(cases))]
    for base, name in zip(bases, cases):
        cache = write(base).path
        (cache / name).chmod(0)
    unsearchable = write(root / "unsearchable").path
    unsearchable.chmod(0o444)
    above = write(root / "above").path
    above.parent.chmod(0)
    give_up_rights()
    for base, name in zip(bases, cases):
        for options in ({}, {"validate_cache": True}):
            failed = []
            try:
                dataset = runtime.cached_dataset(
                    [base / "s"], reader_config=reader(use_mmap=mapped, **options))
                iterator = iter(dataset)
                for i in range(100):
                    try:
                        sample = next(iterator)
                    except StorageError as error:
                        assert_refused(error, errno.EACCES, base / "s" / name)
                        failed.append(i)
                    else:
                        assert sample.data == support.payload(i, 500)
                assert name.endswith("bin") and not options, name
                assert 20 < len(failed) < 50
            except StorageError as error:
                assert_refused(error, errno.EACCES, base / "s" / name)
                assert options or name != "shards/000001.bin"
    for cache in (unsearchable, above):
        try:
            runtime.cached_dataset([cache], reader_config=reader(use_mmap=mapped))
        except StorageError as error:
            assert_refused(error, errno.EACCES, cache)
        else:
            raise AssertionError(cache)
    """
    run(code, shared, mapped)


@pytest.mark.rule("Rights are asked of the system alone", "A failed write is never a success")
def test_where_nothing_may_be_written(shared: Path) -> None:
    code = """
    base = root / "base"
    cache = write(base).path
    for path in [*base.rglob("*"), base]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    closed = root / "closed"
    (closed / "tmp" / "theirs").mkdir(parents=True)
    closed.chmod(0o777)
    hidden = root / "hidden"
    hidden.mkdir()
    hidden.chmod(0o333)
    blind = root / "blind"
    blind.mkdir(mode=0)
    give_up_rights()
    before = support.tree(base)
    for mapped in (True, False):
        read(cache, use_mmap=mapped, validate_cache=True)
    # A new cache, a rebuild, a folder that is not there yet, and a staging folder of somebody else.
    for where, name in ((base, "new"), (base / "more" / "folders", "new"), (closed, "new")):
        error = write(where, name)
        assert isinstance(error, CacheWriteError), error
        assert_refused(error.cause, errno.EACCES, where if where == closed else base)
    error = write(blind)
    assert_refused(error.cause, errno.EACCES, blind)
    error = write(hidden)
    assert_refused(error.cause, errno.EACCES, hidden)
    reused = runtime.from_cache_sources(
        [source("s"), source("new")], base, reader_config=reader(), writer_config=WRITER)
    assert isinstance(reused, CacheSourcesDatasetSuccess)
    assert [result.status for result in reused.results if hasattr(result, "path")] == ["reused"]
    assert len(reused.dataset) == 100
    changed = runtime.from_cache_sources(
        source("s", 7, "other"), base, reader_config=reader(), writer_config=REBUILD)
    [error] = changed.results
    assert_refused(error.cause, errno.EACCES, base)
    assert support.tree(base) == before
    assert support.listing(closed) == ["tmp"]
    assert support.listing(closed / "tmp") == ["theirs"]
    """
    run(code, shared)


@pytest.mark.rule("Rights are asked of the system alone")
def test_folders_of_another_user_stay(shared: Path) -> None:
    code = """
    base = root / "base"
    staging = base / "tmp" / "s.0123abcd.1.2.3.0000000000000005" / "cache"
    staging.mkdir(parents=True)
    (staging / "index.bin").write_bytes(b"x")
    os.utime(staging.parent, (0, 0))
    for path in (staging / "index.bin", staging):
        os.utime(path, (0, 0))
    base.chmod(0o777)
    (base / "tmp").chmod(0o777)
    give_up_rights()
    result = write(base)
    assert isinstance(result, CacheWriteSuccess), result
    read(result.path, validate_cache=True)
    left = support.listing(base / "tmp") if (base / "tmp").exists() else []
    print(json.dumps(left))
    """
    left = json.loads(run(code, shared))
    # Who may remove it, since it was not dropped, is whoever runs the test.
    assert left in ([], ["s.0123abcd.1.2.3.0000000000000005"])


@pytest.fixture
def mounts() -> None:
    try:
        subprocess.run(["unshare", "--mount", "true"], check=True, capture_output=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount file systems")


def run_mounted(mount: str, code: str, folder: Path) -> str:
    """Runs a script on file systems of its own; `mount` is for the shell, `$0` the folder."""
    program = support.script(START + textwrap.dedent(code))
    done = subprocess.run(  # noqa: S603
        ["unshare", "--mount", "sh", "-ec", f'{mount}\nexec "$@"', folder, *program, folder],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=support.PATIENCE,
        env=support.environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("mounts")
@pytest.mark.rule("Many readers share a cache", "A failed write is never a success")
@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_a_read_only_file_system(tmp_path: Path, kind: str) -> None:
    mount = {
        "bind": 'mount --bind "$0" "$0"',
        "tmpfs": 'mount -t tmpfs -o size=16m tmpfs "$0"',
    }[kind]
    code = """
    import subprocess
    cache = write(root / "base").path
    before = support.tree(root)
    subprocess.run(["mount", "-o", "remount,bind,ro", root], check=True)
    for mapped in (True, False):
        read(cache, use_mmap=mapped, validate_cache=True)
    for name in ("base", "elsewhere"):
        error = write(root / name, "new")
        assert_refused(error.cause, errno.EROFS, root / name)
    reused = runtime.from_cache_sources(
        source("s"), root / "base", reader_config=reader(), writer_config=WRITER)
    assert reused.results[0].status == "reused"
    changed = runtime.from_cache_sources(
        source("s", 7, "other"), root / "base", reader_config=reader(), writer_config=REBUILD)
    assert_refused(changed.results[0].cause, errno.EROFS, root / "base")
    assert support.tree(root) == before
    """
    run_mounted(mount, code, tmp_path)


@pytest.mark.usefixtures("mounts")
@pytest.mark.rule("File systems may lack locks and renames that refuse")
def test_a_staging_folder_on_another_file_system(tmp_path: Path) -> None:
    mount = 'mkdir -p "$0/base/tmp" && mount -t tmpfs tmpfs "$0/base/tmp"'
    code = """
    base = root / "base"
    error = write(base)
    assert_refused(error.cause, errno.EXDEV, base / "s")
    assert support.listing(base) == ["tmp"]
    assert support.listing(base / "tmp") == []
    """
    run_mounted(mount, code, tmp_path)


@pytest.mark.usefixtures("mounts")
@pytest.mark.rule("File systems may lack locks and renames that refuse")
def test_layers(tmp_path: Path) -> None:
    probe = """
    mount -t tmpfs tmpfs "$0"
    mkdir "$0/l" "$0/u" "$0/w" "$0/m"
    mount -t overlay overlay -o lowerdir="$0/l",upperdir="$0/u",workdir="$0/w" "$0/m"
    """
    tried = subprocess.run(  # noqa: S603
        ["unshare", "--mount", "sh", "-ec", probe, tmp_path],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip("needs a kernel with overlay file systems")
    code = """
    import subprocess
    lower, merged = root / "l", root / "m"
    write(lower)
    # Mounted again, so that the cache lies below.
    subprocess.run(["umount", merged], check=True)
    layers = f"lowerdir={lower},upperdir={root / 'u'},workdir={root / 'w'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, merged], check=True)
    before = support.tree(lower)
    for mapped in (True, False):
        read(merged / "s", use_mmap=mapped, validate_cache=True)
    reused = runtime.from_cache_sources(
        source("s"), merged, reader_config=reader(), writer_config=WRITER)
    assert reused.results[0].status == "reused"
    read(write(merged, "new").path, validate_cache=True)
    # Layers may refuse to move a folder that lies below: then the old cache stays.
    changed = runtime.from_cache_sources(
        source("s", 7, "other"), merged, reader_config=reader(), writer_config=REBUILD)
    [result] = changed.results
    if isinstance(result, CacheWriteError):
        assert_refused(result.cause, errno.EXDEV, merged / "s")
        read(merged / "s", validate_cache=True)
    else:
        read(merged / "s", 7, validate_cache=True)
    assert support.listing(merged) == ["new", "s"]
    assert support.tree(lower) == before
    """
    run_mounted(probe, code, tmp_path)


@pytest.mark.usefixtures("mounts")
@pytest.mark.rule("A failed write is never a success", "A failure leaves nothing behind")
def test_a_disk_that_is_full_at_each_page(tmp_path: Path) -> None:
    code = """
    import shutil, time
    ballast, base = root / "ballast", root / "base"
    page = os.statvfs(root).f_frsize
    total = os.statvfs(root).f_blocks
    # Page by page: what is written at once may take more than it needs until the space runs out.
    with open(ballast, "wb", buffering=0) as file:
        for _ in range(total):
            file.write(bytes(page))
    outcomes = {"large+small": 0, "large": 0, "small": 0, "": 0}
    for pages in range(64):
        os.truncate(ballast, (total - pages) * page)
        deadline = time.monotonic() + support.PATIENCE / 2
        while (free := os.statvfs(root).f_bavail) != pages:
            assert time.monotonic() < deadline, (free, pages)
            time.sleep(0.001)
        results = runtime.write_cache(
            [source("large", 300), support.Source("small", support.plain(3))], base,
            writer_config=WRITER)
        stands = support.listing(base) if base.exists() else []
        kept = [result.source_name for result in results if isinstance(result, CacheWriteSuccess)]
        assert stands == sorted(kept), (pages, results)
        for result in results:
            if isinstance(result, CacheWriteError):
                assert_refused(result.cause, errno.ENOSPC, base)
                assert "bytes needed" in result.message and "bytes free" in result.message
            else:
                dataset = runtime.cached_dataset(
                    [result.path], reader_config=reader(validate_cache=True))
                assert len(list(dataset)) == len(dataset)
                # An open dataset keeps the space of files that are removed.
                del dataset
        if "small" not in kept:
            # It would not have fitted beside what stands either.
            again = runtime.write_cache(
                support.Source("small", support.plain(3)), base, writer_config=WRITER)
            assert isinstance(again[0], CacheWriteError), (pages, results)
        outcomes["+".join(kept)] += 1
        for name in kept:
            shutil.rmtree(base / name)
    print(json.dumps(outcomes))
    """
    outcomes = json.loads(run_mounted('mount -t tmpfs -o size=1m tmpfs "$0"', code, tmp_path))
    assert outcomes[""] > 2
    assert outcomes["small"] > 20
    assert outcomes["large+small"] > 5
