"""Framing of ``metadata.arrow``: footer, blocks, messages, buffers (checks A2 .. A10).

The flatbuffers are read here and not by an Arrow library, because such libraries believe them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from .errors import CacheError, ErrorCode
from .flatbuffers import Table, UnsoundError
from .manifest import FieldType

if TYPE_CHECKING:
    from .files import CheckedBlocks
    from .manifest import Field, Manifest

NAME = "metadata.arrow"
_MAGIC = b"ARROW1"
_START = _MAGIC + bytes(2)
_V5 = 4
_RECORD_BATCH = 3
_INT, _FLOATING_POINT, _UTF8, _BOOL = 2, 3, 5, 6
_DOUBLE = 2
_TYPE_CODES = {
    FieldType.BOOL: _BOOL,
    FieldType.INT64: _INT,
    FieldType.FLOAT64: _FLOATING_POINT,
    FieldType.UTF8: _UTF8,
}
_BLOCK = struct.Struct("<qi4xq")
_PAIR = struct.Struct("<qq")
_EXTENSION = b"ARROW:extension:"


@dataclass(frozen=True)
class Extent:
    """A range of bytes of the file."""

    offset: int
    length: int


@dataclass(frozen=True)
class Column:
    """One column of a batch; ``offsets`` is for text alone."""

    null_count: int
    validity: Extent
    values: Extent
    offsets: Extent | None


@dataclass(frozen=True)
class Batch:
    """One record batch: its first row in the file, its rows, its columns."""

    first: int
    length: int
    columns: tuple[Column, ...]


def read_batches(blocks: CheckedBlocks, manifest: Manifest) -> list[Batch]:
    """Make the checks A2 .. A10 and return the record batches."""
    footer_at, footer = _footer(blocks)
    try:
        root = Table.root(footer)
        if root.number(0, "h") != _V5:
            _refuse("A3", f"version {root.number(0, 'h')}, must be 4 (V5)", "the footer")
        schema = root.table(1)
        if schema is None:
            _refuse("A3", "no schema", "the footer")
        dictionaries = root.count(2, _BLOCK.size)
        places = root.structs(3, _BLOCK)
        _check_schema(schema, dictionaries, manifest.fields)
    except UnsoundError as error:
        _refuse("A3", str(error), "the footer")
    _check_blocks(places, footer_at)
    batches = []
    first = 0
    for number, (offset, metadata_length, body_length) in enumerate(places):
        data = blocks.read(offset, metadata_length)
        batch = _batch(data, first, offset + metadata_length, body_length, manifest, number)
        batches.append(batch)
        first += batch.length
    if first != manifest.samples:
        _refuse("A8", f"{first} rows, but {manifest.samples} samples", "the batches")
    return batches


def _footer(blocks: CheckedBlocks) -> tuple[int, bytes]:
    """Make check A2 and return offset and bytes of the footer."""
    size = blocks.length
    if size < 26:
        _refuse("A2", f"{size} bytes, at least 26", "")
    if blocks.read(0, 8) != _START:
        _refuse("A2", "doesn't begin with ARROW1 and two zero bytes", "byte 0")
    tail = blocks.read(size - 10, 10)
    if tail[4:] != _MAGIC:
        _refuse("A2", "doesn't end with ARROW1", f"byte {size - 6}")
    length = int.from_bytes(tail[:4], "little", signed=True)
    if not 8 <= length <= size - 10 - 8:
        _refuse("A2", f"a footer of {length} bytes in {size}", f"byte {size - 10}")
    at = size - 10 - length
    return at, blocks.read(at, length)


def _check_schema(schema: Table, dictionaries: int, fields: tuple[Field, ...]) -> None:
    """Make check A4."""
    if schema.number(0, "h") != 0:
        _refuse("A4", "not little-endian", "the schema")
    if dictionaries:
        _refuse("A4", "dictionary blocks", "the footer")
    count = schema.count(1, 4)
    if count != len(fields):
        _refuse("A4", f"{count} fields, but the manifest has {len(fields)}", "the schema")
    for i, (table, field) in enumerate(zip(schema.tables(1), fields, strict=True)):
        fault = _field_fault(table, field)
        if fault is not None:
            _refuse("A4", fault, f"field {i} of the schema")


def _field_fault(table: Table, field: Field) -> str | None:
    if table.text(0) != field.name.encode():
        return f"its name isn't {field.name!r}"
    if bool(table.number(1, "B")) is not field.nullable:
        return f"nullable isn't {field.nullable}"
    if table.has(4):
        return "it has a dictionary"
    if table.count(5, 4):
        return "it has children"
    if any(pair.text(0).startswith(_EXTENSION) for pair in table.tables(6)):
        return "it has an extension type"
    code = table.number(2, "B")
    kind = table.table(3)
    if code != _TYPE_CODES[field.type] or kind is None:
        return f"type code {code}, which isn't {field.type.value}"
    if code == _INT and (kind.number(0, "i") != 64 or not kind.number(1, "B")):
        return "an integer that isn't signed with 64 bits"
    if code == _FLOATING_POINT and kind.number(0, "h") != _DOUBLE:
        return "a floating-point number that isn't double"
    return None


def _check_blocks(places: list[tuple[int, ...]], footer_at: int) -> None:
    """Make check A5 on all blocks.

    Blocks ascend and don't overlap. Otherwise a small footer could name one large header
    thousands of times.
    """
    end = 8
    for number, (offset, metadata_length, body_length) in enumerate(places):
        place = f"block {number} of the footer"
        if offset < 8 or offset % 8:
            _refuse("A5", f"offset {offset}", place)
        if metadata_length < 16 or metadata_length % 8:
            _refuse("A5", f"metaDataLength {metadata_length}", place)
        if body_length < 0 or offset + metadata_length + body_length > footer_at:
            _refuse("A5", f"bodyLength {body_length}", place)
        if offset < end:
            _refuse("A5", f"offset {offset}, but the block before ends at {end}", place)
        end = offset + metadata_length + body_length


def _batch(
    data: bytes, first: int, body: int, body_length: int, manifest: Manifest, number: int
) -> Batch:
    """Make the checks A6, A7, A9 and A10 on one message."""
    place = f"batch {number}"
    marker, length = struct.unpack_from("<Ii", data)
    if marker != 0xFFFFFFFF or length != len(data) - 8:
        _refuse("A6", f"begins with {data[:8].hex()}", place)
    try:
        message = Table.root(data[8:])
        found = (message.number(0, "h"), message.number(1, "B"), message.number(3, "q"))
        if found != (_V5, _RECORD_BATCH, body_length):
            detail = f"version, header, bodyLength are {found}"
            _refuse("A6", f"{detail}, must be {(_V5, _RECORD_BATCH, body_length)}", place)
        header = message.table(2)
        if header is None:
            _refuse("A6", "no header", place)
        rows = header.number(0, "q")
        nodes = header.structs(1, _PAIR)
        buffers = header.structs(2, _PAIR)
        special = header.has(3) or header.count(4, 8) > 0
    except UnsoundError as error:
        _refuse("A6", str(error), place)
    fields = manifest.fields
    wanted = sum(3 if field.type is FieldType.UTF8 else 2 for field in fields)
    if special or rows < 1 or len(nodes) != len(fields) or len(buffers) != wanted:
        detail = f"{rows} rows, {len(nodes)} nodes, {len(buffers)} buffers"
        _refuse("A7", f"{detail}, or compression, or variadic buffers", place)
    if any(node_rows != rows for node_rows, _ in nodes):
        _refuse("A7", f"a node whose length isn't {rows}", place)
    end = 0
    for offset, size in buffers:
        if offset < 0 or offset % 8 or size < 0 or offset + size > body_length:
            _refuse("A9", f"buffer at {offset}, {size} bytes, of {body_length}", place)
        if size:
            if offset < end:
                _refuse("A9", f"buffer at {offset}, but the one before ends at {end}", place)
            end = offset + size
    extents = iter([Extent(body + offset, size) for offset, size in buffers])
    columns = []
    for field, (_, null_count) in zip(fields, nodes, strict=True):
        validity = next(extents)
        offsets = next(extents) if field.type is FieldType.UTF8 else None
        column = Column(null_count, validity, next(extents), offsets)
        _check_column(column, field, rows, place)
        columns.append(column)
    return Batch(first, rows, tuple(columns))


def _check_column(column: Column, field: Field, rows: int, place: str) -> None:
    """Make check A10."""
    place = f"{place}, column {field.name!r}"
    nulls = column.null_count
    if not 0 <= nulls <= rows or (nulls and not field.nullable):
        _refuse("A10", f"null_count {nulls}", place)
    bitmap = -(-rows // 8)
    if nulls and column.validity.length < bitmap:
        _refuse("A10", f"{column.validity.length} bytes of validity", place)
    if column.offsets is not None:
        if column.offsets.length < 4 * (rows + 1):
            _refuse("A10", f"{column.offsets.length} bytes of offsets", place)
    elif column.values.length < (bitmap if field.type is FieldType.BOOL else 8 * rows):
        _refuse("A10", f"{column.values.length} bytes of values", place)


def _refuse(check: str, detail: str, place: str) -> NoReturn:
    raise CacheError(ErrorCode.METADATA_INVALID, check, NAME, detail, place=place)
