# ruff: noqa: INP001, PLR2004, T201
"""Prints golden.rs: expected rows of the sampler, worked out from the definition of the stream.

    python3 golden.py > golden.rs

Plain integers, binary64 arithmetic and hashlib; no tables, no batches, no short cuts, so that it
shares nothing with the library but the definition. Only the standard library is needed.
"""

from __future__ import annotations

import hashlib
import math
import struct
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

M32, M64 = 2**32 - 1, 2**64 - 1
DRAW, ROUND, PASS, RACE, SMALL = 1, 2, 3, 4, 5


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M32, (p0 >> 32) ^ c[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def block(key: int, index: int, stream: int, domain: int, sub: int = 0) -> int:
    """The 128-bit block of a counter."""
    counter = (index & M32, index >> 32, stream, domain + 256 * sub)
    return sum(w << (32 * i) for i, w in enumerate(philox(counter, (key & M32, key >> 32))))


def scale(x: int, m: int) -> int:
    """A block as an integer below m."""
    return (x * m) >> 128


# With replacement.


def uniform(seed: int, stream: int, n: int, position: int) -> int:
    """The row of a position, n rows of one weight."""
    return scale(block(seed, position, stream, DRAW), n)


def bits(x: float) -> int:
    """The bits of a binary64."""
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def split(w: float) -> tuple[int, int]:
    """The weight as sig * 2**e with sig below 2**53."""
    field, mantissa = bits(w) >> 52, bits(w) & (2**52 - 1)
    return (mantissa, -1074) if field == 0 else (mantissa + 2**52, field - 1075)


def tickets(weights: Iterable[float]) -> list[int]:
    """Whole numbers of tickets."""
    pairs = [split(w) for w in weights]
    top = max(sig.bit_length() - 1 + e for sig, e in pairs)
    scaled = []
    for sig, e in pairs:
        shift = e + 62 - top
        scaled.append(sig << shift if shift >= 0 else sig >> -shift)
    s = max(0, sum(scaled).bit_length() - 63)
    return [max(1, t >> s) for t in scaled]


def weighted(seed: int, stream: int, weights: Sequence[float], position: int) -> int:
    """The row of a position, by weight."""
    q = tickets(weights)
    ticket = scale(block(seed, position, stream, DRAW), sum(q))
    row = 0
    while ticket >= q[row]:
        ticket -= q[row]
        row += 1
    return row


# Without replacement, equal weights.


def mix(x: int) -> int:
    """The finaliser of SplitMix64."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def sides(n: int) -> tuple[int, int]:
    """The rectangle of the network."""
    a = math.isqrt(n - 1) + 1
    a += a % 2
    return a, -(-n // a)


def permutation(seed: int, stream: int, n: int, position: int) -> int:
    """The row of a position, n rows of one weight, each once a pass."""
    number, j = divmod(position, n)
    if n <= 20:
        r = scale(block(seed, number, stream, SMALL), math.factorial(n))
        left = list(range(n))
        taken = []
        for i in range(n):
            d, r = divmod(r, math.factorial(n - 1 - i))
            taken.append(left.pop(d))
        return taken[j]
    a, b = sides(n)
    keys = []
    for i in range(12):
        x = block(seed, number, stream, ROUND, i)
        keys += [x & M64, x >> 64]
    while True:
        left_side, right_side = divmod(j, b)
        for i, k in enumerate(keys):
            if i % 2 == 0:
                left_side = (left_side + (mix(right_side ^ k) * a >> 64)) % a
            else:
                right_side = (right_side + (mix(left_side ^ k) * b >> 64)) % b
        j = left_side * b + right_side
        if j < n:
            return j


# Without replacement, unequal weights.

LN2 = round(math.log(2.0) * 2**47) / 2**47


def exponential(x: int) -> float:
    """An exponential variate out of a 64-bit word."""
    m, k = math.frexp(((x >> 11) + 1) / 2.0**53)
    m, k = m * 2.0, 1 - k
    if m > 1.4142135623730951:
        m, k = m / 2.0, k - 1
    s = (1.0 - m) / (1.0 + m)
    z = s * s
    t = 325.0 / 256.0
    for c in (704.0 / 225.0, 81.0 / 64.0, 28.0 / 9.0, 5.0 / 4.0, 3.0, 1.0):
        t = c - z / t
    return k * LN2 + 2.0 * (s / t)


def race(e: float, w: float) -> int:
    """The variate divided by the weight, as an integer that orders like it."""
    if e == 0.0:
        return 0
    (m1, e1), (m2, e2) = math.frexp(e), math.frexp(w)
    return bits(m1 / m2) + (e1 - e2 + 64) * 2**52


@cache
def order(seed: int, stream: int, weights: tuple[float, ...], number: int) -> list[int]:
    """The rows of a pass."""
    key = block(seed, number, stream, PASS) & M64
    races = []
    for i, w in enumerate(weights):
        races.append((race(exponential(block(key, i, stream, RACE) & M64), w), i))
    return [row for _, row in sorted(races)]


def weighted_order(seed: int, stream: int, weights: Sequence[float], position: int) -> int:
    """The row of a position, each row once a pass, by weight."""
    number, j = divmod(position, len(weights))
    return order(seed, stream, tuple(weights), number)[j]


# Printing.

SEEDS = [(0, 0), (42, 7), (2**64 - 1, 2**32 - 1)]
SIZES = [1, 2, 3, 7, 19, 20, 21, 22, 25, 37, 1000, 1_000_003]
SIZES += [2**32 - 1, 2**32 + 1, 2**53 + 1, 2**62]
WEIGHTS = {
    "COUNTED": [1.0, 2.0, 3.0, 4.0],
    "FRACTIONS": [0.1 * (i * 7919 % 31 + 1) for i in range(57)],
    "FAR_APART": [1e308, 5e-324, 1.0, 1e-300, 1e308],
    "NEARLY_NONE": [1.0, 1e-300, 1.0, 1.0],
    "SUBNORMAL": [5e-324, 1e-323, 1.5e-323],
    "LARGEST": [1.7976931348623157e308, 8.98846567431158e307, 1e308],
}
MANY = [float(i % 97 + 1) ** 3 / 7.0 for i in range(5000)]
HEAD = """\
//! Expected rows, printed by golden.py; not written by hand and never adapted to the code.

/// One stretch of a stream: seed, stream word, first position, rows of four positions.
pub(super) type Stretch = (u64, u32, u64, [u64; 4]);
/// Stretches of the streams over so many rows of equal weight.
pub(super) type Sized = (u64, &'static [Stretch]);
"""


def constant(name: str, kind: str, value: str) -> None:
    """Prints a constant of Rust."""
    print(f"pub(super) const {name}: {kind} = {value};")


def starts(n: int) -> list[int]:
    """Positions from which rows are printed: at ends of passes, past 32 bits, at the very end."""
    last = 2**63 - 4
    return sorted(p for p in {0, n - 2, n * 2**32 - 1, last} if 0 <= p <= last)


def stretches(row: Callable[[int, int, int], int], positions: list[int]) -> str:
    """The stretches of all seeds, as an array of Rust."""
    lines = [
        f"({seed}, {stream}, {p}, {[row(seed, stream, p + i) for i in range(4)]}),"
        for seed, stream in SEEDS
        for p in positions
    ]
    return "&[\n" + "\n".join(lines) + "\n]"


def print_equal() -> None:
    """Prints the modes for rows of one weight."""
    for title, draw in (("UNIFORM", uniform), ("PERMUTATION", permutation)):
        sized = []
        for n in SIZES:
            rows = stretches(
                lambda seed, stream, p, n=n, draw=draw: draw(seed, stream, n, p), starts(n)
            )
            sized.append(f"({n}, {rows}),")
        constant(title, "&[Sized]", "&[\n" + "\n".join(sized) + "\n]")


def print_weighted(name: str, weights: list[float], positions: list[int]) -> None:
    """Prints the modes by weight."""
    for title, draw in (("WEIGHTED", weighted), ("ORDER", weighted_order)):
        rows = stretches(
            lambda seed, stream, p, draw=draw: draw(seed, stream, weights, p), positions
        )
        constant(f"{name}_{title}", "&[Stretch]", rows)


def print_races() -> None:
    """Prints variates and keys."""
    print("/// A word, the bits of its variate, its keys for 1, 0.3, 5e-324, 1e308 and 2^-1022.")
    words = [0, 1, 2**11 - 1, 2**11, M64, M64 - 2**11, 2**63, 2**63 - 1]
    # Around the mantissa that is halved.
    words += [13043817825332782212, 13043817825332782213]
    words += [mix(i) for i in range(1, 40)]
    lines = []
    for x in words:
        e = exponential(x)
        keys = [race(e, w) for w in (1.0, 0.3, 5e-324, 1e308, 2.0**-1022)]
        lines.append(f"({x}, {bits(e)}, {keys}),")
    constant("RACES", "&[(u64, u64, [u64; 5])]", "&[\n" + "\n".join(lines) + "\n]")


def print_digests() -> None:
    """Prints digests of small tables."""
    tag = b"dataset_rt table 1\x00"
    rows = [(0, 0, 1000), (1, 5, 1), (1, 4, 3), (2, 2**40, 2)]
    digest = hashlib.sha256(tag + b"".join(struct.pack("<3Q", *run) for run in rows))
    constant("ROWS_DIGEST", "&str", f'"{digest.hexdigest()}"')
    runs = [
        (0, 0, 400, 1.0),
        (0, 400, 600, 2.0),
        (1, 5, 1, 2.0),
        (1, 4, 3, 0.5),
        (2, 2**40, 2, 0.5),
    ]
    digest = hashlib.sha256(tag + b"".join(struct.pack("<3Qd", *run) for run in runs))
    constant("WEIGHTS_DIGEST", "&str", f'"{digest.hexdigest()}"')
    digest = hashlib.sha256(bytes([1] * 32) + bytes(range(32)))
    constant("CACHES_DIGEST", "&str", f'"{digest.hexdigest()}"')


def main() -> None:
    """Prints the file."""
    print(HEAD, end="")
    print_equal()
    for name, weights in WEIGHTS.items():
        values = ", ".join(f"f64::from_bits({bits(w)})" for w in weights)
        constant(name, "&[f64]", f"&[{values}]")
        constant(f"{name}_TICKETS", "&[u64]", f"&{tickets(weights)}")
        print_weighted(name, weights, starts(len(weights)))
    print_weighted("MANY", MANY, [0, len(MANY) - 2])
    print_races()
    print_digests()


if __name__ == "__main__":
    main()
