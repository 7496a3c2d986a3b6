"""Philox4x32-10 and the bounded integers made from it (sampling.md, sections 2 and 3)."""

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1

DRAW, ROUND, PASS, RACE, SMALL = 1, 2, 3, 4, 5

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds over four 32-bit words under a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + _W0) & MASK32, (k1 + _W1) & MASK32
    return c0, c1, c2, c3


def block(key: int, index: int, stream: int, domain: int, sub: int = 0) -> int:
    """The 128-bit block of one place of the counter space."""
    assert 0 <= key <= MASK64 and 0 <= index <= MASK64 and 0 <= stream <= MASK32
    assert 0 <= domain <= 255 and 0 <= sub < 1 << 24
    counter = (index & MASK32, index >> 32, stream, domain + 256 * sub)
    w0, w1, w2, w3 = philox(counter, (key & MASK32, key >> 32))
    return w0 | w1 << 32 | w2 << 64 | w3 << 96


def scale(x: int, m: int) -> int:
    """An integer below m from a 128-bit block."""
    assert 0 <= x < 1 << 128 and 1 <= m < 1 << 64
    return (x * m) >> 128
