"""Order without replacement under unequal weights (sampling.md section 8)."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from .philox import Domain, block

if TYPE_CHECKING:
    from collections.abc import Sequence

_M64 = (1 << 64) - 1
_LN2 = 97551793252584 / 2**47


def exponential(x: int) -> float:
    """Return the exponential variate of a 64-bit number.

    Every line is one correctly rounded operation; none may be joined or reordered.
    """
    u = (x >> 11) + 1
    high = u.bit_length() - 1
    k = 53 - high
    m = u / (1 << high)
    if m > 1.4142135623730951:
        m /= 2
        k -= 1
    s = (1 - m) / (1 + m)
    z = s * s
    t = 325 / 256
    t = 704 / 225 - z / t
    t = 81 / 64 - z / t
    t = 28 / 9 - z / t
    t = 5 / 4 - z / t
    t = 3 - z / t
    t = 1 - z / t
    return k * _LN2 + 2 * (s / t)


def race(variate: float, weight: float) -> int:
    """Return the key of a row: it orders as ``variate / weight`` without its range."""
    if variate == 0:
        return 0
    m1, e1 = math.frexp(variate)
    m2, e2 = math.frexp(weight)
    (bits,) = struct.unpack("<Q", struct.pack("<d", m1 / m2))
    return int(bits) + (e1 - e2 + 64) * 2**52


def race_keys(weights: Sequence[float], seed: int, number: int, stream: int) -> list[int]:
    """Return the keys of all rows in pass ``number``."""
    key = block(seed, number, stream, Domain.PASS) & _M64
    return [
        race(exponential(block(key, i, stream, Domain.RACE) & _M64), weight)
        for i, weight in enumerate(weights)
    ]


def pass_order(weights: Sequence[float], seed: int, number: int, stream: int) -> list[int]:
    """Return all rows in the order of pass ``number``."""
    keys = race_keys(weights, seed, number, stream)
    return sorted(range(len(keys)), key=keys.__getitem__)
