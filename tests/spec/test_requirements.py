"""Every MUST of the specification is proven by a vector or a test that exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"
TEXTS = ["format.md", "sampling.md", "versioning.md", "crash-model.md"]
MUST = re.compile(r"\bMUST\b")


def text_of(name: str) -> str:
    """The text on one line, without the sentence that defines the words."""
    text = re.sub(r"\s+", " ", (SPEC / name).read_text(encoding="utf-8"))
    return re.sub(r"The words MUST, .*? as in RFC 2119\.", "", text)


def requirements() -> list[dict[str, Any]]:
    table = json.loads((SPEC / "vectors/requirements.json").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = table["requirements"]
    return rows


def vectors() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        (SPEC / "vectors/index.json").read_text(encoding="utf-8")
    )["vectors"]
    return rows


def test_every_must_has_an_entry() -> None:
    left = {name: text_of(name) for name in TEXTS}
    stale = []
    for row in requirements():
        assert MUST.search(row["quote"]), row["quote"]
        if left[row["file"]].count(row["quote"]) != 1:
            stale.append(row["quote"])
        left[row["file"]] = left[row["file"]].replace(row["quote"], "")
    assert stale == []
    missing = [
        f"{name}: ...{text[max(0, found.start() - 80) : found.end() + 80]}..."
        for name, text in left.items()
        for found in MUST.finditer(text)
    ]
    assert missing == []


def test_every_entry_names_what_exists() -> None:
    known = {row["id"] for row in vectors()}
    missing = []
    for row in requirements():
        assert row["vectors"] or row["tests"], row["quote"]
        missing += [name for name in row["vectors"] if name not in known]
        for name in row["tests"]:
            path, _, test = name.partition("::")
            word = "fn" if path.endswith(".rs") else "def"
            source = ROOT / path
            if not source.is_file() or not re.search(rf"\b{word} {test}\(", source.read_text()):
                missing.append(name)
    assert missing == []


def test_every_check_has_a_vector() -> None:
    text = text_of("format.md")
    named = set(re.findall(r"\| ([MFIEAS][0-9]{1,2}) \|", text)) | {"A14", "T1", "D1"}
    assert len(named) == 70
    proven = {check for row in vectors() for check in row.get("checks", [])}
    assert named == proven


def test_every_error_code_has_a_vector() -> None:
    section = text_of("format.md").partition("## 12. Error codes")[2].partition("## 13.")[0]
    codes = set(re.findall(r"\| `([a-z_]+)` \|", section))
    assert codes == {row["expected"] for row in vectors() if row["kind"] == "invalid"}
