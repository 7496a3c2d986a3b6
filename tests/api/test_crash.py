"""Processes that are killed while they write: what stands afterwards, what the next run does."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from dataset_rt import (
    CacheInput,
    CacheSourcesDatasetSuccess,
    CacheWriteSuccess,
    DatasetRuntime,
    ReaderConfig,
    WriterConfig,
)

from tests import support
from tests.processes import is_long

if TYPE_CHECKING:
    from pathlib import Path

# Hang limits: the long form has some hundred processes, of a second or two each.
LIMIT = pytest.mark.timeout(1800 if is_long() else 180)

CHANGES = ["fsync", "mkdir", "renameat2", "unlink", "unlinkat", "rmdir", "pwrite64", "write"]

CHILD = """
import os, signal, sys
from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
from tests import support
base, fingerprint, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
runtime = DatasetRuntime(num_workers=1)
config = WriterConfig(show_progress=False, on_mismatch="rebuild", max_shard_bytes=1 << 15)
samples = [(support.payload(i, 1024), {"i": i}) for i in range(count)]
runtime.from_cache_sources(
    support.PrintedSource("s", samples, fingerprint), base,
    reader_config=ReaderConfig(seed=0), writer_config=config)
"""

CONFIG = WriterConfig(show_progress=False, on_mismatch="rebuild", max_shard_bytes=1 << 15)
OLD, NEW = ("v1", 60), ("v2", 120)


def samples(count: int) -> list[CacheInput]:
    return [CacheInput(support.payload(i, 1024), {"i": i}) for i in range(count)]


def store(runtime: DatasetRuntime, base: Path, fingerprint: str, count: int) -> CacheWriteSuccess:
    """What the child does, in this process."""
    outcome = runtime.from_cache_sources(
        support.PrintedSource("s", samples(count), fingerprint),
        base,
        reader_config=ReaderConfig(seed=0),
        writer_config=CONFIG,
    )
    return support.succeed(outcome.results)


def check(runtime: DatasetRuntime, cache: Path) -> tuple[str, int]:
    """Reads a whole cache; its fingerprint and number of samples."""
    reader = ReaderConfig(seed=0, shuffle=False, validate_cache=True)
    dataset = runtime.cached_dataset([cache], reader_config=reader)
    expected = [support.payload(i, 1024) for i in range(len(dataset))]
    assert [sample.data for sample in dataset] == expected
    return support.read_manifest(cache)["source"]["fingerprint"], len(dataset)


def content(cache: Path) -> dict[str, bytes | str | None]:
    """All files but the manifest, which has a date."""
    tree = support.tree(cache)
    del tree["manifest.json"]
    return tree


def needs_strace() -> None:
    """Skips where a process can't be stopped at its system calls."""
    command = shutil.which("strace")
    if command is None:
        pytest.skip("needs strace")
    tried = subprocess.run(  # noqa: S603
        [command, "-f", "-o", "/dev/null", "-e", "trace=fsync", "true"],
        capture_output=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip("needs the right to trace a process")


def killed_at(call: str, number: int, base: Path, fingerprint: str, count: int) -> bool:
    """Runs the child, killed as a thread of it enters this system call for that time."""
    done = subprocess.run(  # noqa: S603
        [
            *("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
            *("-e", f"inject={call}:signal=KILL:when={number}"),
            *support.script(CHILD),
            *(str(base), fingerprint, str(count)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=support.PATIENCE * 2,
        env=support.environment(),
    )
    killed = done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert killed or done.returncode == 0, done.stderr
    return killed


SCENES = {
    # What the child does, what may stand afterwards, and what the next run may say.
    "write": (NEW, {NEW}, {"written", "reused"}),
    "rebuild": (NEW, {OLD, NEW}, {"rebuilt", "reused"}),
    "clean": (OLD, {OLD}, {"rebuilt"}),
}
SAMPLE: dict[str, dict[str, tuple[int, ...]]] = {
    "write": {"mkdir": (2,), "fsync": (3, 10), "renameat2": (1,)},
    "rebuild": {"renameat2": (1,), "unlinkat": (2,)},
    "clean": {"unlinkat": (2,)},
}


@LIMIT
@pytest.mark.rule("A killed write is cleaned up by the next one", "A cache appears whole")
@pytest.mark.parametrize("scene", SCENES)
def test_killed_at_a_system_call(runtime: DatasetRuntime, tmp_path: Path, scene: str) -> None:
    needs_strace()
    undisturbed = tmp_path / "undisturbed"
    store(runtime, undisturbed, *NEW)
    child, allowed, statuses = SCENES[scene]
    kills = 0
    for call in CHANGES if is_long() else SAMPLE[scene]:
        for number in range(1, 1000) if is_long() else SAMPLE[scene][call]:
            base = tmp_path / f"{call}-{number}"
            if scene != "write":
                store(runtime, base, *OLD)
            if scene == "clean":
                # A dead writer's folder, with shards; the child is a reuse that removes it.
                assert killed_at("fsync", 3, base, *NEW)
                assert support.leftovers(base)
            killed = killed_at(call, number, base, *child)
            target = base / "s"
            assert target.exists() or scene == "write"
            if target.exists():
                assert check(runtime, target) in allowed
            assert not base.exists() or len(support.leftovers(base)) <= 1
            assert store(runtime, base, *NEW).status in statuses
            assert check(runtime, target) == NEW
            assert content(target) == content(undisturbed / "s")
            assert support.listing(base) == ["s"]
            kills += killed
            if not killed:
                break
    assert kills >= len(SAMPLE[scene])


SUICIDE = """
import os, signal, sys, time
from dataset_rt import CacheInput, DatasetRuntime, WriterConfig
from tests import support
base, at, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def samples():
    for i in range(count):
        if i == at:
            os.kill(os.getpid(), signal.SIGKILL)
        yield CacheInput(support.payload(i, 1024), {"i": i})
config = WriterConfig(show_progress=False, max_shard_bytes=1 << 20)
DatasetRuntime(num_workers=2).write_cache(
    support.Source("s", samples()), base, writer_config=config)
"""


@LIMIT
@pytest.mark.rule(
    "A killed write is cleaned up by the next one", "The same samples give the same bytes"
)
def test_killed_at_a_sample(runtime: DatasetRuntime, tmp_path: Path) -> None:
    count, kills = (20_000, 50) if is_long() else (4000, 4)
    config = WriterConfig(show_progress=False, max_shard_bytes=1 << 20)
    undisturbed = support.write(runtime, tmp_path / "undisturbed", samples(count), config=config)
    base = tmp_path / "base"
    for kill in range(kills):
        at = count * kill // kills + 1
        done = support.run(SUICIDE, base, at, count, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        # The one before was cleaned up by this one.
        assert support.listing(base) == ["tmp"]
        assert len(support.leftovers(base)) == 1
    cache = support.write(runtime, base, samples(count), config=config)
    assert check_numbered(runtime, cache) == count
    assert content(cache) == content(undisturbed)
    assert support.listing(base) == ["s"]


def check_numbered(runtime: DatasetRuntime, cache: Path) -> int:
    """Reads a cache of numbered samples; how many there are."""
    reader = ReaderConfig(seed=0, shuffle=False, validate_cache=True)
    dataset = runtime.cached_dataset([cache], reader_config=reader)
    assert all(sample.data == support.payload(i, 1024) for i, sample in enumerate(dataset))
    return len(dataset)


THREE = """
import os, signal, sys, time
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
base = sys.argv[1]
def deadly():
    for i in range(3000):
        yield support.payload(i), {"i": i}
    while not os.path.exists(base + "/a"):
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGKILL)
sources = [support.PrintedSource("a", support.plain(2000), "v"),
           support.PrintedSource("b", deadly(), "v"),
           support.PrintedSource("c", support.plain(10), "v")]
DatasetRuntime(num_workers=2).from_cache_sources(
    sources, base, reader_config=ReaderConfig(seed=0), writer_config=support.QUIET)
"""


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """What a rewrite of a file would change."""
    files = {path: path.stat() for path in folder.rglob("*")}
    return {str(path): (stat.st_ino, stat.st_mtime_ns) for path, stat in files.items()}


@pytest.mark.rule(
    "A killed write is cleaned up by the next one", "from_cache_sources creates or reuses"
)
def test_killed_during_the_second_of_three_sources(runtime: DatasetRuntime, base: Path) -> None:
    done = support.run(THREE, base, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert support.listing(base) == ["a", "tmp"]
    before = stamps(base / "a")
    sources = [
        support.PrintedSource("a", support.plain(2000), "v"),
        support.PrintedSource("b", support.plain(3000), "v"),
        support.PrintedSource("c", support.plain(10), "v"),
    ]
    outcome = runtime.from_cache_sources(
        sources, base, reader_config=ReaderConfig(seed=0), writer_config=support.QUIET
    )
    assert isinstance(outcome, CacheSourcesDatasetSuccess)
    statuses = [getattr(result, "status", None) for result in outcome.results]
    assert statuses == ["reused", "written", "written"]
    assert [source.started for source in sources] == [0, 1, 1]
    assert stamps(base / "a") == before
    assert len(outcome.dataset) == 5010
    assert support.listing(base) == ["a", "b", "c"]
