"""Permutations of a pass (sampling.md section 7)."""

from __future__ import annotations

from math import factorial, isqrt

from .philox import Domain, block, scale

_M64 = (1 << 64) - 1
NUMBERED_ROWS = 20
"""Up to as many rows permutations are numbered; above a network makes them."""


def mix(x: int) -> int:
    """Return the mixed 64-bit number."""
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _M64
    return x ^ x >> 31


def sides(rows: int) -> tuple[int, int]:
    """Return ``a`` and ``b`` of the network."""
    a = isqrt(rows - 1) + 1
    a += a % 2
    return a, -(-rows // a)


def round_keys(seed: int, number: int, stream: int) -> list[int]:
    """Return the 24 round keys of pass ``number``."""
    keys = []
    for i in range(12):
        both = block(seed, number, stream, Domain.ROUND, i)
        keys += [both & _M64, both >> 64]
    return keys


def permutation_number(rows: int, seed: int, number: int, stream: int) -> int:
    """Return the draw below ``rows!`` behind pass ``number``."""
    return scale(block(seed, number, stream, Domain.SMALL), factorial(rows))


class PassPermutation:
    """The permutation of one pass over ``rows`` rows, and its inverse."""

    def __init__(self, rows: int, seed: int, number: int, stream: int) -> None:
        """Draw the permutation of pass ``number``."""
        self._rows = rows
        self._order: list[int] | None = None
        if rows <= NUMBERED_ROWS:
            self._order = _numbered(rows, permutation_number(rows, seed, number, stream))
            return
        self._a, self._b = sides(rows)
        self._keys = round_keys(seed, number, stream)

    def row(self, place: int) -> int:
        """Return the row at a place."""
        if self._order is not None:
            return self._order[place]
        a, b = self._a, self._b
        while True:
            left, right = divmod(place, b)
            for i, key in enumerate(self._keys):
                if i % 2 == 0:
                    left = (left + (mix(right ^ key) * a >> 64)) % a
                else:
                    right = (right + (mix(left ^ key) * b >> 64)) % b
            place = left * b + right
            if place < self._rows:
                return place

    def place(self, row: int) -> int:
        """Return the place of a row."""
        if self._order is not None:
            return self._order.index(row)
        a, b = self._a, self._b
        while True:
            left, right = divmod(row, b)
            for i in range(23, -1, -1):
                if i % 2 == 0:
                    left = (left - (mix(right ^ self._keys[i]) * a >> 64)) % a
                else:
                    right = (right - (mix(left ^ self._keys[i]) * b >> 64)) % b
            row = left * b + right
            if row < self._rows:
                return row


def _numbered(rows: int, number: int) -> list[int]:
    free = list(range(rows))
    order = []
    for i in range(rows):
        digit, number = divmod(number, factorial(rows - 1 - i))
        order.append(free.pop(digit))
    return order
