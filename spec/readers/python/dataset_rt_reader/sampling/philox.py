"""Generator, blocks and bounded integers (sampling.md sections 3 and 4)."""

from __future__ import annotations

from enum import IntEnum

_M32 = 0xFFFFFFFF


class Domain(IntEnum):
    """What a block is for."""

    DRAW = 1
    ROUND = 2
    PASS = 3
    RACE = 4
    SMALL = 5


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the four output words of Philox4x32-10."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _M32, (p0 >> 32) ^ c3 ^ k1, p0 & _M32
        k0, k1 = (k0 + 0x9E3779B9) & _M32, (k1 + 0xBB67AE85) & _M32
    return c0, c1, c2, c3


def block(key: int, index: int, stream: int, domain: int, sub: int = 0) -> int:
    """Return the 128-bit block of a 64-bit key and index, a 32-bit stream, a domain and a sub."""
    counter = (index & _M32, index >> 32, stream, domain + 256 * sub)
    w0, w1, w2, w3 = philox(counter, (key & _M32, key >> 32))
    return w0 | w1 << 32 | w2 << 64 | w3 << 96


def scale(number: int, bound: int) -> int:
    """Map a block to 0 .. bound-1."""
    return number * bound >> 128
