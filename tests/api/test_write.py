"""Writing: results, publication, equal bytes, shards, failures."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from dataset_rt import (
    CacheInput,
    CacheWriteError,
    CacheWriteSuccess,
    DatasetRuntime,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
)
from dataset_rt.errors import CacheExistsError, StorageError

from tests import support
from tests.support import QUIET, PrintedSource, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


@pytest.mark.rule("A cache is the folder base / name")
def test_path_of_a_cache(runtime: DatasetRuntime, tmp_path: Path) -> None:
    base = tmp_path / "made" / "on demand"
    first = support.succeed(
        runtime.write_cache(Source("one", support.plain(2)), base, writer_config=QUIET)
    )
    assert first == CacheWriteSuccess("one", base / "one")
    second = support.succeed(
        runtime.write_cache([Source("two", support.plain(2))], str(base), writer_config=QUIET)
    )
    assert second == CacheWriteSuccess("two", base / "two")
    assert support.listing(base) == ["one", "two"]


@pytest.mark.rule("One result a source", "A failing source leaves the others whole")
def test_results_in_order_around_a_failure(runtime: DatasetRuntime, base: Path) -> None:
    def failing() -> Iterator[CacheInput]:
        yield from support.plain(2000)
        raise OSError("disk of the user")

    sources = [
        Source("a", support.plain(3)),
        Source("b", failing()),
        Source("c", support.plain(4)),
        Source("d", []),
        Source("e", support.plain(5)),
    ]
    results = runtime.write_cache(sources, base, writer_config=QUIET)
    assert [result.source_name for result in results] == ["a", "b", "c", "d", "e"]
    kinds = [isinstance(result, CacheWriteSuccess) for result in results]
    assert kinds == [True, False, True, False, True]
    assert "disk of the user" in support.message_of(results[1])
    assert support.listing(base) == ["a", "c", "e"]
    paths = [result.path for result in results if isinstance(result, CacheWriteSuccess)]
    dataset = runtime.cached_dataset(
        paths, reader_config=ReaderConfig(seed=0, shuffle=False, validate_cache=True)
    )
    assert len(dataset) == 12


@pytest.mark.rule("One result a source")
def test_no_sources_no_results(runtime: DatasetRuntime, base: Path) -> None:
    assert runtime.write_cache([], base, writer_config=QUIET) == []


@pytest.mark.rule("A cache appears whole")
def test_nothing_is_visible_before_the_end(runtime: DatasetRuntime, base: Path) -> None:
    seen: list[tuple[bool, int]] = []

    def watched() -> Iterator[CacheInput]:
        for sample in support.plain(3000):
            yield sample
            seen.append(((base / "s").exists(), len(support.leftovers(base))))

    path = support.write(runtime, base, watched())
    assert len(seen) == 3000
    assert set(seen) == {(False, 1)}
    assert support.listing(path) == ["index.bin", "manifest.json", "metadata.arrow", "shards"]
    assert support.listing(base) == ["s"]


@pytest.mark.rule("write_cache replaces nothing")
@pytest.mark.parametrize("kind", ["whole", "damaged", "folder", "empty", "file", "dangling"])
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
def test_existing_targets_are_refused(
    runtime: DatasetRuntime, base: Path, kind: str, policy: str
) -> None:
    target = base / "s"
    if kind in {"whole", "damaged"}:
        support.write(runtime, base, support.plain(5))
        if kind == "damaged":
            support.flip(target / "manifest.json", 40)
    elif kind == "file":
        base.mkdir()
        target.write_text("mine")
    elif kind == "dangling":
        base.mkdir()
        target.symlink_to(base / "nowhere")
    else:
        target.mkdir(parents=True)
        if kind == "folder":
            (target / "notes.txt").write_text("mine")
    before = support.tree(base)
    source = Source("s", support.plain(6))
    config = QUIET.model_copy(update={"on_mismatch": policy})
    result = support.fail(runtime.write_cache(source, base, writer_config=config))
    error = support.cause_of(result)
    assert isinstance(error, CacheExistsError)
    assert error.path == target
    assert str(target) in result.message
    assert source.started == 0
    assert support.tree(base) == before
    if kind == "damaged":
        assert "from_cache_sources" in result.message
        assert "rebuild" in result.message


@pytest.mark.rule("What is not ours is not touched")
@pytest.mark.parametrize("kind", ["empty", "folder", "file", "ours and theirs", "no magic"])
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
def test_foreign_targets_stay(runtime: DatasetRuntime, base: Path, kind: str, policy: str) -> None:
    target = base / "s"
    if kind == "ours and theirs":
        support.write(runtime, base, support.plain(5))
        (target / "notes.txt").write_text("mine")
        support.flip(target / "manifest.json", 40)
    elif kind == "file":
        base.mkdir()
        target.write_text("mine")
    else:
        target.mkdir(parents=True)
        if kind == "folder":
            (target / "notes.txt").write_text("mine")
        elif kind == "no magic":
            (target / "index.bin").write_bytes(b"an index of mine")
            (target / "metadata.arrow").write_bytes(b"a table of mine")
    before = support.tree(base)
    config = QUIET.model_copy(update={"on_mismatch": policy})
    outcome = runtime.from_cache_sources(
        PrintedSource("s", support.plain(6), "v1"),
        base,
        reader_config=ReaderConfig(seed=0),
        writer_config=config,
    )
    support.fail(outcome.results)
    assert support.tree(base) == before


@pytest.mark.rule("The same samples give the same bytes")
@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_bytes_do_not_depend_on_workers(tmp_path: Path, algo: str) -> None:
    samples = [
        CacheInput(support.payload(i, i * 37 % 3000) + b"0" * 200, support.metadata(i))
        for i in range(1500)
    ]
    trees = []
    for workers, prefetch in [(1, 1), (4, 64), (3, 2)]:
        config = WriterConfig(
            show_progress=False,
            prefetch_size=prefetch,
            max_shard_bytes=200_000,
            shard_compression=ShardCompression.model_validate({"algo": algo}),
        )
        base = tmp_path / f"{workers}-{prefetch}"
        cache = support.write(DatasetRuntime(num_workers=workers), base, samples, config=config)
        manifest = support.read_manifest(cache)
        for varying in ("created", "writer"):
            assert manifest.pop(varying)
        files = support.tree(cache)
        assert files.pop("manifest.json")
        trees.append((manifest, files))
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0][0]["shards"]) > 3


@pytest.mark.rule("Shards end at max_shard_bytes")
def test_shards_rotate(runtime: DatasetRuntime, base: Path) -> None:
    sizes = [100] * 50 + [5000] + [0] * 20 + [100] * 50
    samples = [CacheInput(support.payload(i, size), {}) for i, size in enumerate(sizes)]
    config = WriterConfig(show_progress=False, max_shard_bytes=2048)
    cache = support.write(runtime, base, samples, config=config)
    manifest = support.read_manifest(cache)
    files = support.shards(cache)
    assert len(files) == len(manifest["shards"]) > 5
    for file, shard in zip(files, manifest["shards"], strict=True):
        assert file.stat().st_size == shard["size"]
        assert shard["size"] <= 2048 or shard["samples"] == 1
    assert max(shard["size"] for shard in manifest["shards"]) > 5000
    assert sum(shard["samples"] for shard in manifest["shards"]) == len(sizes)
    dataset = runtime.cached_dataset(
        [cache], reader_config=ReaderConfig(seed=0, shuffle=False, validate_cache=True)
    )
    assert [sample.data for sample in dataset] == [sample.data for sample in samples]


@pytest.mark.rule("Shards end at max_shard_bytes")
def test_a_shard_of_one_byte_limit_holds_one_sample(runtime: DatasetRuntime, base: Path) -> None:
    config = WriterConfig(show_progress=False, max_shard_bytes=1)
    cache = support.write(runtime, base, support.plain(7), config=config)
    assert len(support.shards(cache)) == 7


@pytest.mark.rule("Each record is compressed by itself")
def test_lz4(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    samples = [
        CacheInput(b"abc" * (i * 11 % 500) if i % 2 else support.payload(i, 300), {"i": i})
        for i in range(400)
    ]
    config = WriterConfig(
        show_progress=False, shard_compression=ShardCompression(algo="lz4", ratio=2.5)
    )
    raw, small = make_cache(samples, "raw"), make_cache(samples, "small", config)
    manifests = support.read_manifest(raw), support.read_manifest(small)
    assert [manifest["codec"]["name"] for manifest in manifests] == ["none", "lz4"]
    assert manifests[0]["identity"] == manifests[1]["identity"]
    assert manifests[0]["payload_bytes"] == manifests[1]["payload_bytes"]
    assert manifests[0]["stored_bytes"] == manifests[0]["payload_bytes"]
    # Random payloads are stored raw, repetitive ones shrink to almost nothing.
    assert 200 * 300 <= manifests[1]["stored_bytes"] < 200 * 300 + 15_000
    for shuffle in (False, True):
        first, second = (
            [(sample.data, sample.metadata) for sample in make_dataset(path, shuffle=shuffle)]
            for path in (raw, small)
        )
        assert first == second


@pytest.mark.rule("Memory of a write is bounded")
def test_the_source_waits_for_the_disk(runtime: DatasetRuntime, base: Path) -> None:
    mebibyte = 1 << 20
    count = 150

    def large() -> Iterator[CacheInput]:
        for i in range(count):
            yield CacheInput(bytes([i]) * mebibyte, {})

    config = WriterConfig(show_progress=False, prefetch_size=2)
    tracemalloc.start()
    try:
        cache = support.write(runtime, base, large(), config=config)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert support.read_manifest(cache)["payload_bytes"] == count * mebibyte
    # Two blocks in flight, those being made and given back; far from all of them.
    assert peak < 20 * mebibyte


@pytest.mark.rule("A failed write is never a success")
def test_a_refused_write(tmp_path: Path) -> None:
    done = support.run(
        """
        import json, resource, sys
        from dataset_rt import DatasetRuntime
        from tests import support
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        runtime = DatasetRuntime(num_workers=2)
        large = [(support.payload(i, 4096), {"i": i}) for i in range(2000)]
        sources = [support.Source("small", support.plain(3)), support.Source("large", large),
                   support.Source("last", support.plain(4))]
        results = runtime.write_cache(sources, sys.argv[1], writer_config=support.QUIET)
        cause = results[1].cause
        print(json.dumps([type(r).__name__ for r in results]))
        print(json.dumps([type(cause).__name__, cause.errno, str(cause)]))
        """,
        tmp_path / "base",
    )
    kinds, cause = map(json.loads, done.stdout.splitlines())
    assert kinds == ["CacheWriteSuccess", "CacheWriteError", "CacheWriteSuccess"]
    assert cause[:2] == [StorageError.__name__, errno.EFBIG]
    assert str(tmp_path / "base") in cause[2]
    assert support.listing(tmp_path / "base") == ["last", "small"]


@pytest.mark.rule("A failed write is never a success")
def test_a_full_disk(tmp_path: Path) -> None:
    command = ["unshare", "--mount", "true"]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a small file system")
    program = support.script(
        """
        import json, os, sys
        from dataset_rt import DatasetRuntime
        from tests import support
        runtime = DatasetRuntime(num_workers=2)
        large = [(support.payload(i, 4096), {"i": i}) for i in range(2000)]
        sources = [support.Source("large", large), support.Source("small", support.plain(3))]
        results = runtime.write_cache(sources, sys.argv[1], writer_config=support.QUIET)
        print(json.dumps([type(r).__name__ for r in results]))
        print(json.dumps([results[0].cause.errno, results[0].message, os.listdir(sys.argv[1])]))
        """
    )
    mount = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
    done = subprocess.run(  # noqa: S603
        ["unshare", "--mount", "sh", "-c", mount, tmp_path, *program, tmp_path],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=support.PATIENCE,
        env=support.environment(),
    )
    assert done.returncode == 0, done.stderr
    kinds, (number, message, left) = map(json.loads, done.stdout.splitlines())
    assert kinds == ["CacheWriteError", "CacheWriteSuccess"]
    assert number == errno.ENOSPC
    assert "free" in message
    assert "needed" in message or "needs" in message
    assert left == ["small"]


WRITER = """
import sys, time
from dataset_rt import DatasetRuntime
from tests import support
def samples():
    for i in range(3000):
        yield support.payload(i, 1000), {"i": i}
    print("written", flush=True)
    sys.stdin.readline()
runtime = DatasetRuntime(num_workers=2)
results = runtime.write_cache(
    support.Source(sys.argv[2], samples()), sys.argv[1], writer_config=support.QUIET
)
support.succeed(results)
"""


def start_writer(base: Path, name: str) -> subprocess.Popen[str]:
    """A process that has written most of a source and waits before the end of it."""
    process = subprocess.Popen(  # noqa: S603
        [*support.script(WRITER), str(base), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=support.environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


@pytest.mark.rule("A killed write is cleaned up by the next one")
def test_killed_and_living_writers(runtime: DatasetRuntime, base: Path) -> None:
    killed, living = start_writer(base, "s"), start_writer(base, "living")
    with living:
        try:
            with killed:
                killed.send_signal(signal.SIGKILL)
            assert len(support.leftovers(base)) == 2
            assert support.listing(base) == ["tmp"]
            support.write(runtime, base, support.plain(10), "s")
            [kept] = support.leftovers(base)
            assert (base / "tmp" / kept).is_dir()
            assert support.listing(base) == ["s", "tmp"]
        finally:
            out, _ = living.communicate("go\n", timeout=support.PATIENCE)
        assert (living.returncode, out) == (0, "")
    assert support.listing(base) == ["living", "s"]
    dataset = runtime.cached_dataset(
        [base / "living"], reader_config=ReaderConfig(seed=0, validate_cache=True)
    )
    assert len(dataset) == 3000


@pytest.mark.rule("A failing source leaves the others whole")
def test_a_failed_source_leaves_nothing(runtime: DatasetRuntime, base: Path) -> None:
    def failing() -> Iterator[CacheInput]:
        yield from support.plain(5000)
        raise ValueError("no more")

    result = support.fail(runtime.write_cache(Source("s", failing()), base, writer_config=QUIET))
    assert isinstance(result, CacheWriteError)
    assert support.listing(base) == []
    support.write(runtime, base, support.plain(2))
