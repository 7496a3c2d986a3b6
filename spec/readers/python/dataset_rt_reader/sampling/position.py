"""Saved positions (sampling.md section 12)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .stream import MAX_POSITIONS, MAX_ROWS, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = re.compile(r"0|[1-9][0-9]*")
_WEIGHTED = frozenset({Mode.WEIGHTED, Mode.WEIGHTED_ORDER})
_MEMBERS = (
    "format", "version", "algorithm", "mode", "seed", "stream", "rows", "window_start",
    "window_len", "delivered", "next", "epoch_len", "caches", "cache_heads", "table",
)  # fmt: skip


class PositionError(ValueError):
    """A saved position is refused; ``member`` names what is wrong with it."""

    def __init__(self, member: str, detail: str) -> None:
        """Keep the member and join both to one sentence."""
        self.member = member
        super().__init__(f"saved position, {member}: {detail}")


@dataclass(frozen=True)
class Position:
    """A saved position whose form was checked."""

    mode: Mode
    seed: int
    stream: int
    rows: int
    window_start: int
    window_len: int
    delivered: int
    next: int
    epoch_len: int | None
    caches: str
    cache_heads: tuple[str, ...]
    table_rows: str
    table_weights: str | None

    @classmethod
    def parse(cls, document: Mapping[str, object]) -> Position:
        """Check the form of a parsed JSON object.

        Raises:
            PositionError: a member is missing, unknown, of another type or out of range. Of
                several the first counts, in the order of the text's table, and unknown ones last.

        """
        for name, wanted in (
            ("format", "dataset_rt.position"),
            ("version", 1),
            ("algorithm", 1),
        ):
            value = _member(document, name)
            if type(value) is not type(wanted) or value != wanted:
                raise PositionError(name, f"is {value!r}, must be {wanted!r}")
        mode_name = _member(document, "mode")
        if mode_name not in [mode.value for mode in Mode]:
            raise PositionError("mode", f"{mode_name!r} is none of the four")
        mode = Mode(mode_name)
        seed = _digits(document, "seed", 0, 2**64 - 1)
        stream = _member(document, "stream")
        if type(stream) is not int or not 0 <= stream < 2**32:
            raise PositionError("stream", f"is {stream!r}, must be 0 .. 2^32-1")
        rows = _digits(document, "rows", 1, MAX_ROWS)
        start = _digits(document, "window_start", 0, MAX_POSITIONS)
        length = _digits(document, "window_len", 0, MAX_POSITIONS - start)
        delivered = _digits(document, "delivered", 0, length)
        following = _digits(document, "next", start + length, MAX_POSITIONS)
        epoch_len = None
        if _member(document, "epoch_len") is not None:
            epoch_len = _digits(document, "epoch_len", 1, MAX_POSITIONS - 1)
        caches = _hexadecimal(_member(document, "caches"), 64, "caches")
        heads = _member(document, "cache_heads")
        if not isinstance(heads, list) or not 1 <= len(heads) <= 64:
            raise PositionError("cache_heads", "must be a list of 1 .. 64 texts")
        texts = tuple(_hexadecimal(head, 8, "cache_heads") for head in heads)
        table_rows, table_weights = _table(_member(document, "table"), mode)
        for name in document:
            if name not in _MEMBERS:
                raise PositionError(name, "is unknown")
        return cls(
            mode, seed, stream, rows, start, length, delivered, following, epoch_len, caches,
            texts, table_rows, table_weights,
        )  # fmt: skip

    def check_fits(self, dataset: Position) -> None:
        """Compare with the position of a dataset that is to continue here.

        Raises:
            PositionError: it belongs to other caches, another table or another configuration.

        """
        for member, saved, own in (
            ("caches", self.caches, dataset.caches),
            ("rows", self.rows, dataset.rows),
            ("mode", self.mode, dataset.mode),
            ("seed", self.seed, dataset.seed),
            ("stream", self.stream, dataset.stream),
            ("table", self.table_rows, dataset.table_rows),
            ("table", self.table_weights, dataset.table_weights),
        ):
            if saved != own:
                raise PositionError(member, f"is {saved!r}, but the dataset's is {own!r}")


def _member(document: Mapping[str, object], name: str) -> object:
    if name not in document:
        raise PositionError(name, "is missing")
    return document[name]


def _digits(document: Mapping[str, object], name: str, least: int, most: int) -> int:
    value = _member(document, name)
    # More than 20 digits are beyond every range, and long ones are slow to convert.
    if not isinstance(value, str) or len(value) > 20 or _DIGITS.fullmatch(value) is None:
        raise PositionError(name, f"is {value!r:.60}, must be a text of decimal digits")
    number = int(value)
    if not least <= number <= most:
        raise PositionError(name, f"is {number}, must be {least} .. {most}")
    return number


def _hexadecimal(value: object, count: int, name: str) -> str:
    if not isinstance(value, str) or re.fullmatch(rf"[0-9a-f]{{{count}}}", value) is None:
        raise PositionError(name, f"must be {count} lower-case hexadecimal digits")
    return value


def _table(value: object, mode: Mode) -> tuple[str, str | None]:
    if not isinstance(value, dict) or set(value) != {"rows", "weights"}:
        raise PositionError("table", "must be an object of rows and weights")
    rows = _hexadecimal(value["rows"], 64, "table")
    if mode in _WEIGHTED:
        return rows, _hexadecimal(value["weights"], 64, "table")
    if value["weights"] is not None:
        raise PositionError("table", f"weights must be null in mode {mode.value}")
    return rows, None
