"""Prints golden.rs: expected rows of the sampler, worked out from the definition of the stream alone.

    python3 golden.py > golden.rs

Plain integers, binary64 arithmetic and hashlib; no tables, no batches, no short cuts, so that it shares
nothing with the library but the definition. Only the standard library is needed (CPython 3.8 or later).
"""

import hashlib
import math
import struct

M32, M64 = 2**32 - 1, 2**64 - 1
DRAW, ROUND, PASS, RACE, SMALL = 1, 2, 3, 4, 5


def philox(counter, key):
    """Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M32, (p0 >> 32) ^ c[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def block(key, index, stream, domain, sub=0):
    counter = (index & M32, index >> 32, stream, domain + 256 * sub)
    return sum(w << (32 * i) for i, w in enumerate(philox(counter, (key & M32, key >> 32))))


def scale(x, m):
    return (x * m) >> 128


# With replacement.


def split(w):
    """The weight as sig * 2**e with sig below 2**53."""
    bits = struct.unpack("<Q", struct.pack("<d", w))[0]
    field, mantissa = bits >> 52, bits & (2**52 - 1)
    return (mantissa, -1074) if field == 0 else (mantissa + 2**52, field - 1075)


def tickets(weights):
    pairs = [split(w) for w in weights]
    top = max(sig.bit_length() - 1 + e for sig, e in pairs)
    scaled = []
    for sig, e in pairs:
        shift = e + 62 - top
        scaled.append(sig << shift if shift >= 0 else sig >> -shift)
    s = max(0, sum(scaled).bit_length() - 63)
    return [max(1, t >> s) for t in scaled]


def weighted(seed, stream, weights, position):
    q = tickets(weights)
    ticket = scale(block(seed, position, stream, DRAW), sum(q))
    for row, count in enumerate(q):
        if ticket < count:
            return row
        ticket -= count


def uniform(seed, stream, n, position):
    return scale(block(seed, position, stream, DRAW), n)


# Without replacement, equal weights.


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def sides(n):
    a = math.isqrt(n - 1) + 1
    a += a % 2
    return a, -(-n // a)


def permutation(seed, stream, n, position):
    number, j = divmod(position, n)
    if n <= 20:
        r = scale(block(seed, number, stream, SMALL), math.factorial(n))
        left = list(range(n))
        for i in range(j + 1):
            d, r = divmod(r, math.factorial(n - 1 - i))
            row = left.pop(d)
        return row
    a, b = sides(n)
    keys = []
    for i in range(12):
        x = block(seed, number, stream, ROUND, i)
        keys += [x & M64, x >> 64]
    while True:
        left, right = divmod(j, b)
        for i, k in enumerate(keys):
            if i % 2 == 0:
                left = (left + (mix(right ^ k) * a >> 64)) % a
            else:
                right = (right + (mix(left ^ k) * b >> 64)) % b
        j = left * b + right
        if j < n:
            return j


# Without replacement, unequal weights.

LN2 = round(math.log(2.0) * 2**47) / 2**47


def exponential(x):
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


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def race(e, w):
    if e == 0.0:
        return 0
    (m1, e1), (m2, e2) = math.frexp(e), math.frexp(w)
    return bits(m1 / m2) + (e1 - e2 + 64) * 2**52


ORDERS = {}


def weighted_order(seed, stream, weights, position):
    number, j = divmod(position, len(weights))
    at = (seed, stream, tuple(weights), number)
    if at not in ORDERS:
        key = block(seed, number, stream, PASS) & M64
        x = (block(key, i, stream, RACE) & M64 for i in range(len(weights)))
        races = [(race(exponential(v), w), i) for i, (v, w) in enumerate(zip(x, weights))]
        ORDERS[at] = [row for _, row in sorted(races)]
    return ORDERS[at][j]


# Printing.

WEIGHTS = {
    "COUNTED": [1.0, 2.0, 3.0, 4.0],
    "FRACTIONS": [0.1 * (i * 7919 % 31 + 1) for i in range(57)],
    "FAR_APART": [1e308, 5e-324, 1.0, 1e-300, 1e308],
    "NEARLY_NONE": [1.0, 1e-300, 1.0, 1.0],
    "SUBNORMAL": [5e-324, 1e-323, 1.5e-323],
    "LARGEST": [1.7976931348623157e308, 8.98846567431158e307, 1e308],
    "MANY": [float(i % 97 + 1) ** 3 / 7.0 for i in range(5000)],
}
SEEDS = [(0, 0), (42, 7), (2**64 - 1, 2**32 - 1)]
SIZES = [1, 2, 3, 7, 19, 20, 21, 22, 25, 37, 1000, 1_000_003, 2**32 - 1, 2**32 + 1, 2**53 + 1, 2**62]


def starts(n):
    last = 2**63 - 1
    found = {0, n - 2, n * 2**32 - 1, 2**63 - 4}
    return sorted(p for p in found if 0 <= p <= last - 3)


def main():
    out = print
    out("//! Expected rows, printed by golden.py; not written by hand and never adapted to the code.")
    out("")
    out("/// One stretch of a stream: seed, stream word, first position, rows of four positions.")
    out("pub(super) type Stretch = (u64, u32, u64, [u64; 4]);")
    out("/// Stretches of the streams over so many rows of equal weight.")
    out("pub(super) type Sized = (u64, &'static [Stretch]);")
    for title, draw in (("UNIFORM", uniform), ("PERMUTATION", permutation)):
        out(f"pub(super) const {title}: &[Sized] = &[")
        for n in SIZES:
            out(f"({n}, &[")
            for seed, stream in SEEDS:
                for p in starts(n):
                    rows = [draw(seed, stream, n, p + i) for i in range(4)]
                    out(f"({seed}, {stream}, {p}, {rows}),")
            out("]),")
        out("];")
    for name, weights in WEIGHTS.items():
        n = len(weights)
        small = n < 100
        if small:
            out(f"pub(super) const {name}: &[f64] = &{[f'f64::from_bits({bits(w)})' for w in weights]};"
                .replace("'", ""))
            out(f"pub(super) const {name}_TICKETS: &[u64] = &{tickets(weights)};")
        for title, draw in (("WEIGHTED", weighted), ("ORDER", weighted_order)):
            out(f"pub(super) const {name}_{title}: &[Stretch] = &[")
            for seed, stream in SEEDS:
                for p in starts(n) if small else (0, n - 2):
                    rows = [draw(seed, stream, weights, p + i) for i in range(4)]
                    out(f"({seed}, {stream}, {p}, {rows}),")
            out("];")
    out("/// A random word, the bits of its exponential variate, and its race keys for the weights beside.")
    out("pub(super) const RACES: &[(u64, u64, [u64; 5])] = &[")
    words = [0, 1, 2**11 - 1, 2**11, M64, M64 - 2**11, 2**63, 2**63 - 1, 13043817825332782212, 13043817825332782213,
             *(mix(i) for i in range(1, 40))]
    for x in words:
        e = exponential(x)
        out(f"({x}, {bits(e)}, {[race(e, w) for w in (1.0, 0.3, 5e-324, 1e308, 2.2250738585072014e-308)]}),")
    out("];")
    runs = [(0, 0, 1000), (1, 5, 1), (1, 4, 3), (2, 2**40, 2)]
    rows = b"".join(struct.pack("<3Q", *run) for run in runs)
    out(f'pub(super) const ROWS_DIGEST: &str = "{hashlib.sha256(b"dataset_rt table 1" + bytes(1) + rows).hexdigest()}";')
    runs = [(0, 0, 400, 1.0), (0, 400, 600, 2.0), (1, 5, 1, 2.0), (1, 4, 3, 0.5), (2, 2**40, 2, 0.5)]
    rows = b"".join(struct.pack("<3Qd", *run) for run in runs)
    out(f'pub(super) const WEIGHTS_DIGEST: &str = "{hashlib.sha256(b"dataset_rt table 1" + bytes(1) + rows).hexdigest()}";')
    joined = hashlib.sha256(bytes([1] * 32) + bytes(range(32))).hexdigest()
    out(f'pub(super) const CACHES_DIGEST: &str = "{joined}";')


if __name__ == "__main__":
    main()
