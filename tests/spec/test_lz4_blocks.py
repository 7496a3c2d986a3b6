"""Blocks that the writer compresses keep the rules of LZ4 that decoders need not check."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from dataset_rt import CacheInput, ShardCompression, WriterConfig

from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))


def records(shard: bytes) -> list[tuple[bytes, int]]:
    """Stored bytes and length of the payload of each record that is compressed."""
    trailer = shard[-64:]
    count = int.from_bytes(trailer[:8], "little")
    footer = int.from_bytes(trailer[8:16], "little")
    out, at = [], 64
    for i in range(count):
        stored = int.from_bytes(shard[footer + 8 * i :][:4], "little")
        raw = int.from_bytes(shard[footer + 8 * count + 4 * i :][:4], "little")
        at = -(-at // 8) * 8
        if stored < raw:
            out.append((shard[at : at + stored], raw))
        at += stored
    return out


def matches(block: bytes) -> tuple[list[int], int, int]:
    """Where matches begin in the output, the last sequence's literals, and the output's length."""
    at = made = 0
    begins: list[int] = []
    while True:
        token = block[at]
        at += 1
        literals, at = length(block, at, token >> 4)
        at += literals
        made += literals
        if at == len(block):
            return begins, literals, made
        at += 2
        more, at = length(block, at, token & 15)
        begins.append(made)
        made += more + 4


def length(block: bytes, at: int, half: int) -> tuple[int, int]:
    if half < 15:
        return half, at
    while True:
        half += block[at]
        at += 1
        if block[at - 1] < 255:
            return half, at


def test_written_blocks_end_as_lz4_wants(
    make_cache: Callable[..., Path],
) -> None:
    rng = random.Random(5)
    payloads = [b"ab" * n for n in range(1, 200)]
    payloads += [bytes(n) for n in (13, 20, 255, 4096, 70_000)]
    payloads += [rng.randbytes(n) + b"tail" * 9 + rng.randbytes(n % 13) for n in range(1, 90)]
    path = make_cache([CacheInput(p, {}) for p in payloads], config=CONFIG)
    blocks = records((path / "shards/000000.bin").read_bytes())
    assert len(blocks) > 200
    for block, raw in blocks:
        begins, literals, made = matches(block)
        assert made == raw
        assert literals >= 5
        assert max(begins) <= raw - 12
    assert support.listing(path / "shards") == ["000000.bin"]
