"""The document of a cache: what ``expected.json`` of a vector holds."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from dataset_rt_reader.cache import Cache
from dataset_rt_reader.sampling.stream import DrawStream, Mode
from dataset_rt_reader.verification import verify

from .tagged import tag, tag_payload, tags

if TYPE_CHECKING:
    from pathlib import Path

    from dataset_rt_reader.errors import CacheError
    from dataset_rt_reader.manifest import FieldType
    from dataset_rt_reader.metadata import Value

    from .tagged import Json

_SHOWN_WHOLE = 32
_SHOWN_EACH = 8


def refusal(error: CacheError) -> Json:
    """Return the document of a refused cache."""
    return {"outcome": "invalid", "code": error.code.value}


def content(root: Path, *, all_rows: bool = False) -> Json:
    """Verify the whole cache and return its document.

    Raises:
        CacheError: the cache is refused.

    """
    verify(root)
    with Cache(root) as cache:
        shown = range(len(cache)) if all_rows else _shown(len(cache))
        payloads = hashlib.sha256()
        for number in range(len(cache)):
            payload = cache.payload(number)
            payloads.update(len(payload).to_bytes(8, "little") + payload)
        fields: list[Json] = [
            {
                "name": tag("utf8", field.name),
                "type": tag("utf8", field.type.value),
                "nullable": tag("bool", field.nullable),
            }
            for field in cache.fields
        ]
        rows: list[Json] = [_row(cache, number) for number in shown]
        return {
            "outcome": "valid",
            "identity": tag("bytes", cache.identity),
            "samples": tag("uint64", len(cache)),
            "fields": fields,
            "payloads_sha256": tag("bytes", payloads.digest()),
            "rows": rows,
        }


def _shown(samples: int) -> list[int]:
    if samples <= _SHOWN_WHOLE:
        return list(range(samples))
    starts = (0, samples // 2, samples - _SHOWN_EACH)
    return [start + i for start in starts for i in range(_SHOWN_EACH)]


def _row(cache: Cache, number: int) -> Json:
    sample = cache[number]
    values: list[Json] = [_value(field.type, sample.metadata[field.name]) for field in cache.fields]
    return {
        "index": tag("uint64", number),
        "payload": tag_payload(sample.payload),
        "values": values,
    }


def _value(kind: FieldType, value: Value) -> Json:
    return tag("null" if value is None else kind.value, value)


def order(root: Path, request: dict[str, object]) -> Json:
    """Return the rows of a window over the cache in folder ``root``.

    Raises:
        CacheError: the cache can't be opened.
        ValueError: ``request`` has a wrong member.

    """
    numbers = {}
    for name in ("seed", "stream", "start", "count"):
        text = request.get(name)
        if not isinstance(text, str) or not text.isascii() or not text.isdigit():
            raise ValueError(f"{name} must be a text of decimal digits")
        if len(text) > 20:
            raise ValueError(f"{name} has more than 20 digits")
        numbers[name] = int(text)
    if set(request) != {"mode", *numbers}:
        raise ValueError("members must be mode, seed, stream, start and count")
    names = {mode.value: mode for mode in Mode}
    mode = names.get(str(request["mode"]))
    if mode is None:
        raise ValueError(f"mode must be one of {', '.join(names)}")
    with Cache(root) as cache:
        weights = None
        if mode in {Mode.WEIGHTED, Mode.WEIGHTED_ORDER}:
            weights = [float(row + 1) for row in range(len(cache))]
        stream = DrawStream(
            mode, len(cache), seed=numbers["seed"], stream=numbers["stream"], weights=weights
        )
        return tags("uint64", stream.window(numbers["start"], numbers["count"]))
