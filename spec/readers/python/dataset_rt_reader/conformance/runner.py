"""Running every vector of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_rt_reader.errors import CacheError
from dataset_rt_reader.verification import verify

from . import units_format as fmt
from . import units_sampling as smp
from .documents import content
from .tagged import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .tagged import Json

_UNITS: dict[str, Callable[[Inputs, Path], Json]] = {
    "crc32c": fmt.crc,
    "block-sums": fmt.sums,
    "lz4-blocks": fmt.lz4,
    "shard-parts": fmt.shard_parts,
    "index-entries": fmt.index_entry,
    "index-headers": fmt.index_header,
    "rotation": fmt.rotation,
    "batches": fmt.batches,
    "identity": fmt.identity,
    "identity-by-rule": fmt.identity_by_rule,
    "shard-names": fmt.shard_name,
    "manifest-tail": fmt.manifest_tail,
    "philox": smp.philox,
    "blocks": smp.blocks,
    "scale": smp.scale,
    "ordered": smp.ordered,
    "tickets": smp.ticket_table,
    "draws": smp.draws,
    "draws-equal": smp.draws,
    "modes": smp.mode,
    "permutation-number": smp.number_of_permutation,
    "permutation-small": smp.permutation,
    "permutation-large": smp.permutation,
    "permutation-points": smp.permutation_points,
    "permutation-positions": smp.permutation_positions,
    "round-keys": smp.keys_of_rounds,
    "mix": smp.mixed,
    "exponential": smp.variate,
    "race": smp.race_key,
    "weighted-order": smp.weighted_order,
    "weighted-order-positions": smp.weighted_order_positions,
    "ranks": smp.ranks,
    "workers": smp.workers,
    "table-digest": smp.table,
    "caches-digest": smp.caches,
    "position": smp.position,
    "position-ranges": smp.position,
}


def run(folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Run every vector of ``folder/index.json``.

    Yields:
        kind, id, and what failed or ``None``; files that the index doesn't list come last.

    """
    vectors = _load(folder / "index.json")["vectors"]
    for vector in vectors:
        yield vector["kind"], vector["id"], _failure(folder, vector)
    listed = {vector["path"] for vector in vectors}
    for version in sorted(folder.glob("v[0-9]*")):
        for kind, pattern in (("unit", "units/*"), ("valid", "valid/*"), ("invalid", "invalid/*")):
            for path in sorted(version.glob(pattern)):
                name = path.relative_to(folder).as_posix()
                if name not in listed:
                    yield kind, name, "isn't listed in index.json"


def _failure(folder: Path, vector: dict[str, Any]) -> str | None:
    path = folder / str(vector["path"])
    if not path.exists():
        return "its path is missing"
    kind = vector["kind"]
    try:
        if kind == "unit":
            return _unit(folder, path, str(vector["id"]))
        if kind == "valid":
            return _valid(path)
        if kind == "invalid":
            return _invalid(path, vector)
    except CacheError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001 - any other error is a failed vector
        return f"{type(error).__name__}: {error}"
    return f"kind {kind!r} is unknown"


def _unit(folder: Path, path: Path, name: str) -> str | None:
    compute = _UNITS.get(name.removeprefix("unit/"))
    if compute is None:
        return "this reader doesn't know the unit"
    for number, case in enumerate(_load(path)["cases"]):
        found = compute(Inputs(case["in"]), folder)
        if found != case["out"]:
            return f"case {number}: {json.dumps(found)[:400]}"
    return None


def _valid(path: Path) -> str | None:
    expected, found = _load(path / "expected.json"), content(path / "cache")
    if not isinstance(found, dict):
        return "no document"
    wrong = [name for name in expected | found if expected.get(name) != found.get(name)]
    return f"other members: {', '.join(wrong)}" if wrong else None


def _invalid(path: Path, vector: dict[str, Any]) -> str | None:
    expected = _load(path / "expected.json")
    if expected["code"] != vector["expected"]:
        return f"expected.json has {expected['code']}, index.json {vector['expected']}"
    try:
        verify(path / "cache")
    except CacheError as error:
        if error.code.value != expected["code"]:
            return f"{error.code.value} instead of {expected['code']}: {error}"
        if error.check != expected["check"]:
            return f"check {error.check} instead of {expected['check']}: {error}"
        return None
    return f"accepted instead of {expected['code']}"


def _load(path: Path) -> dict[str, Any]:
    with Path(path).open(encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document
