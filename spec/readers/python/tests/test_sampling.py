"""Worked examples of sampling.md, and arguments that must be refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dataset_rt_reader import DrawStream, Mode
from dataset_rt_reader.checksums import crc32c
from dataset_rt_reader.sampling.position import Position, PositionError
from dataset_rt_reader.sampling.ranks import Policy, rank_positions, worker_steps
from dataset_rt_reader.sampling.stream import choose_mode

from .sealing import vectors


def test_draws_of_the_example() -> None:
    stream = DrawStream(Mode.WEIGHTED, 3, seed=42, weights=[6, 3, 1])
    assert list(stream.window(0, 12)) == [1, 0, 0, 1, 0, 0, 1, 2, 0, 0, 0, 1]
    equal = DrawStream(Mode.WEIGHTED, 10, seed=42)
    assert list(equal.window(0, 10)) == [7, 5, 0, 6, 0, 2, 8, 9, 4, 5]


def test_permutations_of_the_example() -> None:
    stream = DrawStream(Mode.PERMUTATION, 5, seed=42)
    assert list(stream.window(0, 10)) == [2, 0, 3, 1, 4, 1, 2, 0, 4, 3]
    large = DrawStream(Mode.PERMUTATION, 10**6, seed=42)
    assert [large.row(p) for p in (0, 1, 2, 3)] == [900721, 233556, 302730, 47026]
    assert (large.row(123456), large.row(3 * 10**6 + 123456)) == (840451, 837405)


def test_weighted_orders_of_the_example() -> None:
    stream = DrawStream(Mode.WEIGHTED_ORDER, 4, seed=42, weights=[1, 2, 3, 4])
    assert list(stream.window(0, 8)) == [3, 2, 1, 0, 2, 1, 3, 0]


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan, 10**400])
def test_a_weight_that_is_no_finite_number_above_zero_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight 1"):
        choose_mode(shuffle=False, replacement=False, weights=[1.0, weight])


def test_ranks_of_the_example() -> None:
    shares = [rank_positions(Policy.PAD, 100, 10, 0, 3, rank) for rank in range(3)]
    assert [[p for p, _ in share] for share in shares] == [
        [100, 103, 106, 109],
        [101, 104, 107, 100],
        [102, 105, 108, 101],
    ]
    assert [share[-1][1] for share in shares] == [False, True, True]
    assert worker_steps(10, 2, 1, 3) == [3, 4, 5, 9]
    with pytest.raises(ValueError, match="divide"):
        rank_positions(Policy.ERROR, 100, 10, 0, 3, 0)


def _position() -> dict[str, Any]:
    cases = json.loads((vectors() / "v1/units/position.json").read_bytes())["cases"]
    position: dict[str, Any] = cases[0]["in"]["position"]
    return position


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("version", True),
        ("stream", True),
        ("stream", 1.0),
        ("seed", "1" * 5000),
        ("seed", "\u0661"),
        ("seed", "1\n"),
        ("cache_heads", ["0000000g"]),
        ("cache_heads", ["00000000"] * 65),
        ("table", {"rows": "0" * 64}),
        ("caches", "0" * 64 + "\n"),
    ],
)
def test_positions_of_another_form_are_refused_by_member(member: str, value: object) -> None:
    with pytest.raises(PositionError) as caught:
        Position.parse({**_position(), member: value})
    assert caught.value.member == member


def test_a_position_of_another_dataset_is_refused_by_member() -> None:
    saved = Position.parse(_position())
    saved.check_fits(saved)
    with pytest.raises(PositionError) as caught:
        saved.check_fits(Position.parse({**_position(), "seed": "7"}))
    assert caught.value.member == "seed"


def test_the_crc_of_long_data_is_that_of_its_parts() -> None:
    data = bytes(i * 7 % 251 for i in range(10_003))
    assert crc32c(b"123456789") == 0xE3069283
    parts = 0
    for start in range(0, len(data), 1000):
        parts = crc32c(data[start : start + 1000], parts)
    assert crc32c(data) == parts
