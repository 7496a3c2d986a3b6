"""The identity of a cache (format.md, section 9)."""

import hashlib
import struct

from .arrow import float_bytes
from .schema import EMPTY, TYPES, Field

BLOCK = 65_536


def identity(fields: list[Field], columns: list[list], payloads: list[tuple[int, int]]) -> bytes:
    """payloads: (raw_len, crc) of each sample."""
    outer = hashlib.sha256(b"dataset_rt content 1\0")
    outer.update(struct.pack("<QI", len(payloads), len(fields)))
    for f in fields:
        name = f.name.encode()
        outer.update(struct.pack("<I", len(name)) + name + bytes([TYPES[f.type], f.nullable]))
    for start in range(0, len(payloads), BLOCK):
        rows = slice(start, start + BLOCK)
        inner = hashlib.sha256()
        for raw_len, crc in payloads[rows]:
            inner.update(struct.pack("<II", raw_len, crc))
        for f, column in zip(fields, columns, strict=True):
            inner.update(column_bytes(f, column[rows]))
        outer.update(inner.digest())
    return outer.digest()


def column_bytes(f: Field, values: list) -> bytes:
    out = bytearray()
    if f.nullable:
        out += bytes(v is not None for v in values)
    values = [EMPTY[f.type] if v is None else v for v in values]
    if f.type == "bool":
        return bytes(out) + bytes(values)
    if f.type == "int64":
        return bytes(out) + struct.pack(f"<{len(values)}q", *values)
    if f.type == "float64":
        return bytes(out) + b"".join(map(float_bytes, values))
    texts = [v.encode() for v in values]
    return bytes(out) + struct.pack(f"<{len(texts)}I", *map(len, texts)) + b"".join(texts)
