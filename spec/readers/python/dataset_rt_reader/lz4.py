"""Decoder of one LZ4 block, as strict as format.md section 5.5 asks."""

from __future__ import annotations


class BlockError(ValueError):
    """A block doesn't decode to exactly the expected number of bytes."""


def decompress_block(block: bytes, raw_len: int) -> bytes:
    """Decode ``block`` to exactly ``raw_len`` bytes.

    Memory grows with what was decoded and never beyond ``raw_len``. The two end-of-block rules
    for writers are not checked.

    Raises:
        BlockError: the block is cut short, reaches outside of its output, ends in a match, or
            makes more or fewer bytes.

    """
    out = bytearray()
    end = len(block)
    at = 0
    while True:
        if at >= end:
            raise BlockError("the block doesn't end after literals")
        token = block[at]
        at += 1
        literals, at = _length(block, at, token >> 4)
        if literals > end - at:
            raise BlockError(f"{literals} literals, but {end - at} bytes are left")
        if literals > raw_len - len(out):
            raise BlockError(f"more than {raw_len} bytes of output")
        out += block[at : at + literals]
        at += literals
        if at == end:
            break
        if end - at < 2:
            raise BlockError("half an offset at the end")
        offset = block[at] | block[at + 1] << 8
        at += 2
        if not 0 < offset <= len(out):
            raise BlockError(f"offset {offset} with {len(out)} bytes of output")
        length, at = _length(block, at, token & 15)
        length += 4
        if length > raw_len - len(out):
            raise BlockError(f"more than {raw_len} bytes of output")
        _copy(out, offset, length)
    if len(out) != raw_len:
        raise BlockError(f"{len(out)} bytes of output instead of {raw_len}")
    return bytes(out)


def _length(block: bytes, at: int, half: int) -> tuple[int, int]:
    """Return a length whose half of the token is ``half``, and the place after it."""
    if half < 15:
        return half, at
    while True:
        if at >= len(block):
            raise BlockError("a length is cut short")
        byte = block[at]
        at += 1
        half += byte
        if byte != 255:
            return half, at


def _copy(out: bytearray, offset: int, length: int) -> None:
    """Append ``length`` bytes from ``offset`` back; source and result may overlap."""
    start = len(out) - offset
    if offset >= length:
        out += out[start : start + length]
        return
    pattern = bytes(out[start:])
    times, rest = divmod(length, offset)
    out += pattern * times + pattern[:rest]
