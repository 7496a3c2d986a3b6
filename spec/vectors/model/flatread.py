"""Reads FlatBuffers with every offset checked (format.md, section 7.2)."""

import struct


class Broken(Exception):
    """The buffer is not sound."""


class View:
    """A table inside a buffer. Absent slots give the default."""

    def __init__(self, buf: bytes, at: int) -> None:
        self.buf, self.at = buf, at
        self.vtable = at - self._get("<i", at)
        size, self.table_size = self._get("<H", self.vtable), self._get("<H", self.vtable + 2)
        if size < 4 or size % 2 or self.table_size < 4:
            raise Broken("vtable")
        self._bytes(self.vtable, size)
        self._bytes(at, self.table_size)
        self.slots = (size - 4) // 2

    def _bytes(self, at: int, size: int) -> bytes:
        if at < 0 or size < 0 or at + size > len(self.buf):
            raise Broken(f"{size} bytes at {at}")
        return self.buf[at : at + size]

    def _get(self, kind: str, at: int) -> int:
        return struct.unpack(kind, self._bytes(at, struct.calcsize(kind)))[0]

    def _place(self, slot: int, width: int) -> int | None:
        offset = self._get("<H", self.vtable + 4 + 2 * slot) if slot < self.slots else 0
        if offset == 0:
            return None
        if offset + width > self.table_size:
            raise Broken("slot outside its table")
        return self.at + offset

    def scalar(self, slot: int, kind: str) -> int:
        at = self._place(slot, struct.calcsize(kind))
        return 0 if at is None else self._get(kind, at)

    def _target(self, slot: int) -> int | None:
        at = self._place(slot, 4)
        return None if at is None else at + self._get("<I", at)

    def table(self, slot: int) -> "View | None":
        at = self._target(slot)
        return None if at is None else View(self.buf, at)

    def text(self, slot: int) -> str:
        at = self._target(slot)
        if at is None:
            return ""
        try:
            return self._bytes(at + 4, self._get("<I", at)).decode()
        except UnicodeDecodeError as e:
            raise Broken("text") from e

    def count(self, slot: int) -> int:
        at = self._target(slot)
        return 0 if at is None else self._get("<I", at)

    def tables(self, slot: int) -> list["View"]:
        at = self._target(slot)
        if at is None:
            return []
        self._bytes(at + 4, 4 * self._get("<I", at))
        places = [at + 4 + 4 * i for i in range(self._get("<I", at))]
        return [View(self.buf, p + self._get("<I", p)) for p in places]

    def structs(self, slot: int, kind: str) -> list[tuple]:
        at = self._target(slot)
        if at is None:
            return []
        raw = self._bytes(at + 4, struct.calcsize(kind) * self._get("<I", at))
        return list(struct.iter_unpack(kind, raw))


def root(buf: bytes) -> View:
    if len(buf) < 8:
        raise Broken("too short")
    return View(buf, struct.unpack_from("<I", buf)[0])
