"""Fixtures of all tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from dataset_rt import DatasetRuntime, ReaderConfig

from tests import support

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dataset_rt import CachedDataset, WriterConfig


class CacheFactory(Protocol):
    """Writes a source and returns its folder."""

    def __call__(
        self, samples: Iterable[Any], name: str = "s", config: WriterConfig = support.QUIET
    ) -> Path: ...


class DatasetFactory(Protocol):
    """Opens caches; samples in place of paths are written first."""

    def __call__(
        self, source: Path | list[Path] | list[Any], *, seed: int = 0, **config: Any
    ) -> CachedDataset: ...


@pytest.fixture(scope="session")
def runtime() -> DatasetRuntime:
    return DatasetRuntime(num_workers=2)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base folder that doesn't exist yet."""
    return tmp_path / "base"


@pytest.fixture
def make_cache(runtime: DatasetRuntime, base: Path) -> CacheFactory:
    def make(samples: Iterable[Any], name: str = "s", config: WriterConfig = support.QUIET) -> Path:
        return support.write(runtime, base, samples, name, config)

    return make


@pytest.fixture
def make_dataset(runtime: DatasetRuntime, make_cache: CacheFactory) -> DatasetFactory:
    made = 0

    def make(
        source: Path | list[Path] | list[Any], *, seed: int = 0, **config: Any
    ) -> CachedDataset:
        nonlocal made
        if not isinstance(source, list):
            paths = [source]
        elif source and hasattr(source[0], "joinpath"):
            paths = source
        else:
            paths = [make_cache(source, name=f"made-{made}")]
            made += 1
        return runtime.cached_dataset(paths, reader_config=ReaderConfig(seed=seed, **config))

    return make
