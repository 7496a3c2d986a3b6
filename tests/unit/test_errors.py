"""Every error is a builtin exception too, carries its parts, pickles, copies, and is documented."""

from __future__ import annotations

import copy
import errno
import pickle
import re
from pathlib import Path
from typing import Any

import dataset_rt
import pytest
from dataset_rt import errors

ERRORS: dict[type[errors.DatasetRTError], tuple[type[Exception], dict[str, Any]]] = {
    errors.ArgumentTypeError: (TypeError, {"argument": "n"}),
    errors.CacheDamagedError: (
        OSError,
        {
            "path": Path("/c/index.bin"),
            "code": "index_damaged",
            "offset": 64,
            "cache_id": 1,
            "sample_id": 2,
            "detail": "a checksum",
        },
    ),
    errors.CacheExistsError: (FileExistsError, {"path": Path("/c")}),
    errors.CacheFeatureError: (ValueError, {"path": Path("/c"), "features": ["zstd"]}),
    errors.CacheMismatchError: (ValueError, {"path": Path("/c")}),
    errors.CacheNotFoundError: (FileNotFoundError, {"path": Path("/c")}),
    errors.CacheVersionError: (ValueError, {"path": Path("/c"), "found": 2, "supported": 1}),
    errors.EmptySourceError: (ValueError, {"source": "s"}),
    errors.InternalError: (RuntimeError, {}),
    errors.InvalidArgumentError: (ValueError, {"argument": "n"}),
    errors.MetadataTableError: (ValueError, {"column": "weight", "row": 3}),
    errors.MetadataTableTypeError: (TypeError, {"column": "weight", "row": None}),
    errors.PolarsVersionError: (ImportError, {"installed": "3.0", "needed": "1.36 to 2.x"}),
    errors.SampleIndexError: (IndexError, {"index": 9, "length": 3}),
    errors.SampleTypeError: (
        TypeError,
        {"source": "s", "sample": 1, "field": "f", "expected": "int64", "found": "str"},
    ),
    errors.SampleValueError: (
        ValueError,
        {"source": "s", "sample": 1, "field": "f", "expected": "int64", "found": "2**63"},
    ),
    errors.SchemaConflictError: (ValueError, {"field": "f", "first": "a", "second": "b"}),
    errors.SourceNameError: (ValueError, {"name": "a/b", "reason": "a slash"}),
    errors.StorageError: (OSError, {"path": Path("/c"), "errno": errno.ENOSPC}),
    errors.UnknownSampleError: (KeyError, {"cache_id": 0, "sample_id": 7}),
    errors.WorkerProcessError: (RuntimeError, {}),
}

EACH = pytest.mark.parametrize(
    ("cls", "builtin", "parts"),
    [(cls, builtin, parts) for cls, (builtin, parts) in ERRORS.items()],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)


def _same(left: errors.DatasetRTError, right: errors.DatasetRTError) -> bool:
    return (
        type(left) is type(right)
        and str(left) == str(right)
        and left.args == right.args
        and left.__dict__ == right.__dict__
    )


def test_list_is_whole() -> None:
    classes = {getattr(errors, name) for name in errors.__all__}
    warnings = {errors.DatasetRTWarning, errors.CacheReuseWarning}
    assert classes == {*ERRORS, *warnings, errors.DatasetRTError}
    for name in errors.__all__:
        assert getattr(dataset_rt, name) is getattr(errors, name)
        assert name in dataset_rt.__all__


@EACH
def test_kind_and_parts(
    cls: type[errors.DatasetRTError], builtin: type[Exception], parts: dict[str, Any]
) -> None:
    error = cls("what, where", **parts)
    assert isinstance(error, errors.DatasetRTError)
    assert isinstance(error, builtin)
    assert str(error) == error.message == "what, where"
    for name, value in parts.items():
        assert getattr(error, name) == value
    bare = cls("what")
    for name in parts.keys() - {"errno"}:
        assert getattr(bare, name) is None


@EACH
def test_pickles_and_copies(
    cls: type[errors.DatasetRTError], builtin: type[Exception], parts: dict[str, Any]
) -> None:
    error = cls("what, where", **parts)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert _same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert _same(copy.copy(error), error)
    assert _same(copy.deepcopy(error), error)
    assert isinstance(pickle.loads(pickle.dumps(error)), builtin)


def test_unknown_part_is_refused() -> None:
    with pytest.raises(TypeError, match="EmptySourceError has no attribute 'path'"):
        errors.EmptySourceError("x", path="/c")


@pytest.mark.parametrize(
    ("cls", "number"),
    [
        (errors.CacheExistsError, errno.EEXIST),
        (errors.CacheNotFoundError, errno.ENOENT),
        (errors.CacheDamagedError, errno.EIO),
        (errors.StorageError, errno.EIO),
    ],
)
def test_os_errors_carry_errno_and_filename(cls: Any, number: int) -> None:
    error = cls("what", path="/a/b")
    assert error.errno == number
    assert error.filename == "/a/b"
    assert error.args == (number, "what")
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.errno, copied.filename) == (number, "/a/b")


def test_storage_error_keeps_the_systems_errno() -> None:
    error = errors.StorageError("no space", path="/a", errno=errno.ENOSPC)
    assert (error.errno, error.filename) == (errno.ENOSPC, "/a")
    assert errors.StorageError("no space", filename="/b").filename == "/b"
    with pytest.raises(OSError, match="no space"):
        raise error


def test_notes_survive_a_pickle() -> None:
    error: Any = errors.InvalidArgumentError("x", argument="n")
    error.__notes__ = ["said later"]
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["said later"]


def test_warnings() -> None:
    assert issubclass(errors.CacheReuseWarning, errors.DatasetRTWarning)
    assert issubclass(errors.DatasetRTWarning, UserWarning)
    warning = pickle.loads(pickle.dumps(errors.CacheReuseWarning("x")))
    assert str(warning) == "x"


def test_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE))
    assert {*rows, "DatasetRTError"} == set(errors.__all__)
    for cls, (builtin, parts) in ERRORS.items():
        assert rows[cls.__name__] == builtin.__name__
        row = next(line for line in page.splitlines() if line.startswith(f"| `{cls.__name__}`"))
        for name in parts.keys() - {"errno", "filename"}:
            assert f"`{name}`" in row
