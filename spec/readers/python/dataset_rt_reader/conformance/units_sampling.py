"""Outputs of the unit vectors of sampling.md."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from dataset_rt_reader.sampling import philox as generator
from dataset_rt_reader.sampling.digests import caches_digest, table_digest, table_runs
from dataset_rt_reader.sampling.permutation import (
    PassPermutation,
    mix,
    permutation_number,
    round_keys,
    sides,
)
from dataset_rt_reader.sampling.position import Position, PositionError
from dataset_rt_reader.sampling.ranks import Policy, rank_positions, worker_steps
from dataset_rt_reader.sampling.stream import DrawStream, Mode, choose_mode
from dataset_rt_reader.sampling.tickets import tickets
from dataset_rt_reader.sampling.weighted_order import exponential, pass_order, race, race_keys

from .tagged import tag, tags

if TYPE_CHECKING:
    from pathlib import Path

    from .tagged import Inputs, Json


def philox(case: Inputs, _folder: Path) -> Json:
    """``unit/philox``."""
    c0, c1, c2, c3 = case.numbers("counter")
    k0, k1 = case.numbers("key")
    return tags("uint64", generator.philox((c0, c1, c2, c3), (k0, k1)))


def blocks(case: Inputs, _folder: Path) -> Json:
    """``unit/blocks``."""
    names = ("key", "index", "stream", "domain", "sub")
    return tag("uint128", generator.block(*(case.number(name) for name in names)))


def scale(case: Inputs, _folder: Path) -> Json:
    """``unit/scale``."""
    return tag("uint64", generator.scale(case.number("x"), case.number("m")))


def _positions(case: Inputs, mode: Mode) -> Json:
    weights = case.reals("weights") if "weights" in case else None
    stream = DrawStream(
        mode,
        case.number("rows") if weights is None else len(weights),
        seed=case.number("seed") if "seed" in case else 0,
        stream=case.number("stream") if "stream" in case else 0,
        weights=weights,
    )
    return tags("uint64", map(stream.row, case.numbers("positions")))


def ordered(case: Inputs, _folder: Path) -> Json:
    """``unit/ordered``."""
    return _positions(case, Mode.ORDERED)


def ticket_table(case: Inputs, _folder: Path) -> Json:
    """``unit/tickets``."""
    table = tickets(case.reals("weights"))
    return {"tickets": tags("uint64", table), "sum": tag("uint64", sum(table))}


def draws(case: Inputs, _folder: Path) -> Json:
    """``unit/draws`` and ``unit/draws-equal``."""
    return _positions(case, Mode.WEIGHTED)


def mode(case: Inputs, _folder: Path) -> Json:
    """``unit/modes``."""
    chosen = choose_mode(
        shuffle=case.flag("shuffle"),
        replacement=case.flag("replacement"),
        weights=case.reals("weights"),
    )
    return tag("utf8", chosen.value)


def number_of_permutation(case: Inputs, _folder: Path) -> Json:
    """``unit/permutation-number``."""
    names = ("rows", "seed", "pass", "stream")
    return tag("uint64", permutation_number(*(case.number(name) for name in names)))


def _permutation(case: Inputs) -> PassPermutation:
    return PassPermutation(*(case.number(name) for name in ("rows", "seed", "pass", "stream")))


def permutation(case: Inputs, _folder: Path) -> Json:
    """``unit/permutation-small`` and ``unit/permutation-large``."""
    drawn = _permutation(case)
    rows = range(case.number("rows"))
    return {
        "order": tags("uint64", map(drawn.row, rows)),
        "inverse": tags("uint64", map(drawn.place, rows)),
    }


def permutation_points(case: Inputs, _folder: Path) -> Json:
    """``unit/permutation-points``; the inverse has to lead back."""
    drawn = _permutation(case)
    places = case.numbers("places")
    rows = [drawn.row(place) for place in places]
    if [drawn.place(row) for row in rows] != places:
        raise ArithmeticError("the inverse doesn't lead back")
    return {
        "sides": tags("uint64", sides(case.number("rows"))),
        "rows": tags("uint64", rows),
    }


def permutation_positions(case: Inputs, _folder: Path) -> Json:
    """``unit/permutation-positions``."""
    return _positions(case, Mode.PERMUTATION)


def keys_of_rounds(case: Inputs, _folder: Path) -> Json:
    """``unit/round-keys``."""
    names = ("seed", "pass", "stream")
    return tags("uint64", round_keys(*(case.number(name) for name in names)))


def mixed(case: Inputs, _folder: Path) -> Json:
    """``unit/mix``."""
    return tag("uint64", mix(case.number("x")))


def variate(case: Inputs, _folder: Path) -> Json:
    """``unit/exponential``."""
    return tag("float64", exponential(case.number("x")))


def race_key(case: Inputs, _folder: Path) -> Json:
    """``unit/race``."""
    return tag("uint64", race(case.real("e"), case.real("weight")))


def weighted_order(case: Inputs, _folder: Path) -> Json:
    """``unit/weighted-order``."""
    weights = case.reals("weights")
    seed, number, stream = (case.number(name) for name in ("seed", "pass", "stream"))
    return {
        "keys": tags("uint64", race_keys(weights, seed, number, stream)),
        "order": tags("uint64", pass_order(weights, seed, number, stream)),
    }


def weighted_order_positions(case: Inputs, _folder: Path) -> Json:
    """``unit/weighted-order-positions``."""
    return _positions(case, Mode.WEIGHTED_ORDER)


def ranks(case: Inputs, _folder: Path) -> Json:
    """``unit/ranks``."""
    names = ("start", "length", "delivered", "ranks", "rank")
    numbers = [case.number(name) for name in names]
    try:
        steps = rank_positions(Policy(case.text("policy")), *numbers)
    except ValueError:
        return {"refused": tag("bool", True)}  # noqa: FBT003 - a value and no switch
    return {
        "positions": tags("uint64", [position for position, _ in steps]),
        "padding": tags("bool", [padding for _, padding in steps]),
    }


def workers(case: Inputs, _folder: Path) -> Json:
    """``unit/workers``."""
    names = ("steps", "workers", "worker", "batch")
    return tags("uint64", worker_steps(*(case.number(name) for name in names)))


def table(case: Inputs, _folder: Path) -> Json:
    """``unit/table-digest``."""
    rows = list(zip(case.numbers("cache"), case.numbers("sample"), strict=True))
    runs = table_runs(rows, case.reals("weights") if "weights" in case else None)
    shown: list[Json] = [
        {name: tag("uint64", value) for name, value in asdict(run).items() if value is not None}
        for run in runs
    ]
    return {"runs": shown, "digest": tag("utf8", table_digest(runs))}


def caches(case: Inputs, _folder: Path) -> Json:
    """``unit/caches-digest``."""
    return tag("utf8", caches_digest(case.data_list("identities")))


def position(case: Inputs, _folder: Path) -> Json:
    """``unit/position``."""
    document = case.plain("position")
    if not isinstance(document, dict):
        raise TypeError("position is no object")
    try:
        Position.parse(document)
    except PositionError as error:
        return {
            "accepted": tag("bool", False),  # noqa: FBT003 - a value and no switch
            "member": tag("utf8", error.member),
        }
    return {"accepted": tag("bool", True)}  # noqa: FBT003 - a value and no switch
