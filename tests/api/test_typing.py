"""The package as type checkers and importers see it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataset_rt
import polars as pl
import pytest
from dataset_rt import (
    CachedDataset,
    CachedSample,
    CacheSource,
    CacheSourcesDatasetResult,
    CacheWriteResult,
    DatasetRuntime,
    Metadata,
    ReaderConfig,
    SampleBatch,
    _native,
)
from typing_extensions import assert_type

from tests import support

if TYPE_CHECKING:
    from tests.conftest import DatasetFactory

pytestmark = pytest.mark.core

PACKAGE = Path(dataset_rt.__file__).parent


@pytest.mark.rule("The native module is ours")
def test_the_native_module_is_ours() -> None:
    assert _native.__file__ is not None
    assert Path(_native.__file__).parent == PACKAGE
    assert _native.__version__ == dataset_rt.__version__ == metadata.version("dataset-rt")
    assert _native.build_profile in {"debug", "release"}
    # Another distribution has the same name; this one has what that one hasn't.
    assert hasattr(_native, "NativeRuntime")
    assert hasattr(dataset_rt, "SampleBatch")


@pytest.mark.rule("The package is typed")
def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_native.pyi").is_file()


def members(body: list[ast.stmt]) -> set[str]:
    """Names that a stub defines at one level."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


@pytest.mark.rule("The package is typed")
def test_the_stub_says_what_the_module_has() -> None:
    stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))
    listed = members(stub.body)
    public = {name for name in vars(_native) if not name.startswith("_")}
    assert public - listed == set()
    assert {name for name in listed if not hasattr(_native, name)} == set()
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            cls: Any = getattr(_native, node.name)
            missing = {name for name in members(node.body) if not hasattr(cls, name)}
            assert missing == set(), node.name
            extra = {name for name in vars(cls) if not name.startswith("_")} - members(node.body)
            assert extra == set(), node.name


@pytest.mark.rule("The package is typed")
def test_every_public_name_is_there_and_documented() -> None:
    assert len(set(dataset_rt.__all__)) == len(dataset_rt.__all__)
    for name in dataset_rt.__all__:
        value = getattr(dataset_rt, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
            for member, function in vars(value).items() if inspect.isclass(value) else ():
                if inspect.isfunction(function) and not member.startswith("_"):
                    assert inspect.getdoc(function), f"{name}.{member}"
    with pytest.raises(AttributeError):
        dataset_rt.nothing  # noqa: B018
    assert set(dataset_rt.__all__) <= set(dir(dataset_rt))


REFERENCE = """
CacheInput CacheSource CacheSourcesDatasetError CacheSourcesDatasetResult CacheSourcesDatasetSuccess
CacheWriteError CacheWriteResult CacheWriteSuccess CachedDataset CachedSample DatasetRuntime
ReaderConfig ShardCompression WriterConfig WriterProfilerConfig
""".split()  # noqa: SIM905
METHODS = """
set_epoch_len to_torch_iterable_dataset samples_metadata get_metadata set_samples_metadata
update_metadata cache_paths reader_config get_item iter_batches rows
""".split()  # noqa: SIM905


@pytest.mark.rule("The package is typed")
def test_documented_names_are_there() -> None:
    assert [name for name in REFERENCE if not hasattr(dataset_rt, name)] == []
    assert [name for name in METHODS if not hasattr(CachedDataset, name)] == []


@pytest.mark.rule("Torch is optional")
def test_the_torch_view_without_torch(make_dataset: DatasetFactory) -> None:
    try:
        importlib.import_module("torch")
    except ImportError:
        with pytest.raises(ImportError, match="PyTorch"):
            make_dataset(support.plain(2)).to_torch_iterable_dataset()
        with pytest.raises(ImportError, match="PyTorch"):
            dataset_rt.SizedTorchIterableDataset  # noqa: B018
    else:
        assert len(make_dataset(support.plain(2)).to_torch_iterable_dataset()) == 2


@pytest.mark.rule("The package is typed")
def test_types_of_what_users_call(
    make_dataset: DatasetFactory, runtime: DatasetRuntime, base: Path
) -> None:
    source: CacheSource = support.Source("s", support.plain(2))
    written = runtime.write_cache(source, base, writer_config=support.QUIET)
    assert_type(written, list[CacheWriteResult])
    outcome = runtime.from_cache_sources([], base, reader_config=ReaderConfig(seed=0))
    assert_type(outcome, CacheSourcesDatasetResult)
    dataset = make_dataset(support.plain(5))
    assert_type(iter(dataset), Iterator[CachedSample])
    assert_type(dataset.iter_batches(2), Iterator[SampleBatch])
    assert_type(dataset.rows[0], CachedSample)
    assert_type(dataset.rows[0:2], SampleBatch)
    assert_type(dataset.rows[[1, 2]], SampleBatch)
    assert_type(dataset.get_metadata(), pl.DataFrame)
    assert_type(dataset.cache_paths, list[Path])
    for sample in dataset:
        assert_type(sample.data, bytes)
        assert_type(sample.metadata, dict[str, bool | int | float | str])
        assert_type(sample.cache_id, int)
        kept: Metadata = sample.metadata
        assert kept == sample.metadata


@pytest.mark.rule("The native module is ours")
def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", dataset_rt.__version__)
