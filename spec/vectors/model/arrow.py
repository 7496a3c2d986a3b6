"""metadata.arrow by the rules for writers (format.md, section 7), framed by hand."""

import struct
from dataclasses import dataclass, field

from .flat import Longs, Structs, Table, serialise
from .schema import EMPTY, Bits, Field

V5 = 4
BATCH_ROWS = 65_536
BATCH_TEXT = 1 << 24
_CODES = {"bool": 6, "int64": 2, "float64": 3, "utf8": 5}


def up(x: int, a: int) -> int:
    return -(-x // a) * a


def pack_bits(values) -> bytes:
    out = bytearray(up(len(values), 8) // 8)
    for i, value in enumerate(values):
        out[i // 8] |= bool(value) << i % 8
    return bytes(out)


def float_bytes(value) -> bytes:
    return struct.pack("<Q", value.bits) if isinstance(value, Bits) else struct.pack("<d", value)


@dataclass
class Batch:
    """One record batch before it is framed; cases break these parts one at a time."""

    length: int
    nodes: list[list[int]]
    buffers: list[bytes]
    places: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # buffer -> stated offset, length
    slots: dict = field(default_factory=dict)  # further slots of the RecordBatch table
    version: int = V5
    body_length: int | None = None  # stated in the message
    block: dict = field(default_factory=dict)  # stated in the footer
    bare: bool = False  # a message that names its kind and has no header


def make_batch(fields: list[Field], columns: list[list], rows: range) -> Batch:
    nodes, buffers = [], []
    for f, column in zip(fields, columns, strict=True):
        values = column[rows.start : rows.stop]
        nulls = sum(v is None for v in values)
        nodes.append([len(values), nulls])
        buffers.append(pack_bits([v is not None for v in values]) if nulls else b"")
        values = [EMPTY[f.type] if v is None else v for v in values]
        if f.type == "bool":
            buffers.append(pack_bits(values))
        elif f.type == "int64":
            buffers.append(struct.pack(f"<{len(values)}q", *values))
        elif f.type == "float64":
            buffers.append(b"".join(map(float_bytes, values)))
        else:
            texts = [v.encode() for v in values]
            ends = [0]
            for t in texts:
                ends.append(ends[-1] + len(t))
            buffers += [struct.pack(f"<{len(ends)}i", *ends), b"".join(texts)]
    return Batch(len(rows), nodes, buffers)


def batch_ranges(fields: list[Field], columns: list[list], rows: int) -> list[range]:
    """Where a writer ends batches."""
    texts = [c for f, c in zip(fields, columns, strict=True) if f.type == "utf8"]
    out, start, held = [], 0, 0
    for i in range(rows):
        size = sum(len((c[i] or "").encode()) for c in texts)
        if i > start and (i - start == BATCH_ROWS or held + size > BATCH_TEXT):
            out.append(range(start, i))
            start, held = i, 0
        held += size
    return [*out, range(start, rows)]


def type_table(type_: str) -> Table:
    if type_ == "int64":
        return Table({0: ("i32", 64), 1: ("u8", 1)})
    return Table({0: ("i16", 2)} if type_ == "float64" else {})


def field_table(f: Field) -> Table:
    return Table(
        {0: f.name, 1: ("u8", f.nullable), 2: ("u8", _CODES[f.type]), 3: type_table(f.type), 5: []}
    )


@dataclass
class ArrowFile:
    """The whole file before it is framed."""

    fields: list[Table]
    batches: list[Batch]
    endianness: int = 0
    version: int = V5
    dictionaries: list[bytes] = field(default_factory=list)
    footer: bytes | None = None
    footer_length: int | None = None

    def schema(self) -> Table:
        return Table({0: ("i16", self.endianness), 1: self.fields})

    def to_bytes(self) -> bytes:
        out = bytearray(b"ARROW1\0\0")
        _message(out, Table({0: ("i16", V5), 1: ("u8", 1), 2: self.schema(), 3: ("i64", 0)}), 8)
        blocks = []
        for batch in self.batches:
            body, stated = bytearray(), []
            for i, buffer in enumerate(batch.buffers):
                stated.append(batch.places.get(i, (len(body), len(buffer))))
                body += buffer.ljust(up(len(buffer), 64), b"\0")
            header = {
                0: ("i64", batch.length),
                1: Structs([struct.pack("<qq", *node) for node in batch.nodes]),
                2: Structs([struct.pack("<qq", *place) for place in stated]),
                **batch.slots,
            }
            length = len(body) if batch.body_length is None else batch.body_length
            message = Table(
                {0: ("i16", batch.version), 1: ("u8", 3), 2: Table(header), 3: ("i64", length)}
            )
            if batch.bare:
                del message.slots[2]
            block = {"offset": len(out), "metadata": _message(out, message, 64), "body": len(body)}
            block |= batch.block
            blocks.append(struct.pack("<qi4xq", block["offset"], block["metadata"], block["body"]))
            out += body
        out += b"\xff\xff\xff\xff\0\0\0\0"
        slots = {
            0: ("i16", self.version),
            1: self.schema(),
            2: Structs(self.dictionaries),
            3: Structs(blocks),
        }
        footer = serialise(Table(slots)) if self.footer is None else self.footer
        length = len(footer) if self.footer_length is None else self.footer_length
        return bytes(out) + footer + struct.pack("<i", length) + b"ARROW1"


def _message(out: bytearray, table: Table, body_at: int) -> int:
    """Appends a message without its body, so that the body begins at a multiple of body_at; its length with the frame."""
    raw = serialise(table)
    length = up(len(out) + 8 + len(raw), body_at) - len(out) - 8
    out += struct.pack("<Ii", 0xFFFFFFFF, length) + raw.ljust(length, b"\0")
    return length + 8


def arrow_file(fields: list[Field], columns: list[list], ranges: list[range]) -> ArrowFile:
    return ArrowFile(
        [field_table(f) for f in fields], [make_batch(fields, columns, r) for r in ranges]
    )


def variadic(count: int) -> dict:
    return {4: Longs([count])}
