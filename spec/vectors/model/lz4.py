"""LZ4 blocks written by hand (format.md, section 5.5): no LZ4 library decides these bytes."""


def _length(value: int) -> tuple[int, bytes]:
    """The half of a token and the bytes that follow it."""
    if value < 15:
        return value, b""
    full, rest = divmod(value - 15, 255)
    return 15, b"\xff" * full + bytes([rest])


def sequence(literals: bytes, offset: int, length: int) -> bytes:
    """Literals, then a copy of `length` bytes from `offset` bytes back."""
    high, more_literals = _length(len(literals))
    low, more_match = _length(length - 4)
    token = bytes([high << 4 | low])
    return token + more_literals + literals + offset.to_bytes(2, "little") + more_match


def final(literals: bytes) -> bytes:
    """The last sequence: literals alone."""
    high, more = _length(len(literals))
    return bytes([high << 4]) + more + literals


def compress(data: bytes) -> bytes:
    """Greedy over the last place of each four bytes. Keeps the end-of-block rules."""
    out, anchor, at = bytearray(), 0, 0
    seen: dict[bytes, int] = {}
    while at <= len(data) - 13:  # the last match begins 12 bytes before the end or earlier
        word = data[at : at + 4]
        found = seen.get(word, -65_536)
        seen[word] = at
        if at - found > 65_535:
            at += 1
            continue
        length = 4
        while at + length < len(data) - 5 and data[found + length] == data[at + length]:
            length += 1
        out += sequence(data[anchor:at], at - found, length)
        at += length
        anchor = at
    return bytes(out) + final(data[anchor:])


def decompress(block: bytes, raw_len: int) -> bytes | None:
    """None where the block is broken or makes another length."""
    out, at = bytearray(), 0

    def extended(value: int, at: int) -> tuple[int, int]:
        if value == 15:
            while True:
                byte = block[at]
                at += 1
                value += byte
                if byte != 255:
                    break
        return value, at

    try:
        while True:
            token = block[at]
            literals, at = extended(token >> 4, at + 1)
            if at + literals > len(block):
                return None
            out += block[at : at + literals]
            at += literals
            if at == len(block):
                return bytes(out) if len(out) == raw_len else None
            offset = block[at] | block[at + 1] << 8
            length, at = extended(token & 15, at + 2)
            length += 4
            if not 1 <= offset <= len(out) or len(out) + length > raw_len:
                return None
            for _ in range(length):
                out.append(out[-offset])
    except IndexError:
        return None
