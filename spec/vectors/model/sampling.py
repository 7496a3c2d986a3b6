"""The four modes, windows, ranks and digests (sampling.md, sections 4 to 12)."""

import hashlib
import math
import struct
from bisect import bisect_right
from itertools import accumulate

from .philox import DRAW, MASK64, PASS, RACE, ROUND, SMALL, block, scale

# --- permutation of one pass -------------------------------------------------------------------

_ROUNDS = 24


def small_permutation(seed: int, passed: int, stream: int, n: int) -> list[int]:
    """All of a pass for n <= 20: the permutation whose number is one draw below n!."""
    rest = scale(block(seed, passed, stream, SMALL), math.factorial(n))
    left, out = list(range(n)), []
    for i in range(n):
        digit, rest = divmod(rest, math.factorial(n - 1 - i))
        out.append(left.pop(digit))
    return out


def grid(n: int) -> tuple[int, int]:
    """Sides of the rectangle the network of n > 20 permutes."""
    a = math.isqrt(n)
    if a * a < n:
        a += 1
    a += a & 1
    return a, -(-n // a)


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


def round_keys(seed: int, passed: int, stream: int) -> list[int]:
    keys = []
    for i in range(_ROUNDS // 2):
        b = block(seed, passed, stream, ROUND, i)
        keys += [b & MASK64, b >> 64]
    return keys


def network(keys: list[int], a: int, b: int, j: int, *, inverse: bool = False) -> int:
    """One walk step: the bijection of 0 .. a*b-1."""
    left, right = divmod(j, b)
    sign = -1 if inverse else 1
    for i in reversed(range(_ROUNDS)) if inverse else range(_ROUNDS):
        if i % 2 == 0:
            left = (left + sign * ((mix(right ^ keys[i]) * a) >> 64)) % a
        else:
            right = (right + sign * ((mix(left ^ keys[i]) * b) >> 64)) % b
    return left * b + right


def permute(seed: int, passed: int, stream: int, n: int, j: int, *, inverse: bool = False) -> int:
    """Place j of a pass -> row, or back."""
    if n <= 20:
        order = small_permutation(seed, passed, stream, n)
        return order.index(j) if inverse else order[j]
    a, b = grid(n)
    keys = round_keys(seed, passed, stream)
    while True:
        j = network(keys, a, b, j, inverse=inverse)
        if j < n:
            return j


# --- weights -----------------------------------------------------------------------------------


def bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def from_bits(value: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", value))[0]


def split(weight: float) -> tuple[int, int]:
    """sig, e with weight = sig * 2^e and sig < 2^53."""
    raw = bits(weight)
    assert 0 < raw < 0x7FF << 52, "finite and positive"
    exponent, fraction = raw >> 52, raw & ((1 << 52) - 1)
    return (fraction, -1074) if exponent == 0 else (fraction | 1 << 52, exponent - 1075)


def tickets(weights: list[float]) -> list[int]:
    sig, e = split(max(weights))
    top = e + sig.bit_length() - 1
    scaled = []
    for w in weights:
        sig, e = split(w)
        shift = e + 62 - top
        scaled.append(sig << shift if shift >= 0 else sig >> -shift)
    s = max(0, sum(scaled).bit_length() - 63)
    return [max(1, t >> s) for t in scaled]


def all_equal(weights: list[float]) -> bool:
    return len({bits(w) for w in weights}) == 1


# --- weighted order ----------------------------------------------------------------------------

LN2 = 97_551_793_252_584 / (1 << 47)
SQRT2 = 1.4142135623730951


def exponential(x: int) -> float:
    """An exponential variate from 64 bits, the same in every IEEE 754 arithmetic."""
    u = (x >> 11) + 1
    k = 53 - (u.bit_length() - 1)
    m = u / (1 << (u.bit_length() - 1))
    if m > SQRT2:
        m, k = m / 2, k - 1
    s = (1.0 - m) / (1.0 + m)
    z = s * s
    t = 325 / 256
    for c in (704 / 225, 81 / 64, 28 / 9, 5 / 4, 3.0, 1.0):
        t = c - z / t
    return k * LN2 + 2.0 * (s / t)


def race(e: float, w: float) -> int:
    if e == 0.0:
        return 0
    m1, e1 = math.frexp(e)
    m2, e2 = math.frexp(w)
    return bits(m1 / m2) + (e1 - e2 + 64) * (1 << 52)


def race_key(seed: int, passed: int, stream: int, row: int, weight: float) -> int:
    sub_key = block(seed, passed, stream, PASS) & MASK64
    return race(exponential(block(sub_key, row, stream, RACE) & MASK64), weight)


def weighted_order(seed: int, passed: int, stream: int, weights: list[float]) -> list[int]:
    keys = [race_key(seed, passed, stream, i, w) for i, w in enumerate(weights)]
    return sorted(range(len(weights)), key=lambda i: (keys[i], i))


# --- modes -------------------------------------------------------------------------------------


def mode_of(shuffle: bool, replacement: bool, weights: list[float]) -> str:
    if not shuffle:
        return "ordered"
    if replacement:
        return "weighted"
    return "permutation" if all_equal(weights) else "weighted_order"


def rows_of(mode: str, seed: int, stream: int, weights: list[float], positions) -> list[int]:
    n = len(weights)
    if mode == "ordered":
        return [p % n for p in positions]
    if mode == "weighted":
        ends = list(accumulate(tickets(weights)))
        draw = (scale(block(seed, p, stream, DRAW), ends[-1]) for p in positions)
        return [bisect_right(ends, t) for t in draw]
    if mode == "permutation":
        return [permute(seed, p // n, stream, n, p % n) for p in positions]
    orders: dict[int, list[int]] = {}
    out = []
    for p in positions:
        if p // n not in orders:
            orders[p // n] = weighted_order(seed, p // n, stream, weights)
        out.append(orders[p // n][p % n])
    return out


def equal_draw(seed: int, stream: int, n: int, position: int) -> int:
    """A draw with replacement when all weights are the same."""
    return scale(block(seed, position, stream, DRAW), n)


# --- ranks and loader workers ------------------------------------------------------------------


def rank_steps(policy: str, start: int, length: int, done: int, ranks: int, rank: int):
    """Positions of one rank with their padding flag, or None where the policy refuses."""
    left = length - done
    if length < ranks or (policy == "error" and left % ranks):
        return None
    steps = -(-left // ranks) if policy == "pad" else left // ranks
    out = []
    for t in range(steps):
        o = t * ranks + rank
        if o < left:
            out.append((start + done + o, False))
        else:
            out.append((start + (done + o) % length, True))
    return out


def worker_steps(steps: int, workers: int, worker: int, batch: int) -> list[int]:
    return [t for t in range(steps) if t // batch % workers == worker]


# --- digests -----------------------------------------------------------------------------------


def runs(rows: list[tuple[int, int]], weights: list[float] | None) -> list[tuple[int, ...]]:
    """Longest sequences of one cache with ids rising by one, and one weight where weights count."""
    out: list[list[int]] = []
    for i, (cache, sample) in enumerate(rows):
        tail = [] if weights is None else [bits(weights[i])]
        last = out[-1] if out else None
        if last and last[0] == cache and last[1] + last[2] == sample and last[3:] == tail:
            last[2] += 1
        else:
            out.append([cache, sample, 1, *tail])
    return [tuple(r) for r in out]


def table_digest(rows: list[tuple[int, int]], weights: list[float] | None) -> str:
    h = hashlib.sha256(b"dataset_rt table 1\0")
    for run in runs(rows, weights):
        h.update(struct.pack(f"<{len(run)}Q", *run))
    return h.hexdigest()


def caches_digest(identities: list[bytes]) -> str:
    return hashlib.sha256(b"".join(identities)).hexdigest()
