"""Reading FlatBuffers that may be hostile: every place is checked before it is used.

Only what Arrow's footer and message headers need is here. Alignment inside the buffer is not
asked for, since nothing here depends on it.
"""

from __future__ import annotations

import struct

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_SCALARS = {code: struct.Struct("<" + code) for code in "?BhiqH"}


class UnsoundError(ValueError):
    """A table, vector or text leads out of the buffer."""


class Table:
    """One table of a buffer; its vtable and its inline part lie inside the buffer."""

    def __init__(self, data: bytes, at: int) -> None:
        """Check the table that begins at byte ``at``."""
        self._data = data
        self._at = at
        vtable = at - _unpack(_I32, data, at)
        self._vtable = vtable
        self._vtable_size = _unpack(_U16, data, vtable)
        self._size = _unpack(_U16, data, vtable + 2)
        if self._vtable_size < 4 or self._vtable_size % 2 or self._size < 4:
            raise UnsoundError(f"vtable at byte {vtable}")
        if vtable + self._vtable_size > len(data) or at + self._size > len(data):
            raise UnsoundError(f"table at byte {at} leads out of the buffer")

    @classmethod
    def root(cls, data: bytes) -> Table:
        """Return the root table."""
        return cls(data, _unpack(_U32, data, 0))

    def _slot(self, slot: int, width: int) -> int | None:
        """Return the place of a slot's inline bytes, or ``None`` where it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return None
        offset = _unpack(_U16, self._data, self._vtable + entry)
        if offset == 0:
            return None
        if offset < 4 or offset + width > self._size:
            raise UnsoundError(f"slot {slot} of the table at byte {self._at}")
        return self._at + offset

    def has(self, slot: int) -> bool:
        """Whether a slot that holds a reference is present."""
        return self._slot(slot, 4) is not None

    def number(self, slot: int, code: str) -> int:
        """Return a scalar of a ``struct`` code, 0 where it is absent."""
        scalar = _SCALARS[code]
        at = self._slot(slot, scalar.size)
        return 0 if at is None else int(scalar.unpack_from(self._data, at)[0])

    def _target(self, slot: int) -> int | None:
        at = self._slot(slot, 4)
        return None if at is None else at + _unpack(_U32, self._data, at)

    def table(self, slot: int) -> Table | None:
        """Return the table that a slot leads to."""
        at = self._target(slot)
        return None if at is None else Table(self._data, at)

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        """Return first byte and number of items of a vector; an absent one has no items."""
        at = self._target(slot)
        if at is None:
            return 0, 0
        count = _unpack(_U32, self._data, at)
        if at + 4 + count * width > len(self._data):
            raise UnsoundError(f"vector of {count} at byte {at} leads out of the buffer")
        return at + 4, count

    def text(self, slot: int) -> bytes:
        """Return the bytes of a text, none where it is absent."""
        start, count = self._vector(slot, 1)
        return self._data[start : start + count]

    def structs(self, slot: int, layout: struct.Struct) -> list[tuple[int, ...]]:
        """Return the items of a vector of structs."""
        start, count = self._vector(slot, layout.size)
        return list(layout.iter_unpack(self._data[start : start + count * layout.size]))

    def count(self, slot: int, width: int) -> int:
        """Return the number of items, each ``width`` bytes wide, of a vector."""
        return self._vector(slot, width)[1]

    def tables(self, slot: int) -> list[Table]:
        """Return the tables of a vector."""
        start, count = self._vector(slot, 4)
        places = range(start, start + 4 * count, 4)
        return [Table(self._data, at + _unpack(_U32, self._data, at)) for at in places]


def _unpack(layout: struct.Struct, data: bytes, at: int) -> int:
    if at < 0 or at + layout.size > len(data):
        raise UnsoundError(f"byte {at} of {len(data)}")
    return int(layout.unpack_from(data, at)[0])
