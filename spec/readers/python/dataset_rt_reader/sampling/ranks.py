"""Sharing a window between ranks and loader workers (sampling.md section 10)."""

from __future__ import annotations

from enum import Enum


class Policy(str, Enum):
    """What happens where the window doesn't divide into equal parts."""

    PAD = "pad"
    DROP = "drop"
    ERROR = "error"


def rank_positions(
    policy: Policy, start: int, length: int, delivered: int, ranks: int, rank: int
) -> list[tuple[int, bool]]:
    """Return position and padding mark of every step of a rank.

    Args:
        policy: what to do with a remainder.
        start: first position of the window, P.
        length: its length, L.
        delivered: positions that all ranks together have delivered before.
        ranks: number of ranks, R.
        rank: number of this rank.

    Raises:
        ValueError: the window is shorter than the number of ranks, or the policy refuses.

    """
    if not (0 <= rank < ranks and 0 <= delivered <= length):
        raise ValueError(f"rank {rank} of {ranks}, {delivered} of {length} delivered")
    if length < ranks:
        raise ValueError(f"a window of {length} is too short for {ranks} ranks")
    left = length - delivered
    steps, rest = divmod(left, ranks)
    if policy is Policy.ERROR and rest:
        raise ValueError(f"{left} positions don't divide by {ranks} ranks")
    if policy is Policy.PAD and rest:
        steps += 1
    positions = []
    for step in range(steps):
        offset = step * ranks + rank
        padding = offset >= left
        place = (delivered + offset) % length if padding else delivered + offset
        positions.append((start + place, padding))
    return positions


def worker_steps(steps: int, workers: int, worker: int, batch: int = 1) -> list[int]:
    """Return the steps of its rank that a loader worker takes."""
    return [step for step in range(steps) if step // batch % workers == worker]
