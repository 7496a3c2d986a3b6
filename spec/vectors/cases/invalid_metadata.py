"""Defects of metadata.arrow. But for the first two, its sums fit."""

import struct
from collections.abc import Callable

from model.arrow import ArrowFile, field_table, make_batch, variadic
from model.cache import Cache
from model.flat import Structs, Table, serialise
from model.schema import Field

from .breaking import COLUMNS, FIELDS, Files, base, on_arrow, on_batch, on_member, poked, put


def _reframed(edit: Callable[[bytearray], None]) -> Files:
    """Bytes of a finished metadata.arrow changed, every sum made to fit."""
    cache = base()
    raw = bytearray(cache.arrow())
    edit(raw)
    cache.metadata = bytes(raw)
    return cache.build()


def _field(number: int, **slots):
    """Slots of one Field table replaced; a slot of None is left out."""

    def edit(a: ArrowFile) -> None:
        for name, value in slots.items():
            a.fields[number].slots[int(name[1:])] = value
            if value is None:
                del a.fields[number].slots[int(name[1:])]

    return lambda: on_arrow(edit)


def _buffer(number: int, raw: bytes):
    return lambda: on_arrow(lambda a: a.batches[0].buffers.__setitem__(number, raw))


def _place(number: int, offset: int, length: int):
    return lambda: on_batch(places={number: (offset, length)})


def _node(number: int, length: int, nulls: int):
    return lambda: on_arrow(lambda a: a.batches[0].nodes.__setitem__(number, [length, nulls]))


def _more_rows() -> Files:
    """A fifth row in metadata alone."""
    cache = base()
    cache.columns = [[*c, c[0]] for c in COLUMNS]
    cache.batches = [5]
    cache.metadata = cache.arrow()
    cache.columns = COLUMNS
    return cache.build()


def _fewer_rows() -> Files:
    """The last row is missing in metadata alone."""
    cache = base()
    cache.columns = [c[:3] for c in COLUMNS]
    cache.batches = [3]
    cache.metadata = cache.arrow()
    cache.columns = COLUMNS
    return cache.build()


def _two_batches(a: ArrowFile) -> None:
    a.batches.append(a.batches[0])


def _empty_batch(a: ArrowFile) -> None:
    a.batches.append(make_batch(FIELDS, COLUMNS, range(0)))


def _reorder(a: ArrowFile) -> None:
    a.fields.reverse()


def _offsets(*ends: int):
    return _buffer(3, struct.pack(f"<{len(ends)}i", *ends))


_EXTENSION = [Table({0: "ARROW:extension:name", 1: "arrow.json"})]
_DICTIONARY = Table({0: ("i64", 1)})
_BLOCK = struct.pack("<qi4xq", 8, 16, 0)

_WITHOUT_SCHEMA = serialise(Table({0: ("i16", 4), 2: Structs([]), 3: Structs([])}))

METADATA = {
    "metadata-flip": ("A1", lambda: poked("metadata.arrow", 700)),
    "metadata-footer-flip": ("A1", lambda: poked("metadata.arrow", -20)),
    "metadata-magic": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(5, 0x32))),
    "metadata-magic-padding": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(7, 0x20))),
    "metadata-end-magic": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(-1, 0x32))),
    "metadata-no-file": (
        "A2",
        lambda: _reframed(lambda raw: raw.__setitem__(slice(None), b"ARROW1\0\0ARROW1")),
    ),
    "metadata-footer-length": ("A2", lambda: on_arrow(put("footer_length", 1 << 30))),
    "metadata-footer-negative": ("A2", lambda: on_arrow(put("footer_length", -1))),
    "metadata-footer-zero": ("A2", lambda: on_arrow(put("footer_length", 0))),
    "metadata-footer-root": (
        "A3",
        lambda: on_arrow(put("footer", b"\xf0\xff\xff\x7f" + bytes(60))),
    ),
    "metadata-footer-vtable": (
        "A3",
        lambda: on_arrow(put("footer", b"\x08\0\0\0" + bytes(4) + b"\xff\xff\xff\x7f" + bytes(52))),
    ),
    "metadata-footer-version": ("A3", lambda: on_arrow(put("version", 3))),
    "metadata-no-schema": ("A3", lambda: on_arrow(put("footer", _WITHOUT_SCHEMA))),
    "metadata-big-endian": ("A4", lambda: on_arrow(put("endianness", 1))),
    "metadata-dictionary-block": ("A4", lambda: on_arrow(put("dictionaries", [_BLOCK]))),
    "metadata-field-missing": ("A4", lambda: on_arrow(lambda a: a.fields.pop())),
    "metadata-field-order": ("A4", lambda: on_arrow(_reorder)),
    "metadata-field-name": ("A4", _field(0, s0="N")),
    "metadata-field-nullable": ("A4", _field(0, s1=("u8", 1))),
    "metadata-field-int32": ("A4", _field(0, s3=Table({0: ("i32", 32), 1: ("u8", 1)}))),
    "metadata-field-uint64": ("A4", _field(0, s3=Table({0: ("i32", 64)}))),
    "metadata-field-float32": ("A4", _field(3, s3=Table({0: ("i16", 1)}))),
    "metadata-field-large-utf8": ("A4", _field(1, s2=("u8", 20))),
    "metadata-field-view": ("A4", _field(1, s2=("u8", 24))),
    "metadata-field-no-type": ("A4", _field(2, s3=None)),
    "metadata-field-dictionary": ("A4", _field(1, s4=_DICTIONARY)),
    "metadata-field-children": (
        "A4",
        lambda: on_arrow(lambda a: a.fields[1].slots.update({5: [field_table(FIELDS[0])]})),
    ),
    "metadata-extension-type": ("A4", _field(1, s6=_EXTENSION)),
    "metadata-block-offset": ("A5", lambda: on_batch(block={"offset": 1 << 40})),
    "metadata-block-negative": ("A5", lambda: on_batch(block={"offset": -64})),
    "metadata-block-unaligned": ("A5", lambda: on_batch(block={"offset": 4})),
    "metadata-block-length": ("A5", lambda: on_batch(block={"body": 1 << 40})),
    "metadata-block-meta-length": ("A5", lambda: on_batch(block={"metadata": 0})),
    "metadata-block-odd": ("A5", lambda: on_batch(block={"metadata": 12})),
    "metadata-body-negative": ("A5", lambda: on_batch(block={"body": -64})),
    "metadata-block-in-footer": ("A5", lambda: on_arrow(lambda a: _longer_body(a, 16))),
    "metadata-blocks-equal": ("A5", lambda: _blocks(0, 0)),
    "metadata-blocks-descend": ("A5", lambda: _blocks(1, 0)),
    "metadata-blocks-overlap": ("A5", lambda: _halves(lambda a: _longer_body(a, 64))),
    "metadata-message-place": ("A6", lambda: on_batch(block={"offset": 16})),
    "metadata-message-length": ("A6", lambda: _reframed(_longer_message)),
    "metadata-message-version": ("A6", lambda: on_batch(version=3)),
    "metadata-message-kind": ("A6", lambda: _schema_as_batch()),
    "metadata-body-length": ("A6", lambda: on_batch(body_length=64)),
    "metadata-no-header": ("A6", lambda: on_batch(bare=True)),
    "metadata-compressed": ("A7", lambda: on_batch(slots={3: Table({})})),
    "metadata-variadic": ("A7", lambda: on_batch(slots=variadic(1))),
    "metadata-empty-batch": ("A7", lambda: on_arrow(_empty_batch)),
    "metadata-negative-rows": ("A7", lambda: on_batch(length=-4)),
    "metadata-node-length": ("A7", _node(0, 3, 0)),
    "metadata-node-missing": ("A7", lambda: on_arrow(lambda a: a.batches[0].nodes.pop())),
    "metadata-buffer-missing": ("A7", lambda: on_arrow(lambda a: a.batches[0].buffers.pop())),
    "metadata-rows-many": ("A8", _more_rows),
    "metadata-rows-few": ("A8", _fewer_rows),
    "metadata-rows-twice": ("A8", lambda: on_arrow(_two_batches)),
    "metadata-buffer-offset": ("A9", _place(1, 1 << 40, 32)),
    "metadata-buffer-length": ("A9", _place(4, 128, 1 << 40)),
    "metadata-buffer-negative": ("A9", _place(1, -8, 32)),
    "metadata-buffer-negative-length": ("A9", _place(0, 0, -1)),
    "metadata-buffer-unaligned": ("A9", _place(1, 4, 32)),
    "metadata-buffers-equal": ("A9", lambda: _twins([[1, 2, 3]] * 2, {3: (0, 24)})),
    "metadata-buffers-overlap": (
        "A9",
        lambda: _twins([[1, 2, 3], [2, 3, 0]], {3: (8, 24)}),
    ),
    "metadata-buffers-descend": (
        "A9",
        lambda: _twins([[1, 2, 3]] * 2, {1: (64, 24), 3: (0, 24)}),
    ),
    "metadata-null-in-required": ("A10", lambda: _null_in_required()),
    "metadata-null-count": ("A10", _node(1, 4, 5)),
    "metadata-null-count-negative": ("A10", _node(1, 4, -1)),
    "metadata-no-validity": ("A10", _buffer(2, b"")),
    "metadata-values-short": ("A10", _buffer(1, bytes(24))),
    "metadata-bools-short": ("A10", _buffer(6, b"")),
    "metadata-offsets-short": ("A10", _buffer(3, struct.pack("<4i", 0, 3, 3, 3))),
    "metadata-offsets-descend": ("A11", _offsets(0, 3, 2, 3, 6)),
    "metadata-offsets-negative": ("A11", _offsets(-1, 3, 3, 3, 6)),
    "metadata-offsets-beyond": ("A11", _offsets(0, 3, 3, 3, 7)),
    "metadata-offsets-of-null": ("A11", lambda: _offsets_of_null()),
    "metadata-utf8": ("A12", _buffer(4, b"a\xff\xa4ccc")),
    "metadata-utf8-surrogate": ("A12", _buffer(4, b"aaa\xed\xa0\x80")),
    "metadata-utf8-overlong": ("A12", _buffer(4, b"a\xc0\x80ccc")),
    "metadata-utf8-split": ("A12", _offsets(0, 2, 2, 2, 6)),
    "metadata-validity-count": ("A13", _buffer(2, b"\x0c")),
    "metadata-file-crc": (
        "A14",
        lambda: on_member(lambda m: m["metadata"].update(crc32c="ffffffff")),
    ),
    "metadata-file-sha256": (
        "A14",
        lambda: on_member(lambda m: m["metadata"].update(sha256="f" * 64)),
    ),
    "identity-of-metadata": ("D1", _buffer(1, struct.pack("<4q", 1, 2, 3, 5))),
    "identity-other": ("D1", lambda: _other_identity()),
}


def _longer_body(a: ArrowFile, more: int) -> None:
    """Block and message agree on a body that is longer than its buffers."""
    body = sum(-(-len(b) // 64) * 64 for b in a.batches[0].buffers)
    a.batches[0].body_length = body + more
    a.batches[0].block = {"body": body + more}


def _halves(edit: Callable[[ArrowFile], None]) -> Files:
    """Two batches of the same two rows: but for the order of Blocks every check holds."""
    columns = [[7, 8, 7, 8]]
    hooks = {"arrow": edit}
    return Cache([b"a", b"b", b"c", b"d"], FIELDS[:1], columns, batches=[2, 2], hooks=hooks).build()


def _blocks(*order: int) -> Files:
    """The footer's Blocks point at these batches."""

    def edit(a: ArrowFile) -> None:
        raw = a.to_bytes()
        places = [at for at in range(8, len(raw), 8) if raw[at : at + 4] == b"\xff\xff\xff\xff"]
        for batch, number in zip(a.batches, order, strict=True):
            at = places[1 + number]
            length = struct.unpack_from("<i", raw, at + 4)[0]
            batch.block = {"offset": at, "metadata": 8 + length}

    return _halves(edit)


def _twins(columns: list[list], places: dict[int, tuple[int, int]]) -> Files:
    """Two int64 columns; their values are buffers 1 and 3, at 0 and 64."""
    fields = [Field("n", "int64"), Field("m", "int64")]
    hooks = {"arrow": lambda a: a.batches[0].places.update(places)}
    return Cache([b"a", b"b", b"c"], fields, columns, hooks=hooks).build()


def _schema_as_batch() -> Files:
    """The block points at the schema message."""

    def edit(a: ArrowFile) -> None:
        raw = a.to_bytes()
        length = struct.unpack_from("<i", raw, 12)[0]
        a.batches[0].block = {"offset": 8, "metadata": 8 + length, "body": 0}

    return on_arrow(edit)


def _longer_message(raw: bytearray) -> None:
    """The length in a message's frame is not the one of its Block."""
    at = raw.index(b"\xff\xff\xff\xff", 12)
    raw[at + 4] ^= 8


def _offsets_of_null() -> Files:
    """Beyond the bytes, in the slot of a null."""

    def edit(a: ArrowFile) -> None:
        a.batches[0].buffers[1] = struct.pack("<3i", 0, 1, 9)

    return Cache([b"a", b"b"], [Field("t", "utf8", True)], [["x", None]], hooks={"arrow": edit}).build()


def _null_in_required() -> Files:
    def edit(a: ArrowFile) -> None:
        a.batches[0].nodes[0] = [4, 1]
        a.batches[0].buffers[0] = b"\x07"

    return on_arrow(edit)


def _other_identity() -> Files:
    other = bytes(range(32))
    return base(
        index=put("identity", other), manifest=lambda m: m.update(identity=other.hex())
    ).build()
