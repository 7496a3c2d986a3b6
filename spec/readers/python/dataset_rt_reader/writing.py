"""Rules of writers that decide where shards and batches end (format.md 7.4 and 11.1).

A reader doesn't need them; they are here so that every vector can be run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .manifest import Codec

BATCH_ROWS = 65536
BATCH_TEXT = 2**24


def shard_samples(
    stored_lengths: Iterable[int], max_shard_bytes: int, alignment: int, codec: Codec
) -> list[int]:
    """Return the number of samples of each shard that a writer makes of these records.

    ``alignment`` and ``max_shard_bytes`` are in bytes.
    """
    shards: list[int] = []
    end = count = 0
    for length in stored_lengths:
        if count:
            new_end = -(-end // alignment) * alignment + length
            size = -(-new_end // 64) * 64 + codec.footer_size(count + 1) + 64
            if size <= max_shard_bytes:
                end, count = new_end, count + 1
                continue
            shards.append(count)
        end, count = 64 + -64 % alignment + length, 1
    return [*shards, count] if count else shards


def batch_rows(text_runs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the number of rows of each batch.

    ``text_runs`` are runs of rows of equal length: ``(rows, bytes of text in each row)``.
    """
    batches: list[int] = []
    rows = text = 0
    for run, size in text_runs:
        left = run
        while left:
            room = BATCH_ROWS - rows
            if size:
                room = min(room, max(0, BATCH_TEXT - text) // size)
            if rows == 0:
                room = max(room, 1)
            taken = min(room, left)
            rows, text, left = rows + taken, text + taken * size, left - taken
            if left:
                batches.append(rows)
                rows = text = 0
    return [*batches, rows] if rows else batches
