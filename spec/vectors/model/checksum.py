"""CRC-32C (format.md, section 2)."""


def _table() -> list[int]:
    out = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        out.append(byte)
    return out


_TABLE = _table()
CHECK_BLOCK = 65_536


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def block_sums(data: bytes) -> list[int]:
    """The CRC of each 65,536 bytes; the last block may be shorter."""
    return [crc32c(data[at : at + CHECK_BLOCK]) for at in range(0, len(data), CHECK_BLOCK)]
