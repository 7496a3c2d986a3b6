"""Reads the committed vectors back with the plain verifier in model/ and compares with what index.json expects.

    python check.py

Needs the standard library alone; validates manifests against manifest.schema.json too where `jsonschema` is installed.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from model.schema import Bits  # noqa: E402
from model.tagged import field_value, payload  # noqa: E402
from model.verify import verify  # noqa: E402
from model.verify_arrow import Refused  # noqa: E402


def schema_errors(manifest: dict) -> list[str]:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return []
    schema = json.loads((HERE.parent / "manifest.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return [e.message for e in Draft202012Validator(schema).iter_errors(manifest)]


def check_valid(path: Path) -> str | None:
    expected = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    try:
        members, payloads, columns = verify(path / "cache")
    except Refused as refused:
        return f"refused: {refused.code} ({refused.rule})"
    if errors := schema_errors(members):
        return f"schema: {errors[0]}"
    if (
        members["identity"] != expected["identity"]["value"]
        or str(len(payloads)) != expected["samples"]["value"]
    ):
        return "identity or number of samples differs"
    for row in expected["rows"]:
        i = int(row["index"]["value"])
        values = []
        for f, column in zip(members["fields"], columns, strict=True):
            value = column[i]
            values.append(
                field_value(
                    f["type"],
                    Bits(value) if f["type"] == "float64" and value is not None else value,
                )
            )
        if payload(payloads[i]) != row["payload"] or values != row["values"]:
            return f"sample {i} differs"
    return None


def check_invalid(path: Path, code: str) -> str | None:
    try:
        verify(path / "cache")
    except Refused as refused:
        return (
            None if refused.code == code else f"{refused.code} ({refused.rule}) in place of {code}"
        )
    return f"accepted in place of {code}"


def check_example() -> str | None:
    """The bytes shown in section 16 of format.md are those of the vector."""
    text = (HERE.parent / "format.md").read_text(encoding="utf-8").partition("\n## 16. Example")[2]
    root = HERE / "v1/valid/minimal/cache"
    for part in text.split("\n### ")[1:]:
        name = part.split()[1]
        raw = (root / name).read_bytes()
        if f"({len(raw)} bytes)" not in part.partition("\n")[0]:
            return f"length of {name}"
        if (
            name == "manifest.json"
            and re.sub(r"\n +", "", part.partition("    {")[2].partition("\n\n")[0]) + "\n"
            != raw.decode()[1:]
        ):
            return name
        for at, shown, more in re.findall(
            r"^    ([0-9a-f]{8})  ((?:[0-9a-f]{2} ?)+|00 \.\.\. 00) *(.*)$", part, re.M
        ):
            zeros = re.search(r"\(([0-9]+) zero bytes\)", more)
            want = bytes(int(zeros[1])) if zeros else bytes.fromhex(shown)
            if raw[int(at, 16) :][: len(want)] != want:
                return f"{name} at {at}"
    return None


def main() -> int:
    index = json.loads((HERE / "index.json").read_text(encoding="utf-8"))
    failed = 0
    if fault := check_example():
        failed += 1
        print(f"format.md, section 16: {fault}")
    for row in index["vectors"]:
        path = HERE / row["path"]
        fault = None
        if row["kind"] == "valid":
            fault = check_valid(path)
        elif row["kind"] == "invalid":
            fault = check_invalid(path, row["expected"])
        elif json.loads(path.read_text(encoding="utf-8"))["id"] != row["id"]:
            fault = "another id"
        if fault:
            failed += 1
            print(f"{row['id']}: {fault}")
    listed = {row["path"] for row in index["vectors"]}
    there = {
        p.relative_to(HERE).as_posix()
        for kind in ("valid", "invalid", "units")
        for p in (HERE / "v1" / kind).iterdir()
    }
    for path in sorted(listed ^ there):
        failed += 1
        print(f"{path}: in index.json or on disk alone")
    print(f"{len(index['vectors'])} vectors, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
