"""from_cache_sources: create, reuse, rebuild, and say why."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import time
import warnings
from typing import TYPE_CHECKING, Any, Literal

import pytest
from dataset_rt import (
    CacheInput,
    CacheSourcesDatasetError,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteSuccess,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
)
from dataset_rt.errors import (
    CacheDamagedError,
    CacheMismatchError,
    CacheReuseWarning,
    CacheVersionError,
)

from tests import support
from tests.support import PrintedSource, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dataset_rt import CachedDataset, CacheSourcesDatasetResult, DatasetRuntime


pytestmark = pytest.mark.core

READER = ReaderConfig(seed=0, shuffle=False)
Policy = Literal["error", "rebuild", "reuse"]


def writer(policy: Policy = "error", **options: Any) -> WriterConfig:
    return WriterConfig(show_progress=False, on_mismatch=policy, **options)


def loaded(outcome: CacheSourcesDatasetResult) -> tuple[CachedDataset, CacheWriteSuccess]:
    """The dataset and the result of its only source."""
    assert isinstance(outcome, CacheSourcesDatasetSuccess), outcome
    return outcome.dataset, support.succeed(outcome.results)


def build(
    runtime: DatasetRuntime, source: Source, base: Path, policy: Policy = "error", **options: Any
) -> CacheSourcesDatasetResult:
    return runtime.from_cache_sources(
        source, base, reader_config=READER, writer_config=writer(policy, **options)
    )


@pytest.mark.rule(
    "from_cache_sources creates or reuses",
    "A source is iterated only when it is written",
    "Every result says why",
)
def test_create_then_reuse(runtime: DatasetRuntime, base: Path) -> None:
    first = PrintedSource("a", support.plain(3), "v1")
    dataset, result = loaded(build(runtime, first, base))
    assert (result.status, result.path, first.started) == ("written", base / "a", 1)
    assert len(dataset) == 3
    before = support.tree(base)
    again = PrintedSource("a", support.plain(9), "v1")
    other = PrintedSource("b", support.plain(2), "v1")
    outcome = runtime.from_cache_sources(
        [again, other], base, reader_config=READER, writer_config=writer()
    )
    assert isinstance(outcome, CacheSourcesDatasetSuccess)
    statuses = [getattr(result, "status", None) for result in outcome.results]
    assert statuses == ["reused", "written"]
    assert (again.started, other.started) == (0, 1)
    assert support.ids(outcome.dataset) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert {path: data for path, data in support.tree(base).items() if path in before} == before
    for each in outcome.results:
        assert isinstance(each, CacheWriteSuccess)
        assert each.reason
        assert repr(each.reason) in repr(each)
        assert each.status in repr(each)


@pytest.mark.rule("Matching fingerprints reuse a cache")
def test_the_writer_configuration_is_no_mismatch(runtime: DatasetRuntime, base: Path) -> None:
    build(runtime, PrintedSource("a", support.plain(50), "v1"), base)
    source = PrintedSource("a", support.plain(50), "v1")
    _, result = loaded(
        build(
            runtime,
            source,
            base,
            max_shard_bytes=100,
            prefetch_size=1,
            shard_compression=ShardCompression(algo="lz4"),
        )
    )
    assert (result.status, source.started) == ("reused", 0)


@pytest.mark.rule("Matching fingerprints reuse a cache")
def test_a_moved_cache_is_reused(runtime: DatasetRuntime, tmp_path: Path) -> None:
    build(runtime, PrintedSource("a", support.plain(5), "v1"), tmp_path / "old")
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    _, result = loaded(build(runtime, PrintedSource("a", [], "v1"), tmp_path / "new"))
    assert result.status == "reused"


def fingerprint_of(*parts: str) -> str:
    """A fingerprint as sources make it: a digest of all that their samples depend on."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@pytest.mark.rule(
    "Matching fingerprints reuse a cache", "on_mismatch says what happens to another fingerprint"
)
def test_what_a_fingerprint_covers_decides(runtime: DatasetRuntime, base: Path) -> None:
    data, code, fields = "data 1", "def prepare(): return 1", "label"
    first = PrintedSource("a", support.plain(3), fingerprint_of(data, code, fields))
    build(runtime, first, base)
    # Nothing but the times of files changed.
    for file in (base / "a").rglob("*"):
        os.utime(file, (1, 1))
    same = PrintedSource("a", support.plain(3), fingerprint_of(data, code, fields))
    _, result = loaded(build(runtime, same, base))
    assert (result.status, same.started) == ("reused", 0)
    changed = [
        (support.plain(4), fingerprint_of("data 2", code, fields)),
        (support.plain(5), fingerprint_of(data, "def prepare(): return 2", fields)),
        ([CacheInput(b"x", {"other": 1.5})], fingerprint_of(data, code, "other")),
    ]
    for samples, fingerprint in changed:
        before = support.tree(base)
        outcome = build(runtime, PrintedSource("a", samples, fingerprint), base)
        assert isinstance(support.cause_of(support.fail(outcome.results)), CacheMismatchError)
        assert support.tree(base) == before
        source = PrintedSource("a", samples, fingerprint)
        dataset, result = loaded(build(runtime, source, base, "rebuild"))
        assert (result.status, source.started) == ("rebuilt", 1)
        assert fingerprint in result.reason
        assert [sample.data for sample in dataset] == [sample.data for sample in samples]


MISMATCHES = [("v1", "v2"), (None, "v2"), ("", "v2"), ("v1", "")]


@pytest.mark.rule("on_mismatch says what happens to another fingerprint", "Every result says why")
@pytest.mark.parametrize(("old", "new"), MISMATCHES)
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
def test_policies(
    runtime: DatasetRuntime, base: Path, old: str | None, new: str, policy: Policy
) -> None:
    build(runtime, PrintedSource("a", support.plain(3), old), base)
    before = support.tree(base)
    source = PrintedSource("a", support.plain(5), new)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = build(runtime, source, base, policy)
    [result] = outcome.results
    if policy == "error":
        assert isinstance(outcome, CacheSourcesDatasetError)
        assert isinstance(result, CacheWriteError)
        assert isinstance(result.cause, CacheMismatchError)
        assert result.cause.path == base / "a"
        assert "fingerprint" in result.message
        assert "on_mismatch" in result.message
    elif policy == "rebuild":
        dataset, success = loaded(outcome)
        assert success.status == "rebuilt"
        assert "fingerprint" in success.reason
        assert len(dataset) == 5
        assert support.read_manifest(base / "a")["source"]["fingerprint"] == new
        assert support.listing(base) == ["a"]
    else:
        dataset, success = loaded(outcome)
        assert success.status == "reused"
        assert "fingerprint" in success.reason
        assert len(dataset) == 3
    assert source.started == (policy == "rebuild")
    if policy != "rebuild":
        assert support.tree(base) == before
    reuse_warnings = [entry for entry in caught if entry.category is CacheReuseWarning]
    assert len(reuse_warnings) == (policy == "reuse")


@pytest.mark.rule("on_mismatch says what happens to another fingerprint")
def test_write_cache_ignores_the_policy(runtime: DatasetRuntime, base: Path) -> None:
    build(runtime, PrintedSource("a", support.plain(3), "v1"), base)
    source = PrintedSource("a", support.plain(5), "v2")
    support.fail(runtime.write_cache(source, base, writer_config=writer("rebuild")))
    assert source.started == 0


@pytest.mark.rule("A fingerprint is text or None")
@pytest.mark.parametrize("fingerprint", [1, b"v1", ["v1"], 1.0, True, "\ud800"], ids=ascii)
def test_other_fingerprints_are_refused(
    runtime: DatasetRuntime, base: Path, fingerprint: Any
) -> None:
    source = PrintedSource("a", support.plain(3), fingerprint)
    result = support.fail(runtime.write_cache(source, base, writer_config=writer()))
    assert "fingerprint" in result.message
    assert isinstance(result.cause, (TypeError, ValueError))
    assert source.started == 0
    assert not (base / "a").exists()


@pytest.mark.rule("A fingerprint is text or None")
def test_fingerprints_are_kept_exactly(runtime: DatasetRuntime, base: Path) -> None:
    fingerprint = 'é\u0301 "quoted" \\ \n\0 🎲'
    build(runtime, PrintedSource("a", support.plain(3), fingerprint), base)
    assert support.read_manifest(base / "a")["source"]["fingerprint"] == fingerprint
    _, result = loaded(build(runtime, PrintedSource("a", [], fingerprint), base))
    assert result.status == "reused"


@pytest.mark.rule("Reuse without proof is said aloud", "Every result says why")
def test_reuse_by_name_warns_once(runtime: DatasetRuntime, base: Path) -> None:
    build(runtime, Source("a", support.plain(3)), base)
    created = support.read_manifest(base / "a")["created"]
    with pytest.warns(CacheReuseWarning) as caught:
        _, result = loaded(build(runtime, Source("a", support.plain(3)), base))
    assert len(caught) == 1
    text = str(caught[0].message)
    assert str(base / "a") in text
    assert created in text
    assert "fingerprint" in text
    assert caught[0].filename == __file__
    assert "name" in result.reason
    # The same cache again: nothing new to say, and warnings are errors here.
    loaded(build(runtime, Source("a", support.plain(3)), base))


@pytest.mark.rule("Reuse without proof is said aloud")
def test_a_cache_written_again_is_warned_about_again(runtime: DatasetRuntime, base: Path) -> None:
    for round_ in range(2):
        build(runtime, Source("a", support.plain(3)), base)
        if round_:
            # The date is what tells the two apart.
            support.write_manifest(
                base / "a", lambda manifest: manifest.update(created="2031-01-01T00:00:00Z")
            )
        with pytest.warns(CacheReuseWarning):
            loaded(build(runtime, Source("a", support.plain(3)), base))
        shutil.rmtree(base)


@pytest.mark.rule("Reuse without proof is said aloud")
@pytest.mark.parametrize(("count", "messages"), [(3, 3), (4, 1), (9, 1)])
def test_many_reused_caches_share_a_warning(
    runtime: DatasetRuntime, base: Path, count: int, messages: int
) -> None:
    sources = [Source(f"s{i}", support.plain(2)) for i in range(count)]
    runtime.from_cache_sources(sources, base, reader_config=READER, writer_config=writer())
    with pytest.warns(CacheReuseWarning) as caught:
        runtime.from_cache_sources(sources, base, reader_config=READER, writer_config=writer())
    assert len(caught) == messages
    if messages == 1:
        assert str(count) in str(caught[0].message)


def damage(cache: Path, kind: str) -> None:
    if kind == "manifest":
        support.flip(cache / "manifest.json", 50)
    elif kind == "no manifest":
        (cache / "manifest.json").unlink()
    elif kind == "index":
        support.flip(cache / "index.bin", 20)
    elif kind == "short shard":
        os.truncate(cache / "shards" / "000000.bin", 100)
    elif kind == "no metadata":
        (cache / "metadata.arrow").unlink()
    else:
        support.flip(cache / "shards" / "000000.bin", 70)


@pytest.mark.rule("A damaged cache counts as a mismatch")
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
@pytest.mark.parametrize("kind", ["manifest", "no manifest", "index", "short shard", "no metadata"])
def test_damaged_caches(runtime: DatasetRuntime, base: Path, kind: str, policy: Policy) -> None:
    build(runtime, PrintedSource("a", support.plain(3), "v1"), base)
    damage(base / "a", kind)
    before = support.tree(base)
    sources = [
        PrintedSource("a", support.plain(5), "v1"),
        PrintedSource("b", support.plain(2), "v1"),
    ]
    outcome = runtime.from_cache_sources(
        sources, base, reader_config=READER, writer_config=writer(policy)
    )
    assert isinstance(outcome, CacheSourcesDatasetSuccess)
    first, second = outcome.results
    assert isinstance(second, CacheWriteSuccess)
    if policy == "rebuild":
        assert isinstance(first, CacheWriteSuccess)
        assert first.status == "rebuilt"
        assert "damage" in first.reason
        assert len(outcome.dataset) == 7
    else:
        assert isinstance(first, CacheWriteError)
        assert "rebuild" in first.message
        assert {path: data for path, data in support.tree(base).items() if path in before} == before
        assert len(outcome.dataset) == 2


@pytest.mark.rule("A damaged cache counts as a mismatch", "A cache that is too new says so")
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
def test_newer_caches_are_never_replaced(
    runtime: DatasetRuntime, base: Path, policy: Policy
) -> None:
    build(runtime, PrintedSource("a", support.plain(3), "v1"), base)
    support.write_manifest(base / "a", lambda manifest: manifest.update(version=2))
    before = support.tree(base)
    source = PrintedSource("a", support.plain(5), "v2")
    outcome = build(runtime, source, base, policy)
    assert isinstance(support.cause_of(support.fail(outcome.results)), CacheVersionError)
    assert source.started == 0
    assert support.tree(base) == before


@pytest.mark.rule("What is not ours is not touched")
@pytest.mark.parametrize("policy", ["error", "rebuild", "reuse"])
def test_links_to_caches_are_never_replaced(
    runtime: DatasetRuntime, base: Path, tmp_path: Path, policy: Policy
) -> None:
    build(runtime, PrintedSource("a", support.plain(3), "v1"), tmp_path / "elsewhere")
    base.mkdir()
    (base / "a").symlink_to(tmp_path / "elsewhere" / "a")
    _, result = loaded(build(runtime, PrintedSource("a", [], "v1"), base, policy))
    assert result.status == "reused"
    before = support.tree(tmp_path)
    source = PrintedSource("a", support.plain(5), "v2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheReuseWarning)
        outcome = build(runtime, source, base, policy)
    assert isinstance(outcome, CacheSourcesDatasetSuccess) == (policy == "reuse")
    assert source.started == 0
    assert support.tree(tmp_path) == before


@pytest.mark.rule("validate_cache of a writer checks what is reused")
def test_a_flipped_payload(runtime: DatasetRuntime, base: Path) -> None:
    build(runtime, PrintedSource("a", support.plain(30), "v1"), base)
    damage(base / "a", "payload")
    _, result = loaded(build(runtime, PrintedSource("a", [], "v1"), base))
    assert result.status == "reused"
    outcome = build(runtime, PrintedSource("a", [], "v1"), base, validate_cache=True)
    error = support.cause_of(support.fail(outcome.results))
    chain = [error, error.__cause__]
    assert "000000.bin" in str(error)
    assert any(isinstance(link, (CacheDamagedError, CacheMismatchError)) for link in chain)
    source = PrintedSource("a", support.plain(30), "v1")
    dataset, result = loaded(build(runtime, source, base, "rebuild", validate_cache=True))
    assert (result.status, source.started) == ("rebuilt", 1)
    assert [sample.data for sample in dataset] == [support.payload(i, 8) for i in range(30)]


@pytest.mark.rule("Rebuilding keeps the old cache until the new one is whole")
def test_a_failed_rebuild_keeps_the_old_cache(runtime: DatasetRuntime, base: Path) -> None:
    build(runtime, PrintedSource("a", support.plain(3), "v1"), base)
    before = support.tree(base)
    seen = []

    def failing() -> Iterator[CacheInput]:
        for sample in support.plain(3000):
            seen.append((base / "a" / "manifest.json").exists())
            yield sample
        raise RuntimeError("too late")

    outcome = build(runtime, PrintedSource("a", failing(), "v2"), base, "rebuild")
    assert "too late" in support.fail(outcome.results).message
    assert set(seen) == {True}
    assert support.tree(base) == before


@pytest.mark.rule("A dataset needs one success")
def test_outcomes_without_a_dataset(runtime: DatasetRuntime, base: Path) -> None:
    sources = [Source("a", []), Source("../b", support.plain(2))]
    outcome = runtime.from_cache_sources(
        sources, base, reader_config=READER, writer_config=writer()
    )
    assert isinstance(outcome, CacheSourcesDatasetError)
    results, message = outcome
    assert [result.source_name for result in results] == ["a", "../b"]
    assert message
    nothing = runtime.from_cache_sources([], base, reader_config=READER, writer_config=writer())
    assert isinstance(nothing, CacheSourcesDatasetError)
    assert nothing.results == []


@pytest.mark.rule("A dataset needs one success")
def test_outcomes_match(runtime: DatasetRuntime, base: Path) -> None:
    outcome = runtime.from_cache_sources(
        [Source("a", support.plain(2)), Source("b", [])],
        base,
        reader_config=READER,
        writer_config=writer(),
    )
    match outcome:
        case CacheSourcesDatasetSuccess(dataset, results):
            assert len(dataset) == 2
            assert isinstance(results[0], CacheWriteSuccess)
            assert isinstance(results[1], CacheWriteError)
        case CacheSourcesDatasetError():
            pytest.fail("one source has a cache")


SLOW_WRITER = """
import sys
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
def samples():
    for i in range(1000):
        yield support.payload(i), {"by": 1}
    print("started", flush=True)
    sys.stdin.readline()
outcome = DatasetRuntime(num_workers=1).from_cache_sources(
    support.PrintedSource("a", samples(), sys.argv[2]), sys.argv[1],
    reader_config=ReaderConfig(seed=0), writer_config=support.QUIET)
print(outcome.results[0].status, flush=True)
"""


@pytest.mark.rule("A living writer is waited for")
@pytest.mark.parametrize("fingerprint", ["v1", "v2"])
def test_waiting_for_another_process(
    runtime: DatasetRuntime, base: Path, caplog: pytest.LogCaptureFixture, fingerprint: str
) -> None:
    slow = subprocess.Popen(  # noqa: S603
        [*support.script(SLOW_WRITER), str(base), "v1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=support.environment(),
    )
    with slow:
        assert slow.stdout is not None
        assert slow.stdin is not None
        assert slow.stdout.readline() == "started\n"

        class Continue(logging.Handler):
            """Lets the other process go on once we are seen to wait for it."""

            def emit(self, record: logging.LogRecord) -> None:
                assert slow.stdin is not None
                slow.stdin.write("go\n")
                slow.stdin.flush()

        logger = logging.getLogger("dataset_rt")
        handler = Continue(level=logging.INFO)
        logger.addHandler(handler)
        caplog.set_level(logging.INFO, logger="dataset_rt")
        source = PrintedSource("a", support.plain(5), fingerprint)
        try:
            outcome = build(runtime, source, base)
        finally:
            logger.removeHandler(handler)
        assert slow.stdout.readline() == "written\n"
    lines = [record for record in caplog.records if "a" in record.getMessage()]
    assert len(lines) == 1
    assert source.started == 0
    if fingerprint == "v1":
        dataset, result = loaded(outcome)
        assert result.status == "reused"
        assert len(dataset) == 1000
    else:
        assert isinstance(support.cause_of(support.fail(outcome.results)), CacheMismatchError)


@pytest.mark.rule("Several processes may write one source")
def test_many_processes_get_one_cache(base: Path) -> None:
    code = """
    import json, sys, time
    from dataset_rt import DatasetRuntime, ReaderConfig
    from tests import support
    mine = int(sys.argv[2])
    def samples():
        for i in range(300):
            time.sleep(0.0005)
            yield support.payload(i), {"by": mine}
    runtime = DatasetRuntime(num_workers=1)
    sys.stdin.readline()
    outcome = runtime.from_cache_sources(
        support.PrintedSource("a", samples(), "v1"), sys.argv[1],
        reader_config=ReaderConfig(seed=0, validate_cache=True), writer_config=support.QUIET)
    [result] = outcome.results
    by = outcome.dataset.get_metadata()["by"].unique().to_list()
    print(json.dumps([result.status, by, len(outcome.dataset)]))
    """
    processes = [
        subprocess.Popen(  # noqa: S603
            [*support.script(code), str(base), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=support.environment(),
        )
        for number in range(4)
    ]
    time.sleep(0.5)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = []
    for process in processes:
        out, _ = process.communicate(timeout=support.PATIENCE)
        assert process.returncode == 0
        answers.append(json.loads(out))
    statuses = sorted(answer[0] for answer in answers)
    assert statuses == ["reused", "reused", "reused", "written"]
    [winner] = [number for number, answer in enumerate(answers) if answer[0] == "written"]
    assert {tuple(answer[1]) for answer in answers} == {(winner,)}
    assert {answer[2] for answer in answers} == {300}
    assert support.listing(base) == ["a"]


@pytest.mark.rule("Several processes may write one source")
def test_write_cache_succeeds_in_one_process(base: Path) -> None:
    code = """
    import json, sys, time
    from dataset_rt import DatasetRuntime
    from tests import support
    mine = int(sys.argv[2])
    def samples():
        for i in range(300):
            time.sleep(0.0005)
            yield support.payload(i), {"by": mine}
    runtime = DatasetRuntime(num_workers=1)
    sys.stdin.readline()
    [result] = runtime.write_cache(
        support.Source("a", samples()), sys.argv[1], writer_config=support.QUIET)
    print(json.dumps(type(result).__name__))
    """
    processes = [
        subprocess.Popen(  # noqa: S603
            [*support.script(code), str(base), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=support.environment(),
        )
        for number in range(3)
    ]
    answers = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=support.PATIENCE)
        assert process.returncode == 0
        answers.append(json.loads(out))
    assert sorted(answers) == ["CacheWriteError", "CacheWriteError", "CacheWriteSuccess"]
    winner = answers.index("CacheWriteSuccess")
    from dataset_rt import DatasetRuntime  # noqa: PLC0415

    dataset = DatasetRuntime(num_workers=1).cached_dataset(
        [base / "a"], reader_config=ReaderConfig(seed=0, validate_cache=True)
    )
    assert dataset.get_metadata()["by"].unique().to_list() == [winner]
    assert support.listing(base) == ["a"]
