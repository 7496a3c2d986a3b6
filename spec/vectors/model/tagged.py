"""Tagged JSON: every scalar is {"type": ..., "value": text}; a list of one type has "values"."""

import hashlib
import json

from .sampling import bits
from .schema import Bits

_SHOWN_BYTES = 256


def tag(type_: str, value) -> dict:
    return {"type": type_, "value": _text(type_, value)}


def tags(type_: str, values) -> dict:
    return {"type": type_, "values": [_text(type_, v) for v in values]}


def _text(type_: str, value) -> str:
    if type_ == "bool":
        return "true" if value else "false"
    if type_ == "float64":
        return f"{value.bits if isinstance(value, Bits) else bits(value):016x}"
    if type_ == "bytes":
        return value.hex()
    if type_ in ("int64", "uint64", "uint128"):
        assert type(value) is int
        return str(value)
    assert type_ == "utf8" and isinstance(value, str)
    return value


def field_value(type_: str, value) -> dict:
    return {"type": "null", "value": ""} if value is None else tag(type_, value)


def payload(raw: bytes) -> dict:
    """Short payloads whole, long ones by length and SHA-256."""
    if len(raw) <= _SHOWN_BYTES:
        return tag("bytes", raw)
    return {"type": "bytes_digest", "value": f"{len(raw)}:{hashlib.sha256(raw).hexdigest()}"}


def dump(value) -> bytes:
    """Indented, but a list of scalars stays on one line."""
    return (_dump(value, 0) + "\n").encode()


def _flat(value) -> bool:
    if isinstance(value, dict):
        return all(
            not isinstance(v, dict | list) or (isinstance(v, list) and _flat(v))
            for v in value.values()
        )
    return isinstance(value, list) and all(not isinstance(v, dict | list) for v in value)


def _dump(value, depth: int) -> str:
    if not isinstance(value, dict | list) or not value or _flat(value):
        return json.dumps(value, ensure_ascii=False)
    pad, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        inner = [
            f"{json.dumps(k, ensure_ascii=False)}: {_dump(v, depth + 1)}" for k, v in value.items()
        ]
        return "{\n" + ",\n".join(pad + i for i in inner) + f"\n{end}}}"
    return "[\n" + ",\n".join(pad + _dump(v, depth + 1) for v in value) + f"\n{end}]"
