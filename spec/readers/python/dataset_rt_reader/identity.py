"""Identity of a cache's content (format.md section 9)."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from .manifest import FieldType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .manifest import Field
    from .metadata import Value

BLOCK_SAMPLES = 65536
"""Samples under one digest."""

_TYPES = {FieldType.BOOL: 1, FieldType.INT64: 2, FieldType.FLOAT64: 3, FieldType.UTF8: 4}
_PREFIX = b"dataset_rt content 1\0"


def content_identity(
    samples: int,
    fields: Sequence[Field],
    payloads: Callable[[int, int], Sequence[tuple[int, int]]],
    column: Callable[[int, int, int], Sequence[Value]],
) -> bytes:
    """Return the 32 bytes of the identity.

    Args:
        samples: number of samples.
        fields: the metadata columns; their descriptions don't count.
        payloads: gives ``(raw_len, crc)`` of the samples of a range.
        column: gives the values of a field, by its place, in a range of rows.

    """
    whole = hashlib.sha256(_PREFIX + struct.pack("<QI", samples, len(fields)))
    for field in fields:
        name = field.name.encode()
        whole.update(struct.pack("<I", len(name)) + name)
        whole.update(bytes((_TYPES[field.type], field.nullable)))
    for start in range(0, samples, BLOCK_SAMPLES):
        end = min(start + BLOCK_SAMPLES, samples)
        block = hashlib.sha256()
        pairs = payloads(start, end)
        block.update(struct.pack(f"<{2 * len(pairs)}I", *(n for pair in pairs for n in pair)))
        for number, field in enumerate(fields):
            values = column(number, start, end)
            if field.nullable:
                block.update(bytes(value is not None for value in values))
            for piece in _column_bytes(values, field.type):
                block.update(piece)
        whole.update(block.digest())
    return whole.digest()


def _column_bytes(values: Sequence[Value], kind: FieldType) -> list[bytes]:
    if kind is FieldType.UTF8:
        texts = [b"" if value is None else str(value).encode() for value in values]
        return [struct.pack(f"<{len(texts)}I", *map(len, texts)), *texts]
    if kind is FieldType.BOOL:
        return [bytes(bool(value) for value in values)]
    code = "q" if kind is FieldType.INT64 else "d"
    return [
        struct.pack(f"<{len(values)}{code}", *(0 if value is None else value for value in values))
    ]
