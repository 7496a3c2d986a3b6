"""Unit cases of sampling.md. Each case is {"in": ..., "out": ...}."""

import math

from model import sampling as s
from model.philox import DRAW, MASK64, PASS, RACE, ROUND, SMALL, block, philox, scale
from model.tagged import tag, tags

_SEEDS = (0, 42, 2**64 - 1)


def u(value: int) -> dict:
    return tag("uint64", value)


def case(out, **given) -> dict:
    return {"in": given, "out": out}


def philox_words() -> list[dict]:
    """Published vectors of Philox4x32-10."""
    ones = 0xFFFFFFFF
    pi = ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0))
    given = [((0,) * 4, (0,) * 2), ((ones,) * 4, (ones,) * 2), pi]
    return [
        case(tags("uint64", philox(c, k)), counter=tags("uint64", c), key=tags("uint64", k))
        for c, k in given
    ]


def blocks() -> list[dict]:
    places = [
        (0, 0, 0, DRAW, 0), (42, 0, 0, DRAW, 0), (42, 1, 0, DRAW, 0), (42, 2**32, 0, DRAW, 0), (42, 2**63 - 1, 7, DRAW, 0),
        (2**64 - 1, 0, 2**32 - 1, DRAW, 0), (2**32, 5, 0, DRAW, 0), (42, 5, 7, ROUND, 3), (42, 0, 0, ROUND, 11), (42, 0, 0, PASS, 0),
        (42, 9, 1, RACE, 0), (42, 0, 0, SMALL, 0), (42, 10**12, 0, SMALL, 0),
    ]  # fmt: skip
    names = ("key", "index", "stream", "domain", "sub")
    return [
        case(tag("uint128", block(*p)), **dict(zip(names, map(u, p), strict=True))) for p in places
    ]


def scales() -> list[dict]:
    top = 2**128 - 1
    given = [
        (0, 1),
        (top, 1),
        (top, 2**64 - 1),
        (top, 3),
        (2**127, 2),
        (2**127 - 1, 2),
        (2**64, 2**63),
        (top, 2**63),
        (1, 2**64 - 1),
    ]
    given += [
        (block(42, i, 0, DRAW), m)
        for i in range(4)
        for m in (3, 10, 2**32 + 1, 2**62 + 1, 2**64 - 1)
    ]
    return [case(u(scale(x, m)), x=tag("uint128", x), m=u(m)) for x, m in given]


def ordered() -> list[dict]:
    given = [
        (1, [0, 1, 2**63 - 1]),
        (3, list(range(8))),
        (7, [2**40, 2**63 - 1]),
        (2**62, [2**62 - 1, 2**62, 2**63 - 1]),
    ]
    return [
        case(tags("uint64", [p % n for p in ps]), rows=u(n), positions=tags("uint64", ps))
        for n, ps in given
    ]


_WEIGHTS = [
    [1.0], [5e-324], [1.7976931348623157e308], [1.0, 2.0, 3.0], [0.5, 1.0, 1.5], [6.0, 3.0, 1.0], [0.1, 0.2, 0.3], [1e308, 5e-324],
    [5e-324] * 3, [1e308] * 3, [5e-324, 1e-323, 1.5e-323], [2.2250738585072014e-308, 2.225073858507201e-308], [1.0] * 5, [1.0, 1e-300],
    [1.0, 2.0**-62], [1.0, 2.0**-63], [1.0, 1.0000000000000002], [3.0] + [1e-300] * 9, [float(i + 1) for i in range(40)],
    [1.0 / (i + 1) for i in range(40)], [2.0 ** (i * 50 - 1000) for i in range(40)],
]  # fmt: skip


def tickets() -> list[dict]:
    out = []
    for w in _WEIGHTS:
        q = s.tickets(w)
        out.append(
            case({"tickets": tags("uint64", q), "sum": u(sum(q))}, weights=tags("float64", w))
        )
    return out


def draws() -> list[dict]:
    """Rows of positions with replacement."""
    out = []
    near, far = list(range(24)), [2**32 - 1, 2**32, 10**12, 2**63 - 1]
    for w in _WEIGHTS:
        for seed, stream, positions in [(42, 0, near), (2**64 - 1, 2**32 - 1, far)]:
            rows = s.rows_of("weighted", seed, stream, w, positions)
            out.append(_rows_case(rows, seed, stream, positions, weights=tags("float64", w)))
    return out


def draws_equal() -> list[dict]:
    """Equal weights need no table, so n may be anything."""
    out = []
    for n in (1, 2, 3, 10, 1000, 10**8, 2**32, 2**53 + 1, 2**62):
        for seed, stream, positions in [(42, 0, list(range(8))), (0, 5, [2**32, 2**63 - 1])]:
            rows = [s.equal_draw(seed, stream, n, p) for p in positions]
            out.append(_rows_case(rows, seed, stream, positions, rows=u(n)))
    return out


def _rows_case(drawn, seed, stream, positions, **more) -> dict:
    return case(
        tags("uint64", drawn),
        seed=u(seed),
        stream=u(stream),
        **more,
        positions=tags("uint64", positions),
    )


def modes() -> list[dict]:
    out = []
    tables = [[1.0], [1.0, 1.0], [2.5, 2.5, 2.5], [1.0, 2.0], [1.0, 1.0000000000000002]]
    for shuffle in (False, True):
        for replacement in (False, True):
            for w in tables:
                given = {
                    "shuffle": tag("bool", shuffle),
                    "replacement": tag("bool", replacement),
                    "weights": tags("float64", w),
                }
                out.append(case(tag("utf8", s.mode_of(shuffle, replacement, w)), **given))
    return out


def permutation_small() -> list[dict]:
    """Whole passes for n <= 20; `inverse` gives the place of each row."""
    out = []
    for n in range(1, 21):
        for seed, passed, stream in [(42, 0, 0), (42, 1, 0), (2**64 - 1, 2**40, 9)]:
            out.append(_pass_case(n, seed, passed, stream))
    return out


def permutation_large() -> list[dict]:
    out = []
    for n in (21, 22, 25, 31, 64, 97, 199):
        for seed, passed, stream in [(42, 0, 0), (7, 2**33, 2**32 - 1)]:
            out.append(_pass_case(n, seed, passed, stream))
    return out


def _pass_case(n: int, seed: int, passed: int, stream: int) -> dict:
    rows = [s.permute(seed, passed, stream, n, j) for j in range(n)]
    places = [s.permute(seed, passed, stream, n, r, inverse=True) for r in range(n)]
    assert sorted(rows) == list(range(n)) and all(places[r] == j for j, r in enumerate(rows))
    given = {"seed": u(seed), "stream": u(stream), "pass": u(passed), "rows": u(n)}
    return case({"order": tags("uint64", rows), "inverse": tags("uint64", places)}, **given)


def permutation_points() -> list[dict]:
    """Single places of large tables; `sides` are a and b."""
    out = []
    for n in (
        1000,
        10**6,
        2**32 - 1,
        2**32,
        2**32 + 1,
        2**53 + 1,
        (2**26 + 1) ** 2 - 1,
        2**61 + 2**31,
        2**62 - 1,
        2**62,
    ):
        for seed, passed, stream in [(42, 0, 0), (2**64 - 1, 1, 3)]:
            places = [0, 1, n // 3, n - 1]
            rows = [s.permute(seed, passed, stream, n, j) for j in places]
            assert places == [s.permute(seed, passed, stream, n, r, inverse=True) for r in rows]
            given = {
                "seed": u(seed),
                "stream": u(stream),
                "pass": u(passed),
                "rows": u(n),
                "places": tags("uint64", places),
            }
            out.append(
                case({"sides": tags("uint64", s.grid(n)), "rows": tags("uint64", rows)}, **given)
            )
    return out


def permutation_positions() -> list[dict]:
    """Rows by position across passes."""
    out = []
    for n, positions in [
        (1, [0, 1, 2**63 - 1]),
        (5, list(range(15))),
        (21, list(range(15, 45))),
        (232, [10**12, 10**12 + 1, 2**63 - 1]),
    ]:
        rows = s.rows_of("permutation", 42, 1, [1.0] * n, positions)
        out.append(_rows_case(rows, 42, 1, positions, rows=u(n)))
    return out


def round_keys() -> list[dict]:
    given = [(42, 0, 0), (0, 2**40, 1)]
    return [
        case(
            tags("uint64", s.round_keys(*g)),
            **dict(zip(("seed", "pass", "stream"), map(u, g), strict=True)),
        )
        for g in given
    ]


def mixes() -> list[dict]:
    return [case(u(s.mix(x)), x=u(x)) for x in (0, 1, 2**63, MASK64, 0x0123456789ABCDEF)]


def exponentials() -> list[dict]:
    sqrt_half = 6369051672525772 << 11  # about sqrt(1/2) * 2^53: where the halving begins
    given = [
        0,
        2047,
        2048,
        4095,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        MASK64,
        MASK64 - 2047,
        MASK64 - 2048,
        MASK64 - 4096,
    ]
    given += [sqrt_half + (i << 11) for i in (-2, -1, 0, 1, 2)]
    given += [block(42, i, 0, RACE) & MASK64 for i in range(30)]
    return [case(tag("float64", s.exponential(x)), x=u(x)) for x in given]


def races() -> list[dict]:
    e = [0.0, 1.0, 36.7368005696772, s.exponential(MASK64 - 2048), 0.5, 1.9999999999999998]
    w = [1.0, 5e-324, 1.5e-323, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 3.0]
    return [
        case(u(s.race(a, b)), e=tag("float64", a), weight=tag("float64", b)) for a in e for b in w
    ]


def weighted_orders() -> list[dict]:
    out = []
    tables = [
        [1.0, 2.0],
        [1.0, 2.0, 3.0, 4.0],
        [1e308, 5e-324, 1.0],
        [5e-324] * 4 + [1e-323],
        _WEIGHTS[-3],
        _WEIGHTS[-1],
    ]
    for w in tables:
        for seed, passed, stream in [(42, 0, 0), (42, 1, 0), (2**64 - 1, 2**40, 9)]:
            keys = [s.race_key(seed, passed, stream, i, x) for i, x in enumerate(w)]
            given = {
                "seed": u(seed),
                "stream": u(stream),
                "pass": u(passed),
                "weights": tags("float64", w),
            }
            order = s.weighted_order(seed, passed, stream, w)
            out.append(
                case({"keys": tags("uint64", keys), "order": tags("uint64", order)}, **given)
            )
    return out


def weighted_order_positions() -> list[dict]:
    w, positions = [1.0, 2.0, 3.0, 4.0, 0.5], list(range(3, 18))
    return [
        _rows_case(
            s.rows_of("weighted_order", seed, 2, w, positions),
            seed,
            2,
            positions,
            weights=tags("float64", w),
        )
        for seed in _SEEDS
    ]


def ranks() -> list[dict]:
    """`positions` and whether each is padding, or refused."""
    out = []
    windows = [
        (100, 10, 0),
        (100, 10, 4),
        (0, 12, 0),
        (0, 12, 12),
        (5, 7, 6),
        (2**62, 4, 0),
        (0, 3, 0),
    ]
    for policy in ("pad", "drop", "error"):
        for start, length, done in windows:
            for count in (1, 2, 3, 4):
                for rank in range(count):
                    got = s.rank_steps(policy, start, length, done, count, rank)
                    given = {
                        "policy": tag("utf8", policy),
                        "start": u(start),
                        "length": u(length),
                        "delivered": u(done),
                        "ranks": u(count),
                        "rank": u(rank),
                    }
                    shown = {"refused": tag("bool", True)}
                    if got is not None:
                        shown = {
                            "positions": tags("uint64", [p for p, _ in got]),
                            "padding": tags("bool", [f for _, f in got]),
                        }
                    out.append(case(shown, **given))
    return out


def workers() -> list[dict]:
    out = []
    for steps, count, batch in [
        (10, 1, 1),
        (10, 2, 1),
        (10, 2, 3),
        (10, 3, 4),
        (0, 2, 2),
        (5, 4, 2),
    ]:
        for worker in range(count):
            given = {"steps": u(steps), "workers": u(count), "worker": u(worker), "batch": u(batch)}
            out.append(case(tags("uint64", s.worker_steps(steps, count, worker, batch)), **given))
    return out


def digests() -> list[dict]:
    """Rows as (cache, sample); weights only where the weights digest is meant."""
    plain = [(0, i) for i in range(4)] + [(1, i) for i in range(3)]
    edited = [(1, 5), (1, 6), (1, 6), (1, 5), (0, 2**53), (0, 2**53 + 1), (2, 0)]
    given = [
        (plain, None),
        (plain, [1.0] * 7),
        (plain, [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]),
        (edited, None),
        (edited, [0.5] * 7),
        ([(0, 0)], None),
    ]
    out = []
    for rows, weights in given:
        runs = s.runs(rows, weights)
        names = ("cache", "first", "count", "weight_bits")
        shown = {
            "runs": [dict(zip(names, map(u, r), strict=False)) for r in runs],
            "digest": tag("utf8", s.table_digest(rows, weights)),
        }
        told = {
            "cache": tags("uint64", [c for c, _ in rows]),
            "sample": tags("uint64", [i for _, i in rows]),
        }
        out.append(
            case(shown, **told, **({"weights": tags("float64", weights)} if weights else {}))
        )
    return out


def caches_digests() -> list[dict]:
    idents = [bytes([i]) * 32 for i in range(3)]
    return [
        case(tag("utf8", s.caches_digest(g)), identities=tags("bytes", g))
        for g in (idents[:1], idents, idents[::-1])
    ]


def positions() -> list[dict]:
    """A saved position as its JSON text, and whether its form is accepted."""
    idents = [bytes([i]) * 32 for i in range(2)]
    rows = [(0, i) for i in range(4)] + [(1, i) for i in range(3)]
    weights = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    good = {
        "format": "dataset_rt.position", "version": 1, "algorithm": 1, "mode": "weighted", "seed": str(2**64 - 1), "stream": 3, "rows": "7",
        "window_start": "20", "window_len": "10", "delivered": "4", "next": "30", "epoch_len": "10",
        "caches": s.caches_digest(idents), "cache_heads": [i.hex()[:8] for i in idents],
        "table": {"rows": s.table_digest(rows, None), "weights": s.table_digest(rows, weights)},
    }  # fmt: skip
    changes = [
        (None, {}), (None, {"epoch_len": None}), (None, {"window_start": "30", "window_len": "0", "delivered": "0"}), ("later", {"later": 1}),
        (None, {"mode": "ordered", "table": {**good["table"], "weights": None}}), (None, {"next": "50"}),
        ("format", {"format": "other"}), ("version", {"version": 2}), ("algorithm", {"algorithm": 2}), ("mode", {"mode": "random"}),
        ("seed", {"seed": 42}), ("seed", {"seed": str(2**64)}), ("seed", {"seed": "-1"}), ("seed", {"seed": "042"}),
        ("stream", {"stream": 2**32}), ("rows", {"rows": "0"}), ("epoch_len", {"epoch_len": "0"}), ("cache_heads", {"cache_heads": []}), ("delivered", {"delivered": "11"}), ("next", {"next": "29"}),
        ("window_len", {"window_len": str(2**63)}), ("caches", {"caches": "00"}), ("table", {"table": {"rows": "00" * 32, "weights": None}}), ("table", {"mode": "ordered"}),
    ]  # fmt: skip
    out = []
    for member, change in changes:
        shown = {"accepted": tag("bool", member is None)} | (
            {"member": tag("utf8", member)} if member else {}
        )
        out.append(case(shown, position={**good, **change}))
    missing = {k: v for k, v in good.items() if k != "next"}
    out.append(
        case({"accepted": tag("bool", False), "member": tag("utf8", "next")}, position=missing)
    )
    return out


def position_ranges() -> list[dict]:
    """Ends of the ranges of a saved position."""
    good = positions()[0]["in"]["position"]
    end = str(2**63)
    changes = [
        (None, {"window_start": end, "window_len": "0", "delivered": "0", "next": end}),
        (None, {"window_start": "0", "window_len": end, "delivered": end, "next": end}),
        (None, {"rows": str(2**62)}),
        (None, {"epoch_len": str(2**63 - 1)}),
        (None, {"stream": 2**32 - 1}),
        (None, {"cache_heads": ["00000000"] * 64}),
        ("rows", {"rows": str(2**62 + 1)}),
        ("window_start", {"window_start": 20}),
        ("next", {"next": str(2**63 + 1)}),
        ("epoch_len", {"epoch_len": end}),
        ("epoch_len", {"epoch_len": 10}),
        ("stream", {"stream": "3"}),
        ("stream", {"stream": -1}),
        ("cache_heads", {"cache_heads": ["00000000"] * 65}),
        ("cache_heads", {"cache_heads": ["0000000A"]}),
        ("cache_heads", {"cache_heads": "00000000"}),
        ("caches", {"caches": good["caches"].upper()}),
        ("table", {"table": good["table"] | {"more": None}}),
        ("table", {"table": {"rows": good["table"]["rows"]}}),
        ("table", {"table": good["table"] | {"rows": "00"}}),
        ("delivered", {"delivered": None}),
        ("mode", {"mode": None}),
    ]
    out = []
    for member, change in changes:
        shown = {"accepted": tag("bool", member is None)}
        shown |= {"member": tag("utf8", member)} if member else {}
        out.append(case(shown, position={**good, **change}))
    return out


def small_numbers() -> list[dict]:
    """The draw below n! behind a pass of n <= 20."""
    return [
        case(
            u(scale(block(42, 0, 0, SMALL), math.factorial(n))),
            rows=u(n),
            seed=u(42),
            **{"pass": u(0)},
            stream=u(0),
        )
        for n in range(1, 21)
    ]


CASES = {
    "philox": (philox_words, ["sampling 3"]),
    "blocks": (blocks, ["sampling 3"]),
    "scale": (scales, ["sampling 4"]),
    "ordered": (ordered, ["sampling 5"]),
    "tickets": (tickets, ["sampling 6.3"]),
    "draws": (draws, ["sampling 6"]),
    "draws-equal": (draws_equal, ["sampling 6.2"]),
    "modes": (modes, ["sampling 1"]),
    "permutation-number": (small_numbers, ["sampling 7.1"]),
    "permutation-small": (permutation_small, ["sampling 7.1"]),
    "permutation-large": (permutation_large, ["sampling 7.2"]),
    "permutation-points": (permutation_points, ["sampling 7.2"]),
    "permutation-positions": (permutation_positions, ["sampling 7"]),
    "round-keys": (round_keys, ["sampling 7.2"]),
    "mix": (mixes, ["sampling 7.2"]),
    "exponential": (exponentials, ["sampling 8.1"]),
    "race": (races, ["sampling 8.2"]),
    "weighted-order": (weighted_orders, ["sampling 8"]),
    "weighted-order-positions": (weighted_order_positions, ["sampling 8"]),
    "ranks": (ranks, ["sampling 10"]),
    "workers": (workers, ["sampling 10"]),
    "table-digest": (digests, ["sampling 11.2"]),
    "caches-digest": (caches_digests, ["sampling 11.1"]),
    "position": (positions, ["sampling 12"]),
    "position-ranges": (position_ranges, ["sampling 12"]),
}
