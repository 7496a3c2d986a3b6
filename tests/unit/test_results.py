"""Results unpack, match and compare as their two fields, and carry more beside them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from dataset_rt import (
    CacheInput,
    CacheSourcesDatasetError,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteResult,
    CacheWriteSuccess,
)


class Unpicklable(Exception):  # noqa: N818 - not raised
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


SUCCESS = CacheWriteSuccess("a", Path("/c/a"), status="reused", reason="same fingerprint")
ERROR = CacheWriteError("b", "no samples", reason="empty", cause=ValueError("why"))


def _described(result: CacheWriteResult) -> str:
    match result:
        case CacheWriteSuccess(source_name, path):
            return f"{source_name} at {path}"
        case CacheWriteError(source_name, message):
            return f"{source_name}: {message}"


def test_match_and_unpack() -> None:
    assert _described(SUCCESS) == "a at /c/a"
    assert _described(ERROR) == "b: no samples"
    name, path = SUCCESS
    assert (name, path) == ("a", Path("/c/a"))
    name, message = ERROR
    assert (name, message) == ("b", "no samples")
    assert len(SUCCESS) == len(ERROR) == 2
    assert SUCCESS._fields == ("source_name", "path")


def test_attributes_beside_the_fields() -> None:
    assert (SUCCESS.status, SUCCESS.reason) == ("reused", "same fingerprint")
    assert (ERROR.status, ERROR.reason) == ("error", "empty")
    assert isinstance(ERROR.cause, ValueError)
    plain = CacheWriteSuccess("a", Path("/c/a"))
    assert (plain.status, plain.reason) == ("written", "")
    assert CacheWriteError("b", "x", cause=KeyError("k")).reason == "KeyError"


def test_compare_by_fields() -> None:
    assert CacheWriteSuccess("a", Path("/c/a")) == SUCCESS
    assert CacheWriteSuccess("b", Path("/c/a")) != SUCCESS
    assert CacheWriteError("b", "no samples") == ERROR
    assert hash(CacheWriteError("b", "no samples")) == hash(ERROR)


def test_replace_keeps_the_rest() -> None:
    changed = SUCCESS._replace(source_name="z")
    assert (changed.source_name, changed.status, changed.reason) == (
        "z",
        "reused",
        "same fingerprint",
    )
    assert ERROR._replace(message="m").cause is ERROR.cause


@pytest.mark.parametrize("result", [SUCCESS, ERROR], ids=["success", "error"])
def test_pickle_and_copy(result: CacheWriteResult) -> None:
    for copied in (
        pickle.loads(pickle.dumps(result)),
        copy.copy(result),
        copy.deepcopy(result),
    ):
        assert copied == result
        assert type(copied) is type(result)
        assert (copied.status, copied.reason) == (result.status, result.reason)


def test_cause_pickles_if_it_can() -> None:
    kept = pickle.loads(pickle.dumps(ERROR)).cause
    assert isinstance(kept, ValueError)
    assert kept.args == ("why",)
    lost = CacheWriteError("b", "m", cause=Unpicklable(1, 2))
    arrived = pickle.loads(pickle.dumps(lost))
    assert arrived == lost
    assert arrived.cause is None
    assert arrived.reason == "Unpicklable"
    assert copy.deepcopy(lost).cause is lost.cause


def test_dataset_error() -> None:
    result = CacheSourcesDatasetError([SUCCESS, ERROR], "nothing", cause=ValueError("v"))
    match result:
        case CacheSourcesDatasetError(results, message):
            assert results == [SUCCESS, ERROR]
            assert message == "nothing"
    arrived = pickle.loads(pickle.dumps(result))
    assert arrived == result
    assert isinstance(arrived.cause, ValueError)
    assert CacheSourcesDatasetError([], "m").cause is None
    assert CacheSourcesDatasetSuccess._fields == ("dataset", "results")


def test_repr_is_short_and_says_why() -> None:
    assert "same fingerprint" in repr(SUCCESS)
    assert "empty" in repr(ERROR)
    many = CacheSourcesDatasetError([ERROR] * 1000, "nothing")
    assert repr(many) == "CacheSourcesDatasetError('nothing', 1000 sources, 1000 failed)"
    assert repr(CacheInput(b"x" * 1000, {"k": 1})) == (
        "CacheInput(bytes of 1000 bytes, metadata={'k': 1})"
    )
