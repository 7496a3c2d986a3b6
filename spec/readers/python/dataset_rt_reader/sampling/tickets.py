"""Draws with replacement (sampling.md section 6)."""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from .philox import Domain, block, scale

if TYPE_CHECKING:
    from collections.abc import Sequence


def checked_weights(weights: Sequence[float]) -> list[float]:
    """Return the weights as binary64.

    Raises:
        ValueError: a weight is zero, negative, infinite or NaN.

    """
    checked = []
    for i, weight in enumerate(weights):
        try:
            number = float(weight)
        except (OverflowError, TypeError) as error:
            raise ValueError(f"weight {i} is {weight!r}, no finite number") from error
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"weight {i} is {number!r}, must be finite and above zero")
        checked.append(number)
    return checked


def are_equal(weights: Sequence[float]) -> bool:
    """Whether all weights are the same 64 bits (they have passed :func:`checked_weights`)."""
    return all(weight == weights[0] for weight in weights)


def significand(weight: float) -> tuple[int, int]:
    """Return ``sig`` and ``e`` with ``weight = sig * 2^e``."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", weight))
    exponent, fraction = bits >> 52, bits & (1 << 52) - 1
    if exponent == 0:
        return fraction, -1074
    return fraction | 1 << 52, exponent - 1075


def tickets(weights: Sequence[float]) -> list[int]:
    """Return the tickets of each row."""
    pairs = [significand(weight) for weight in weights]
    top = max(sig.bit_length() + e for sig, e in pairs) - 1
    shares = []
    for sig, e in pairs:
        shift = e + 62 - top
        shares.append(sig << shift if shift >= 0 else sig >> -shift)
    excess = max(0, sum(shares).bit_length() - 63)
    return [max(1, share >> excess) for share in shares]


class TicketDraws:
    """Rows by position in mode ``weighted``; one search in a table of sums a draw."""

    def __init__(self, weights: Sequence[float], seed: int, stream: int) -> None:
        """Sum the tickets of weights that were checked."""
        self._sums = list(accumulate(tickets(weights)))
        self._seed = seed
        self._stream = stream

    def row(self, position: int) -> int:
        """Return the row of a position."""
        number = block(self._seed, position, self._stream, Domain.DRAW)
        return bisect_right(self._sums, scale(number, self._sums[-1]))


def equal_draw(position: int, rows: int, seed: int, stream: int) -> int:
    """Return the row of a position where all weights are equal."""
    return scale(block(seed, position, stream, Domain.DRAW), rows)
