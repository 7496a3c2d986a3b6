"""The order of samples, computed with plain integers from the definition of the stream alone."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORD = 2**32 - 1
LONG = 2**64 - 1
DRAW, ROUND, PASS, RACE, SMALL = 1, 2, 3, 4, 5
LN2 = 97551793252584 / 2**47


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ k, right & WORD, (left >> 32) ^ d ^ m, left & WORD
        k, m = (k + 0x9E3779B9) & WORD, (m + 0xBB67AE85) & WORD
    return a, b, c, d


def block(key: int, index: int, stream: int, domain: int, sub: int = 0) -> int:
    counter = (index & WORD, index >> 32, stream, domain + 256 * sub)
    words = philox(counter, (key & WORD, key >> 32))
    return sum(word << (32 * place) for place, word in enumerate(words))


def scale(number: int, limit: int) -> int:
    return (number * limit) >> 128


def significand(weight: float) -> tuple[int, int]:
    """Integer and exponent: weight = integer * 2^exponent."""
    fraction, exponent = math.frexp(weight)
    integer, exponent = int(math.ldexp(fraction, 53)), exponent - 53
    if exponent < -1074:
        return integer >> (-1074 - exponent), -1074
    return integer, exponent


def tickets(weights: Sequence[float]) -> list[int]:
    _, exponent = math.frexp(max(weights))
    top = exponent - 1
    scaled = []
    for weight in weights:
        integer, exponent = significand(weight)
        shift = exponent + 62 - top
        scaled.append(integer << shift if shift >= 0 else integer >> -shift)
    spare = max(0, sum(scaled).bit_length() - 63)
    return [max(1, number >> spare) for number in scaled]


def weighted(
    seed: int, stream: int, weights: Sequence[float], positions: Iterable[int]
) -> list[int]:
    ends = list(itertools.accumulate(tickets(weights)))
    return [
        bisect.bisect_right(ends, scale(block(seed, position, stream, DRAW), ends[-1]))
        for position in positions
    ]


def small_pass(seed: int, stream: int, count: int, number: int) -> list[int]:
    rest = scale(block(seed, number, stream, SMALL), math.factorial(count))
    left = list(range(count))
    order = []
    for place in range(count):
        digit, rest = divmod(rest, math.factorial(count - 1 - place))
        order.append(left.pop(digit))
    return order


def mix(x: int) -> int:
    x ^= x >> 30
    x = (x * 0xBF58476D1CE4E5B9) & LONG
    x ^= x >> 27
    x = (x * 0x94D049BB133111EB) & LONG
    return x ^ (x >> 31)


def network_pass(seed: int, stream: int, count: int, number: int) -> list[int]:
    a = math.isqrt(count - 1) + 1
    a += a % 2
    b = -(-count // a)
    blocks = [block(seed, number, stream, ROUND, sub) for sub in range(12)]
    keys = [key for pair in blocks for key in (pair & LONG, pair >> 64)]

    def step(place: int) -> int:
        left, right = divmod(place, b)
        for i in range(0, 24, 2):
            left = (left + ((mix(right ^ keys[i]) * a) >> 64)) % a
            right = (right + ((mix(left ^ keys[i + 1]) * b) >> 64)) % b
        return left * b + right

    order = []
    for start in range(count):
        place = step(start)
        while place >= count:
            place = step(place)
        order.append(place)
    return order


def exponential(number: int) -> float:
    u = (number >> 11) + 1
    fraction, exponent = math.frexp(u / 2**53)
    m, k = 2 * fraction, 1 - exponent
    if m > 1.4142135623730951:
        m, k = m / 2, k - 1
    s = (1.0 - m) / (1.0 + m)
    z = s * s
    t = 325 / 256
    for constant in (704 / 225, 81 / 64, 28 / 9, 5 / 4, 3.0, 1.0):
        t = constant - z / t
    return k * LN2 + 2.0 * (s / t)


def race(variate: float, weight: float) -> int:
    if variate == 0.0:
        return 0
    first, first_exponent = math.frexp(variate)
    second, second_exponent = math.frexp(weight)
    [bits] = struct.unpack("<Q", struct.pack("<d", first / second))
    return int(bits) + (first_exponent - second_exponent + 64) * 2**52


def race_pass(seed: int, stream: int, weights: tuple[float, ...], number: int) -> list[int]:
    key = block(seed, number, stream, PASS) & LONG
    keys = [
        (race(exponential(block(key, row, stream, RACE) & LONG), weight), row)
        for row, weight in enumerate(weights)
    ]
    return [row for _, row in sorted(keys)]


def rows(
    mode: str, seed: int, stream: int, weights: Sequence[float], positions: Iterable[int]
) -> list[int]:
    """Rows of the active table at the positions."""
    count = len(weights)
    if mode == "ordered":
        return [position % count for position in positions]
    if mode == "weighted":
        return weighted(seed, stream, weights, positions)

    @functools.cache
    def order(number: int) -> list[int]:
        if mode == "weighted_order":
            return race_pass(seed, stream, tuple(weights), number)
        if count <= 20:
            return small_pass(seed, stream, count, number)
        return network_pass(seed, stream, count, number)

    return [order(position // count)[position % count] for position in positions]
