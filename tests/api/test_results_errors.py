"""Results and errors as values: fields, attributes, pickles."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CachedDataset, CacheWriteError, CacheWriteSuccess, DatasetRuntime, errors
from dataset_rt.errors import (
    ArgumentTypeError,
    CacheDamagedError,
    DatasetRTError,
    InvalidArgumentError,
    StorageError,
)

from tests import support
from tests.support import QUIET, Source

if TYPE_CHECKING:
    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core

CLASSES: list[type[DatasetRTError]] = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value)
    and issubclass(value, DatasetRTError)
    and value is not DatasetRTError
    and not value.__name__.startswith("_")
]
BUILTINS = {
    "ArgumentTypeError": TypeError,
    "CacheDamagedError": OSError,
    "CacheExistsError": FileExistsError,
    "CacheFeatureError": ValueError,
    "CacheMismatchError": ValueError,
    "CacheNotFoundError": FileNotFoundError,
    "CacheVersionError": ValueError,
    "EmptySourceError": ValueError,
    "InternalError": RuntimeError,
    "InvalidArgumentError": ValueError,
    "MetadataTableError": ValueError,
    "MetadataTableTypeError": TypeError,
    "PolarsVersionError": ImportError,
    "SampleIndexError": IndexError,
    "SampleTypeError": TypeError,
    "SampleValueError": ValueError,
    "SchemaConflictError": ValueError,
    "SourceNameError": ValueError,
    "StorageError": OSError,
    "UnknownSampleError": KeyError,
    "WorkerProcessError": RuntimeError,
}


@pytest.mark.rule("Every error has one base")
def test_each_error_is_a_builtin_too() -> None:
    assert {cls.__name__ for cls in CLASSES} == BUILTINS.keys()
    for cls in CLASSES:
        assert issubclass(cls, BUILTINS[cls.__name__])


@pytest.mark.rule("Errors carry their parts")
@pytest.mark.parametrize("cls", CLASSES)
def test_errors_pickle_with_their_parts(cls: type[DatasetRTError]) -> None:
    values: dict[str, Any] = {
        name: f"the {name}" for name in cls._parts if name not in {"path", "errno", "filename"}
    }
    if "path" in cls._parts:
        values["path"] = Path("/a/b")
    if "errno" in cls._parts:
        values |= {"errno": 28, "filename": "/a/b"}
    error = cls("what and where", **values)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is cls
        assert str(again) == "what and where"
        for name, value in values.items():
            assert getattr(again, name) == value
    if issubclass(cls, OSError):
        assert isinstance(error, OSError)
        assert error.errno is not None
        assert str(error.filename) == "/a/b"


@pytest.mark.rule("Errors carry their parts")
def test_a_real_error_pickles(make_cache: CacheFactory, make_dataset: DatasetFactory) -> None:
    cache = make_cache(support.plain(5))
    support.flip(cache / "shards" / "000000.bin", 64)
    dataset = make_dataset(cache, shuffle=False)
    with pytest.raises(CacheDamagedError) as caught:
        next(iter(dataset))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.code, again.cache_id, again.sample_id) == ("record_damaged", 0, 0)
    assert again.path == cache / "shards" / "000000.bin"


@pytest.mark.rule("Every error has one base")
def test_the_system_refuses(runtime: DatasetRuntime, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageError) as caught:
        runtime.write_cache(Source("s", support.plain(2)), blocked / "base", writer_config=QUIET)
    assert isinstance(caught.value, OSError)
    assert caught.value.errno
    assert str(blocked) in str(caught.value)


@pytest.mark.rule("Results unpack into two fields", "Every result says why")
def test_results_are_pairs(runtime: DatasetRuntime, base: Path) -> None:
    results = runtime.write_cache(
        [Source("a", support.plain(2)), Source("b", [])], base, writer_config=QUIET
    )
    seen: list[Any] = []
    for result in results:
        match result:
            case CacheWriteSuccess(name, path):
                seen.append((name, path))
            case CacheWriteError(name, message):
                seen.append((name, message))
    assert seen == [("a", base / "a"), ("b", results[1][1])]
    first, second = results
    assert isinstance(first, CacheWriteSuccess)
    assert isinstance(second, CacheWriteError)
    assert first == ("a", base / "a")
    assert (first._fields, second._fields) == (("source_name", "path"), ("source_name", "message"))
    assert (first.status, second.status) == ("written", "error")
    assert first.reason
    assert second.reason
    for part in ("a", str(base / "a"), "written", first.reason):
        assert part in repr(first)
    assert second.message in repr(second)


@pytest.mark.rule("Results pickle")
def test_results_pickle(runtime: DatasetRuntime, base: Path) -> None:
    class LocalError(Exception):
        """No pickle finds this class."""

    def failing() -> Any:
        yield from support.plain(2)
        raise LocalError("here")

    results = runtime.write_cache(
        [Source("a", support.plain(2)), Source("b", []), Source("c", failing())],
        base,
        writer_config=QUIET,
    )
    for result in results:
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert again == result
            assert type(again) is type(result)
            assert (again.status, again.reason) == (result.status, result.reason)
    assert isinstance(results[2], CacheWriteError)
    assert isinstance(results[2].cause, LocalError)
    assert pickle.loads(pickle.dumps(results[1])).cause is not None
    assert pickle.loads(pickle.dumps(results[2])).cause is None


@pytest.mark.rule("Arguments are checked")
def test_wrong_arguments(runtime: DatasetRuntime, make_dataset: DatasetFactory, base: Path) -> None:
    dataset = make_dataset(support.plain(5))
    wrong: Any
    for wrong in (None, "1", 1.0, True):
        with pytest.raises(ArgumentTypeError):
            dataset.set_epoch_len(wrong)
        with pytest.raises(ArgumentTypeError):
            dataset.iter_batches(wrong)
        with pytest.raises(ArgumentTypeError):
            dataset.get_item(wrong, 0)
        with pytest.raises(ArgumentTypeError):
            dataset.update_metadata(dataset.get_metadata(), stream=wrong)
    for number in (0, -1):
        with pytest.raises(InvalidArgumentError) as caught:
            dataset.set_epoch_len(number)
        assert caught.value.argument == "epoch_len"
        assert str(number) in str(caught.value)
        with pytest.raises(InvalidArgumentError):
            dataset.iter_batches(number)
    wrong = "yes"
    with pytest.raises(ArgumentTypeError):
        dataset.iter_batches(2, drop_last=wrong)
    for wrong in (None, {}, "x"):
        with pytest.raises(ArgumentTypeError):
            runtime.write_cache(Source("x", support.plain(1)), base, writer_config=wrong)
        with pytest.raises(ArgumentTypeError):
            runtime.cached_dataset([base], reader_config=wrong)


@pytest.mark.rule("Datasets come from a runtime")
def test_a_dataset_is_not_made_directly() -> None:
    constructor: Any = CachedDataset
    for arguments in ((), ("path",)):
        with pytest.raises(TypeError, match=r"cached_dataset.*from_cache_sources"):
            constructor(*arguments)


@pytest.mark.rule("The number of workers is explicit", "Arguments are checked")
def test_number_of_workers() -> None:
    constructor: Any = DatasetRuntime
    assert DatasetRuntime(num_workers=3).num_workers == 3
    for arguments in ((), (2,)):
        with pytest.raises(TypeError):
            constructor(*arguments)
    for number in (0, -1):
        with pytest.raises(InvalidArgumentError) as caught:
            DatasetRuntime(num_workers=number)
        assert caught.value.argument == "num_workers"
    for wrong in (None, 2.0, "2", True):
        with pytest.raises(ArgumentTypeError):
            constructor(num_workers=wrong)
