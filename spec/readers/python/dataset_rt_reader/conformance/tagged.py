"""Tagged JSON of vectors/README.md: every scalar as type and text."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, TypeAlias, Union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
Scalar: TypeAlias = bool | int | float | str | bytes | None

LONGEST_SHOWN = 256
"""Payloads of more bytes are shown by length and digest."""


def tag(kind: str, value: Scalar) -> Json:
    """Return one scalar of a type as tagged JSON."""
    return {"type": kind, "value": _text(kind, value)}


def tags(kind: str, values: Iterable[Scalar]) -> Json:
    """Return a list of scalars of one type as tagged JSON."""
    return {"type": kind, "values": [_text(kind, value) for value in values]}


def tag_payload(payload: bytes) -> Json:
    """Return a payload as bytes, or as ``bytes_digest`` where it is long."""
    if len(payload) <= LONGEST_SHOWN:
        return tag("bytes", payload)
    digest = hashlib.sha256(payload).hexdigest()
    return {"type": "bytes_digest", "value": f"{len(payload)}:{digest}"}


def _text(kind: str, value: Scalar) -> str:
    if value is None:
        return ""
    if kind == "bool":
        return "true" if value else "false"
    if kind == "float64":
        return struct.pack(">d", value).hex()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


class Inputs:
    """The inputs of a unit case, by name."""

    def __init__(self, members: Mapping[str, Json]) -> None:
        self._members = members

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def plain(self, name: str) -> Json:
        """Return a member as it stands."""
        return self._members[name]

    def _one(self, name: str) -> str:
        member = self._members[name]
        if not isinstance(member, dict):
            raise TypeError(f"{name} is no tagged scalar")
        return str(member["value"])

    def _many(self, name: str) -> list[str]:
        member = self._members[name]
        if not isinstance(member, dict) or not isinstance(member["values"], list):
            raise TypeError(f"{name} is no tagged list")
        return [str(value) for value in member["values"]]

    def number(self, name: str) -> int:
        """Return an integer."""
        return int(self._one(name))

    def numbers(self, name: str) -> list[int]:
        """Return a list of integers."""
        return [int(text) for text in self._many(name)]

    def text(self, name: str) -> str:
        """Return a text."""
        return self._one(name)

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        return self._one(name) == "true"

    def data(self, name: str) -> bytes:
        """Return bytes."""
        return bytes.fromhex(self._one(name))

    def data_list(self, name: str) -> list[bytes]:
        """Return a list of bytes."""
        return [bytes.fromhex(text) for text in self._many(name)]

    def real(self, name: str) -> float:
        """Return a binary64 number."""
        return _real(self._one(name))

    def reals(self, name: str) -> list[float]:
        """Return a list of binary64 numbers."""
        return [_real(text) for text in self._many(name)]


def _real(text: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(text))
    return float(value)
