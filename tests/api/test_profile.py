"""The profiler's summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CacheInput, ShardCompression, WriterConfig, WriterProfilerConfig

from tests import support
from tests.support import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dataset_rt import DatasetRuntime

pytestmark = pytest.mark.core

STAGES = ("python_next", "python_extract", "ingress_wait", "publish")


def profiled(path: Path) -> WriterConfig:
    return WriterConfig(
        show_progress=False,
        shard_compression=ShardCompression(algo="lz4"),
        profiler=WriterProfilerConfig(enabled=True, path=path),
    )


def keys_of(value: Any) -> set[str]:
    """Every key at every level."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    return set()


def read(path: Path) -> Any:
    summary = json.loads(path.read_text(encoding="utf-8"))
    found = " ".join(sorted(keys_of(summary)))
    for stage in STAGES:
        assert stage in found
    return summary


@pytest.mark.rule("The profiler writes JSON")
def test_a_summary(runtime: DatasetRuntime, base: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text("of an earlier run")
    sources = [Source("a", support.numbered(2000, 500)), Source("b", support.numbered(10))]
    results = runtime.write_cache(sources, base, writer_config=profiled(path))
    assert [type(result).__name__ for result in results] == ["CacheWriteSuccess"] * 2
    summary = read(path)
    words = " ".join(keys_of(summary))
    for stage in ("compress", "write", "metadata", "finish"):
        assert stage in words
    assert "2010" in path.read_text(encoding="utf-8")


@pytest.mark.rule("The profiler writes JSON")
def test_a_summary_of_failures(runtime: DatasetRuntime, base: Path, tmp_path: Path) -> None:
    def failing() -> Iterator[CacheInput]:
        yield from support.plain(1000)
        raise RuntimeError("on the way")

    path = tmp_path / "profile.json"
    support.fail(runtime.write_cache(Source("a", failing()), base, writer_config=profiled(path)))
    read(path)
    path.unlink()
    support.fail(runtime.write_cache(Source("../a", []), base, writer_config=profiled(path)))
    json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.rule("The profiler writes JSON")
def test_a_summary_of_an_interrupted_write(
    runtime: DatasetRuntime, base: Path, tmp_path: Path
) -> None:
    def interrupted() -> Iterator[CacheInput]:
        yield from support.plain(1000)
        raise KeyboardInterrupt

    path = tmp_path / "profile.json"
    with pytest.raises(KeyboardInterrupt):
        runtime.write_cache(Source("a", interrupted()), base, writer_config=profiled(path))
    read(path)
    assert support.listing(base) == []


@pytest.mark.rule("The profiler writes JSON", "Paths are taken literally")
def test_the_default_path_is_relative_to_the_call(
    runtime: DatasetRuntime, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = WriterConfig(show_progress=False, profiler=WriterProfilerConfig(enabled=True))
    support.write(runtime, base, support.plain(5), config=config)
    read(tmp_path / "dataset_rt_profile.json")
    support.write(runtime, base, support.plain(5), "quiet")
    assert support.listing(tmp_path) == ["base", "dataset_rt_profile.json"]
