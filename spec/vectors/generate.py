"""Writes spec/vectors/v1 and index.json from the text of the specification alone.

    python generate.py            writes them
    python generate.py --check    compares what is there with what would be written; exit code 1 where it differs

Needs Python 3.11 or later and the Arrow library pinned below: one vector holds bytes that library wrote. Nothing here is random
and nothing depends on the clock, so two runs give equal bytes.
"""

import hashlib
import struct
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from cases import invalid, units_format, units_sampling, valid  # noqa: E402
from model.rules import CODES, section_of  # noqa: E402
from model.schema import Bits  # noqa: E402
from model.tagged import dump, field_value, payload, tag  # noqa: E402
from model.verify import verify  # noqa: E402
from model.verify_arrow import Refused  # noqa: E402

PYARROW = "26.0.1"
SINCE = "1.0"  # of vectors that have no entry of their own: a later one names the text it came with
SHOWN_ROWS = 32


def expected_valid(cache, members: dict) -> dict:
    """Everything a reader must deliver; of long caches the first and last rows and digests of all."""
    rows = len(cache.payloads)
    shown = (
        range(rows)
        if rows <= SHOWN_ROWS
        else [*range(8), *range(rows // 2, rows // 2 + 8), *range(rows - 8, rows)]
    )
    digest = hashlib.sha256()
    for p in cache.payloads:
        digest.update(struct.pack("<Q", len(p)) + p)
    fields = [
        {
            "name": tag("utf8", f.name),
            "type": tag("utf8", f.type),
            "nullable": tag("bool", f.nullable),
        }
        for f in cache.fields
    ]
    samples = []
    for i in shown:
        values = [
            field_value(f.type, c[i]) for f, c in zip(cache.fields, cache.columns, strict=True)
        ]
        samples.append(
            {"index": tag("uint64", i), "payload": payload(cache.payloads[i]), "values": values}
        )
    return {
        "outcome": "valid",
        "identity": tag("bytes", bytes.fromhex(members["identity"])),
        "samples": tag("uint64", rows),
        "fields": fields,
        "payloads_sha256": tag("bytes", digest.digest()),
        "rows": samples,
    }


def written(root: Path, files: dict[str, bytes]) -> Path:
    for name, raw in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    return root


def plain(column: list) -> list:
    """Floats as patterns, to compare NaNs."""
    from model.sampling import bits

    return [
        v.bits if isinstance(v, Bits) else bits(v) if isinstance(v, float) else v for v in column
    ]


def valid_vector(name: str, out: dict, index: list) -> None:
    build, sections = valid.CASES[name]
    cache = build()
    files = cache.build()
    with tempfile.TemporaryDirectory() as scratch:
        members, payloads, columns = verify(written(Path(scratch), files))
    assert payloads == cache.payloads and columns == [plain(c) for c in cache.columns], name
    if name != "liberal-metadata":  # Arrow libraries look at the slots of nulls when they validate
        read_by_arrow(files["metadata.arrow"], len(payloads))
    base = f"v1/valid/{name}"
    out |= {f"{base}/cache/{k}": v for k, v in files.items()}
    out[f"{base}/expected.json"] = dump(expected_valid(cache, members))
    index.append(
        {
            "id": f"valid/{name}",
            "kind": "valid",
            "path": base,
            "sections": [f"format {s}" for s in sections],
            "since": SINCE,
            "expected": "valid",
        }
    )


def read_by_arrow(raw: bytes, rows: int) -> None:
    import pyarrow as pa

    table = pa.ipc.open_file(pa.py_buffer(raw)).read_all()
    table.validate(full=True)
    assert table.num_rows == rows


def invalid_vector(name: str, out: dict, index: list) -> None:
    rule, build = invalid.CASES[name]
    files = build()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            verify(written(Path(scratch), files))
            raise AssertionError(f"{name} was accepted")
        except Refused as refused:
            assert (refused.rule, refused.code) == (rule, CODES[rule]), (name, refused)
    base = f"v1/invalid/{name}"
    out |= {f"{base}/cache/{k}": v for k, v in files.items()}
    out[f"{base}/expected.json"] = dump({"outcome": "invalid", "code": CODES[rule], "check": rule})
    sections = [f"format {section_of(rule)}"]
    row = {
        "id": f"invalid/{name}",
        "kind": "invalid",
        "path": base,
        "sections": sections,
        "checks": [rule],
        "since": SINCE,
    }
    index.append(row | {"expected": CODES[rule]})


def unit_vector(name: str, build, sections: list[str], out: dict, index: list) -> None:
    sections = [s if s.startswith("sampling") else f"format {s}" for s in sections]
    path = f"v1/units/{name}.json"
    note = " ".join((build.__doc__ or "").split())
    out[path] = dump(
        {"id": f"unit/{name}", "sections": sections}
        | ({"note": note} if note else {})
        | {"cases": build()}
    )
    index.append(
        {
            "id": f"unit/{name}",
            "kind": "unit",
            "path": path,
            "sections": sections,
            "since": SINCE,
            "expected": "equal",
        }
    )


def make() -> dict[str, bytes]:
    """Every file, by its path below this directory."""
    import pyarrow as pa

    assert pa.__version__ == PYARROW, f"pyarrow {pa.__version__} is installed, {PYARROW} is needed"
    out: dict[str, bytes] = {}
    index: list[dict] = []
    for name, (build, sections) in {**units_format.CASES, **units_sampling.CASES}.items():
        unit_vector(name, build, sections, out, index)
    for name in valid.CASES:
        valid_vector(name, out, index)
    for name in invalid.CASES:
        invalid_vector(name, out, index)
    assert {r for row in index for r in row.get("checks", [])} == set(CODES), (
        "a check without a vector"
    )
    out["index.json"] = dump({"format": "dataset_rt.vectors", "version": 1, "vectors": index})
    return out


def present() -> dict[str, bytes]:
    found = [HERE / "index.json", *(p for p in (HERE / "v1").rglob("*") if p.is_file())]
    return {p.relative_to(HERE).as_posix(): p.read_bytes() for p in found if p.exists()}


def main() -> int:
    made, there = make(), present()
    changed = sorted(k for k in made.keys() | there.keys() if made.get(k) != there.get(k))
    if "--check" in sys.argv[1:]:
        for name in changed:
            print(f"differs: {name}")
        return 1 if changed else 0
    for name in there.keys() - made.keys():
        (HERE / name).unlink()
    written(HERE, made)
    print(f"{len(made)} files, {sum(map(len, made.values()))} bytes, {len(changed)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
