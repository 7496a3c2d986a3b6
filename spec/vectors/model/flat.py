"""Just enough of FlatBuffers to write Arrow's messages. Parents come before children, so that every reference points forward."""

import struct
from dataclasses import dataclass, field

_SCALARS = {"u8": ("<B", 1), "i16": ("<h", 2), "i32": ("<i", 4), "i64": ("<q", 8)}


@dataclass
class Table:
    """slots: number -> (scalar kind, value), or a Table, text or Vector."""

    slots: dict = field(default_factory=dict)


@dataclass
class Structs:
    """A vector of structs that are already bytes, aligned to eight."""

    items: list[bytes]


@dataclass
class Longs:
    items: list[int]


def _align(buf: bytearray, to: int, rest: int = 0) -> None:
    while len(buf) % to != rest:
        buf.append(0)


def _write(buf: bytearray, obj) -> int:
    """Appends an object and what it refers to; returns its position."""
    if isinstance(obj, str):
        raw = obj.encode()
        _align(buf, 4)
        at = len(buf)
        buf += struct.pack("<I", len(raw)) + raw + b"\0"
        return at
    if isinstance(obj, Structs | Longs):
        _align(buf, 8, 4)
        at = len(buf)
        buf += struct.pack("<I", len(obj.items))
        for item in obj.items:
            buf += item if isinstance(obj, Structs) else struct.pack("<q", item)
        return at
    if isinstance(obj, list):
        _align(buf, 4)
        at = len(buf)
        buf += struct.pack("<I", len(obj)) + bytes(4 * len(obj))
        for i, child in enumerate(obj):
            _refer(buf, at + 4 + 4 * i, child)
        return at
    return _write_table(buf, obj)


def _refer(buf: bytearray, place: int, child) -> None:
    at = _write(buf, child)
    struct.pack_into("<I", buf, place, at - place)


def _write_table(buf: bytearray, table: Table) -> int:
    offsets, size = {}, 4
    for slot, value in sorted(table.slots.items()):
        width = _SCALARS[value[0]][1] if isinstance(value, tuple) else 4
        size = -(-size // width) * width
        offsets[slot] = size
        size += width
    slots = max(offsets, default=-1) + 1
    vtable = struct.pack("<HH", 4 + 2 * slots, size)
    vtable += b"".join(struct.pack("<H", offsets.get(slot, 0)) for slot in range(slots))
    _align(buf, 8, -len(vtable) % 8)
    buf += vtable
    at = len(buf)
    buf += struct.pack("<i", len(vtable)) + bytes(size - 4)
    for slot, value in sorted(table.slots.items()):
        if isinstance(value, tuple):
            struct.pack_into(_SCALARS[value[0]][0], buf, at + offsets[slot], value[1])
        else:
            _refer(buf, at + offsets[slot], value)
    return at


def serialise(root: Table) -> bytes:
    buf = bytearray(4)
    at = _write(buf, root)
    struct.pack_into("<I", buf, 0, at)
    _align(buf, 8)
    return bytes(buf)
