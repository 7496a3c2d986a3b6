"""CRC-32C of format.md section 2, and sums over files and blocks."""

from __future__ import annotations

import struct
from functools import cache
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK_SIZE = 65536
"""Bytes under one sum of sections 17, 18 and 32 of ``index.bin``."""

_POLYNOMIAL = 0x82F63B78


def _step(crc: int, _: object = None) -> int:
    return crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)


_BYTE_TABLE = tuple(list(accumulate(repeat(0, 8), _step, initial=i))[-1] for i in range(256))


@cache
def _word_tables() -> tuple[list[int], list[int]]:
    """Tables that advance a CRC by four bytes in two look-ups of 16 bits each.

    Each is linear: the entry of a number is the xor of the entries of its two bytes.
    """
    byte = _BYTE_TABLE
    after = [list(byte)]
    for _ in range(3):
        after.append([c >> 8 ^ byte[c & 255] for c in after[-1]])
    low = [after[3][i & 255] ^ after[2][i >> 8] for i in range(65536)]
    high = [after[1][i & 255] ^ after[0][i >> 8] for i in range(65536)]
    return low, high


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    """Return the CRC-32C of ``data``; ``crc`` is that of the bytes before it."""
    view = memoryview(data)
    crc ^= 0xFFFFFFFF
    whole = len(view) & ~3
    # Tables of 65,536 entries cost some milliseconds once, so short inputs don't ask for them.
    if whole >= 4096:
        low, high = _word_tables()
        for (word,) in struct.iter_unpack("<I", view[:whole]):
            crc ^= word
            crc = low[crc & 0xFFFF] ^ high[crc >> 16]
        view = view[whole:]
    table = _BYTE_TABLE
    for byte in view:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def crc32c_of(pieces: Iterable[bytes]) -> int:
    """Return the CRC-32C of all pieces, one after another."""
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    return crc


def block_sums(data: bytes) -> list[int]:
    """Return the CRC of each block of 65,536 bytes; the last block may be shorter."""
    return [crc32c(data[i : i + BLOCK_SIZE]) for i in range(0, len(data), BLOCK_SIZE)]
