"""Modes, positions and windows (sampling.md sections 1, 2 and 9)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from .permutation import PassPermutation
from .tickets import TicketDraws, are_equal, checked_weights, equal_draw
from .weighted_order import pass_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_ROWS = 2**62
MAX_POSITIONS = 2**63


class Mode(str, Enum):
    """How rows follow from positions."""

    ORDERED = "ordered"
    WEIGHTED = "weighted"
    PERMUTATION = "permutation"
    WEIGHTED_ORDER = "weighted_order"


def choose_mode(*, shuffle: bool, replacement: bool, weights: Sequence[float]) -> Mode:
    """Return the mode of a configuration and a table.

    Raises:
        ValueError: a weight is not finite or not above zero, also where none is used.

    """
    checked = checked_weights(weights)
    if not shuffle:
        return Mode.ORDERED
    if replacement:
        return Mode.WEIGHTED
    return Mode.PERMUTATION if are_equal(checked) else Mode.WEIGHTED_ORDER


class DrawStream:
    """Rows of the active table by position.

    One pass of the modes without replacement is kept, so positions cost least in order.

    Args:
        mode: one of the four modes.
        rows: number of rows of the table, 1 .. 2^62.
        seed: 0 .. 2^64-1.
        stream: stream word, 0 .. 2^32-1.
        weights: one a row; all equal if not given. Mode ``permutation`` takes equal ones alone.

    Raises:
        ValueError: an argument is out of range.

    """

    def __init__(
        self,
        mode: Mode,
        rows: int,
        *,
        seed: int = 0,
        stream: int = 0,
        weights: Sequence[float] | None = None,
    ) -> None:
        for name, value, least, most in (
            ("rows", rows, 1, MAX_ROWS),
            ("seed", seed, 0, 2**64 - 1),
            ("stream", stream, 0, 2**32 - 1),
        ):
            if not least <= value <= most:
                raise ValueError(f"{name} is {value}, must be {least} .. {most}")
        if weights is not None and len(weights) != rows:
            raise ValueError(f"{len(weights)} weights for {rows} rows")
        checked = None if weights is None else checked_weights(weights)
        if mode is Mode.PERMUTATION and checked is not None and not are_equal(checked):
            raise ValueError("permutation needs equal weights; weighted_order takes others")
        self.mode = mode
        self.rows = rows
        self._seed = seed
        self._stream = stream
        self._weights = checked
        self._draws: TicketDraws | None = None
        if mode is Mode.WEIGHTED and checked is not None and not are_equal(checked):
            self._draws = TicketDraws(checked, seed, stream)
        self._permutation: tuple[int, PassPermutation] | None = None
        self._order: tuple[int, list[int]] | None = None

    def row(self, position: int) -> int:
        """Return the row at a position, 0 .. 2^63-1."""
        if not 0 <= position < MAX_POSITIONS:
            raise ValueError(f"position is {position}, must be 0 .. 2^63-1")
        number, place = divmod(position, self.rows)
        if self.mode is Mode.ORDERED:
            return place
        if self.mode is Mode.WEIGHTED:
            if self._draws is not None:
                return self._draws.row(position)
            return equal_draw(position, self.rows, self._seed, self._stream)
        if self.mode is Mode.PERMUTATION:
            if self._permutation is None or self._permutation[0] != number:
                drawn = PassPermutation(self.rows, self._seed, number, self._stream)
                self._permutation = (number, drawn)
            return self._permutation[1].row(place)
        if self._order is None or self._order[0] != number:
            weights = self._weights if self._weights is not None else [1.0] * self.rows
            self._order = (number, pass_order(weights, self._seed, number, self._stream))
        return self._order[1][place]

    def window(self, start: int, count: int) -> Iterator[int]:
        """Return the rows of positions ``start .. start + count``, in order.

        Raises:
            ValueError: the window reaches past 2^63.

        """
        if start < 0 or count < 0 or start + count > MAX_POSITIONS:
            raise ValueError(f"window of {count} from {start} leaves 0 .. 2^63")
        return map(self.row, range(start, start + count))
