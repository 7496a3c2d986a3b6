from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from dataset_rt_reader.__main__ import main

from .sealing import vectors

if TYPE_CHECKING:
    from pathlib import Path

VALID = vectors() / "v1/valid"
INVALID = vectors() / "v1/invalid"


def _output(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - parsed JSON
    return json.loads(capsys.readouterr().out)


def test_a_valid_cache_gives_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VALID / "nullable/cache")]) == 0
    out = capsys.readouterr().out
    assert out.startswith('{"outcome": "valid"')
    assert json.loads(out) == json.loads((VALID / "nullable/expected.json").read_bytes())


def test_all_rows_shows_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all-rows", str(VALID / "many-samples/cache")]) == 0
    rows = _output(capsys)["rows"]
    assert [int(row["index"]["value"]) for row in rows] == list(range(5000))


def test_a_refused_cache_gives_its_code_and_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(INVALID / "shard-missing/cache")]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"outcome": "invalid", "code": "file_missing"}
    assert "shards/" in captured.err


def test_batch_answers_each_folder_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (
        VALID / "minimal/cache",
        INVALID / "identity-other/cache",
        "",
        VALID / "wide/cache",
        "/nowhere",
    )
    given = io.TextIOWrapper(io.BytesIO("\n".join(map(str, folders)).encode() + b"\n"))
    monkeypatch.setattr(sys, "stdin", given)
    assert main(["--batch"]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    outcomes = [document.get("code", document["outcome"]) for document in documents]
    assert outcomes == ["valid", "identity_mismatch", "valid", "file_missing"]


@pytest.mark.parametrize("mode", ["ordered", "weighted", "permutation", "weighted_order"])
def test_order_gives_the_rows_of_a_window(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    request = {"mode": mode, "seed": "42", "stream": "0", "start": "0", "count": "13"}
    assert main([str(VALID / "many-shards/cache"), "--order", json.dumps(request)]) == 0
    document = _output(capsys)
    rows = [int(text) for text in document["values"]]
    assert document["type"] == "uint64"
    assert len(rows) == 13
    if mode != "weighted":
        assert sorted(rows) == list(range(13))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--batch", "cache"],
        ["--vectors", "somewhere", "cache"],
        [str(VALID / "minimal/cache"), "--order", "{}"],
        [str(VALID / "minimal/cache"), "--order", "["],
        ["--nothing"],
    ],
)
def test_wrong_arguments_have_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


def test_vectors_that_are_missing_or_not_listed_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = {"id": "unit/mix", "kind": "unit", "path": "v1/units/mix.json", "expected": "equal"}
    (tmp_path / "index.json").write_text(json.dumps({"vectors": [unit]}), encoding="utf-8")
    (tmp_path / "v1/units").mkdir(parents=True)
    (tmp_path / "v1/units/other.json").write_text("{}", encoding="utf-8")
    assert main(["--vectors", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "unit/mix: its path is missing" in out
    assert "v1/units/other.json: isn't listed" in out
    assert "0 vectors pass" in out
