"""Invalid caches: one defect each, and the check that finds it first.

Two kinds of defect: a changed model whose checksums fit (hooks "arrow", "shards", "index", "manifest"), and damage to
finished files.
"""

import struct
from collections.abc import Callable

from model import lz4
from model.arrow import ArrowFile, field_table, variadic
from model.cache import Cache, Index, Section, Shard
from model.flat import Table
from model.schema import Field

from .invalid_manifest import MANIFEST

Files = dict[str, bytes]
S0, S1 = "shards/000000.bin", "shards/000001.bin"
_FIELDS = [Field("n", "int64"), Field("t", "utf8", True), Field("b", "bool"), Field("f", "float64", True)]
_COLUMNS = [[1, 2, 3, 4], ["aä", None, "", "ccc"], [True, False, True, True], [0.5, 1.5, None, 2.5]]


def base(**hooks) -> Cache:
    """Four samples in two shards of equal size; buffers: n 0 1, t 2 3 4, b 5 6, f 7 8."""
    return Cache([b"alpha", b"beta", b"gamma", b"beto"], _FIELDS, _COLUMNS, parts=[(0, [2, 2])], hooks=hooks)


def packed(**hooks) -> Cache:
    return Cache([b"a" * 100, b"b" * 100, bytes(range(50))], codec="lz4", hooks=hooks)


# --- ways to break -----------------------------------------------------------------------------


def damaged(edit: Callable[[Files], None], make=base) -> Files:
    return make(files=edit).build()


def poked(name: str, at: int, make=base) -> Files:
    """One bit of one byte of a finished file."""

    def edit(files: Files) -> None:
        raw = bytearray(files[name])
        raw[at] ^= 0x10
        files[name] = bytes(raw)

    return damaged(edit, make)


def on_index(edit: Callable[[Index], None], make=base) -> Files:
    return make(index=edit).build()


def on_sections(edit: Callable[[list[Section]], None], make=base) -> Files:
    return on_index(lambda index: setattr(index, "edit", edit), make)


def on_shard(edit: Callable[[Shard], None], number: int = 1, make=base) -> Files:
    return make(shards=lambda shards: edit(shards[number])).build()


def on_arrow(edit: Callable[[ArrowFile], None]) -> Files:
    return base(arrow=edit).build()


def on_batch(**changes) -> Files:
    return on_arrow(lambda a: [setattr(a.batches[0], k, v) for k, v in changes.items()])


def on_member(edit: Callable[[dict], None], make=base) -> Files:
    return make(manifest=edit).build()


def on_entry(number: int, **changes) -> Files:
    def edit(index: Index) -> None:
        position, stored, crc = index.entries[number]
        position = changes.get("shard", position >> 40) << 40 | changes.get("offset", position & (1 << 40) - 1)
        index.entries[number] = (position, changes.get("stored", stored), crc)

    return on_index(edit)


def put(name: str, value):
    """A setter for on_index, on_shard and the like."""
    return lambda model: setattr(model, name, value)


# --- files -------------------------------------------------------------------------------------

FILES = {
    "metadata-missing": ("F1", lambda: damaged(lambda f: f.pop("metadata.arrow"))),
    "index-missing": ("F1", lambda: damaged(lambda f: f.pop("index.bin"))),
    "shard-missing": ("F1", lambda: damaged(lambda f: f.pop(S1))),
    "metadata-truncated": ("F2", lambda: damaged(lambda f: f.update({"metadata.arrow": f["metadata.arrow"][:-1]}))),
    "index-truncated": ("F2", lambda: damaged(lambda f: f.update({"index.bin": f["index.bin"][:-4]}))),
    "index-empty": ("F2", lambda: damaged(lambda f: f.update({"index.bin": b""}))),
    "shard-truncated": ("F2", lambda: damaged(lambda f: f.update({S1: f[S1][:-64]}))),
    "shard-too-long": ("F2", lambda: damaged(lambda f: f.update({S0: f[S0] + b"\0"}))),
}

# --- index.bin ---------------------------------------------------------------------------------


def _index_tail(index: Index) -> None:
    index.tail = bytes(64)


def _drop(kind: int):
    return lambda found: found.remove(next(s for s in found if s.kind == kind))


def _swap_kinds(found: list[Section]) -> None:
    found[0], found[1] = found[1], found[0]


def _on_kind(kind: int, **changes):
    def edit(found: list[Section]) -> None:
        section = next(s for s in found if s.kind == kind)
        for name, value in changes.items():
            setattr(section, name, value(section) if callable(value) else value)

    return edit


def _stray_sections(index: Index) -> None:
    index.raw_lens, index.codec = [e[1] for e in index.entries], 1
    index.edit = lambda found: None
    made = index.sections()
    index.codec = 0
    index.edit = lambda found: found.__setitem__(slice(None), made)


INDEX = {
    "index-magic": ("I1", lambda: poked("index.bin", 4)),
    "index-section-count": ("I2", lambda: poked("index.bin", 41)),
    "index-header-crc": ("I3", lambda: poked("index.bin", 124)),
    "index-header-flip": ("I3", lambda: poked("index.bin", 16)),
    "index-table-flip": ("I3", lambda: poked("index.bin", 128 + 16)),
    "index-version-new": ("I4", lambda: on_index(put("version", 2))),
    "index-version-zero": ("I5", lambda: on_index(put("version", 0))),
    "index-reserved": ("I5", lambda: on_index(put("reserved", bytes(43) + b"\1"))),
    "index-section-reserved": ("I5", lambda: on_sections(_on_kind(17, reserved=1))),
    "index-flags": ("I6", lambda: on_index(put("flags", 1))),
    "index-codec": ("I7", lambda: on_index(lambda i: _stray_codec(i))),
    "index-alignment": ("I7", lambda: on_index(put("align", 2))),
    "index-samples": ("I7", lambda: on_index(put("samples", 5))),
    "index-shards": ("I7", lambda: on_index(put("shards", 3))),
    "index-size-field": ("I7", lambda: on_index(put("size", 1 << 20))),
    "index-identity": ("I8", lambda: on_index(put("identity", bytes(32)))),
    "index-section-order": ("I9", lambda: on_sections(_swap_kinds)),
    "index-section-twice": ("I9", lambda: on_sections(lambda f: f.insert(0, Section(1, b"")))),
    "index-section-flags": ("I9", lambda: on_sections(_on_kind(32, flags=1))),
    "index-section-bits": ("I9", lambda: on_sections(lambda f: f.append(Section(99, b"x", flags=3)))),
    "index-array-crc": ("I9", lambda: on_sections(_on_kind(1, crc=1))),
    "index-section-unknown": ("I10", lambda: on_sections(lambda f: f.append(Section(99, b"needed")))),
    "index-section-offset": ("I11", lambda: on_sections(_on_kind(17, offset=1 << 40))),
    "index-section-overlap": ("I11", lambda: on_sections(_on_kind(17, offset=256))),
    "index-section-length": ("I11", lambda: on_sections(_on_kind(32, length=1 << 62))),
    "index-trailing-bytes": ("I11", lambda: on_index(_index_tail)),
    "index-no-entries": ("I12", lambda: on_sections(_drop(1))),
    "index-no-sums": ("I12", lambda: on_sections(_drop(17))),
    "index-no-metadata-sums": ("I12", lambda: on_sections(_drop(32))),
    "index-no-raw-lengths": ("I12", lambda: on_sections(_drop(2), packed)),
    "index-stray-raw-lengths": ("I12", lambda: on_index(_stray_sections)),
    "index-entries-short": ("I12", lambda: on_sections(_on_kind(1, data=lambda s: s.data[:-16]))),
    "index-sums-short": ("I12", lambda: on_sections(_on_kind(17, data=b""))),
    "index-sums-flip": ("I13", lambda: poked("index.bin", 320)),
    "index-metadata-sums-flip": ("I13", lambda: poked("index.bin", 384)),
    "index-entry-flip": ("I14", lambda: poked("index.bin", 256 + 12)),
    "index-raw-length-flip": ("I14", lambda: poked("index.bin", 384, packed)),
    "index-file-crc": ("I15", lambda: on_member(lambda m: m["index"].update(crc32c="00000000"))),
    "index-file-sha256": ("I15", lambda: on_member(lambda m: m["index"].update(sha256="0" * 64))),
    "index-padding-flip": ("I15", lambda: poked("index.bin", 230)),
    "index-padding": ("I16", lambda: on_index(put("gap", b"\1"))),
}


def _stray_codec(index: Index) -> None:
    """The header says lz4, the sections are those of none."""
    made = index.sections()
    index.codec = 1
    index.edit = lambda found: found.__setitem__(slice(None), made)


# --- entries -----------------------------------------------------------------------------------


def _raw_len(value: int):
    return lambda: on_index(lambda index: index.raw_lens.__setitem__(0, value), packed)


ENTRIES = {
    "entry-shard": ("E1", lambda: on_entry(2, shard=2)),
    "entry-in-header": ("E2", lambda: on_entry(0, offset=56)),
    "entry-unaligned": ("E2", lambda: on_entry(1, offset=73)),
    "entry-beyond-file": ("E3", lambda: on_entry(3, offset=1 << 30)),
    "entry-in-footer": ("E3", lambda: on_entry(3, stored=57)),
    "entry-stored-longer": ("E4", _raw_len(1)),
    "entry-raw-too-long": ("E4", _raw_len(1 << 31)),
    "entry-other-record": ("S13", lambda: on_entry(0, offset=72)),
    "entry-shorter": ("S13", lambda: _moved_length()),
    "entry-crc": ("S13", lambda: on_index(lambda i: i.entries.__setitem__(0, (*i.entries[0][:2], 1)))),
    "entries-swapped": ("S13", lambda: on_index(lambda i: i.entries.reverse())),
    "payload-bytes": ("T1", lambda: on_member(lambda m: m.update(payload_bytes=19))),
    "stored-bytes": ("T1", lambda: on_member(lambda m: m.update(stored_bytes=17))),
}


def _moved_length() -> Files:
    """One byte from one sample to another: the sums still fit."""

    def edit(index: Index) -> None:
        (p0, n0, c0), (p1, n1, c1) = index.entries[:2]
        index.entries[:2] = [(p0, n0 - 1, c0), (p1, n1 + 1, c1)]

    return on_index(edit)


# --- metadata.arrow ----------------------------------------------------------------------------


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
    cache.columns = [[*c, c[0]] for c in _COLUMNS]
    cache.batches = [5]
    cache.metadata = cache.arrow()
    cache.columns = _COLUMNS
    return cache.build()


def _two_batches(a: ArrowFile) -> None:
    a.batches.append(a.batches[0])


def _empty_batch(a: ArrowFile) -> None:
    from model.arrow import make_batch

    a.batches.append(make_batch(_FIELDS, _COLUMNS, range(0)))


def _reorder(a: ArrowFile) -> None:
    a.fields.reverse()


def _offsets(*ends: int):
    return _buffer(3, struct.pack(f"<{len(ends)}i", *ends))


_EXTENSION = [Table({0: "ARROW:extension:name", 1: "arrow.json"})]
_DICTIONARY = Table({0: ("i64", 1)})
_BLOCK = struct.pack("<qi4xq", 8, 16, 0)

METADATA = {
    "metadata-flip": ("A1", lambda: poked("metadata.arrow", 700)),
    "metadata-footer-flip": ("A1", lambda: poked("metadata.arrow", -20)),
    "metadata-magic": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(5, 0x32))),
    "metadata-end-magic": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(-1, 0x32))),
    "metadata-no-file": ("A2", lambda: _reframed(lambda raw: raw.__setitem__(slice(None), b"ARROW1\0\0ARROW1"))),
    "metadata-footer-length": ("A2", lambda: on_arrow(put("footer_length", 1 << 30))),
    "metadata-footer-negative": ("A2", lambda: on_arrow(put("footer_length", -1))),
    "metadata-footer-zero": ("A2", lambda: on_arrow(put("footer_length", 0))),
    "metadata-footer-root": ("A3", lambda: on_arrow(put("footer", b"\xf0\xff\xff\x7f" + bytes(60)))),
    "metadata-footer-vtable": ("A3", lambda: on_arrow(put("footer", b"\x08\0\0\0" + bytes(4) + b"\xff\xff\xff\x7f" + bytes(52)))),
    "metadata-footer-version": ("A3", lambda: on_arrow(put("version", 3))),
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
    "metadata-field-children": ("A4", lambda: on_arrow(lambda a: a.fields[1].slots.update({5: [field_table(_FIELDS[0])]}))),
    "metadata-extension-type": ("A4", _field(1, s6=_EXTENSION)),
    "metadata-block-offset": ("A5", lambda: on_batch(block={"offset": 1 << 40})),
    "metadata-block-negative": ("A5", lambda: on_batch(block={"offset": -64})),
    "metadata-block-unaligned": ("A5", lambda: on_batch(block={"offset": 4})),
    "metadata-block-length": ("A5", lambda: on_batch(block={"body": 1 << 40})),
    "metadata-block-meta-length": ("A5", lambda: on_batch(block={"metadata": 0})),
    "metadata-message-place": ("A6", lambda: on_batch(block={"offset": 16})),
    "metadata-message-version": ("A6", lambda: on_batch(version=3)),
    "metadata-message-kind": ("A6", lambda: _schema_as_batch()),
    "metadata-body-length": ("A6", lambda: on_batch(body_length=64)),
    "metadata-compressed": ("A7", lambda: on_batch(slots={3: Table({})})),
    "metadata-variadic": ("A7", lambda: on_batch(slots=variadic(1))),
    "metadata-empty-batch": ("A7", lambda: on_arrow(_empty_batch)),
    "metadata-negative-rows": ("A7", lambda: on_batch(length=-4)),
    "metadata-node-length": ("A7", _node(0, 3, 0)),
    "metadata-node-missing": ("A7", lambda: on_arrow(lambda a: a.batches[0].nodes.pop())),
    "metadata-buffer-missing": ("A7", lambda: on_arrow(lambda a: a.batches[0].buffers.pop())),
    "metadata-rows-many": ("A8", _more_rows),
    "metadata-rows-twice": ("A8", lambda: on_arrow(_two_batches)),
    "metadata-buffer-offset": ("A9", _place(1, 1 << 40, 32)),
    "metadata-buffer-length": ("A9", _place(4, 128, 1 << 40)),
    "metadata-buffer-negative": ("A9", _place(1, -8, 32)),
    "metadata-buffer-negative-length": ("A9", _place(0, 0, -1)),
    "metadata-buffer-unaligned": ("A9", _place(1, 4, 32)),
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
    "metadata-utf8": ("A12", _buffer(4, b"a\xff\xa4ccc")),
    "metadata-utf8-surrogate": ("A12", _buffer(4, b"aaa\xed\xa0\x80")),
    "metadata-utf8-overlong": ("A12", _buffer(4, b"a\xc0\x80ccc")),
    "metadata-utf8-split": ("A12", _offsets(0, 2, 2, 2, 6)),
    "metadata-validity-count": ("A13", _buffer(2, b"\x0c")),
    "metadata-file-crc": ("A14", lambda: on_member(lambda m: m["metadata"].update(crc32c="ffffffff"))),
    "metadata-file-sha256": ("A14", lambda: on_member(lambda m: m["metadata"].update(sha256="f" * 64))),
    "identity-of-metadata": ("D1", _buffer(1, struct.pack("<4q", 1, 2, 3, 5))),
    "identity-other": ("D1", lambda: _other_identity()),
}


def _schema_as_batch() -> Files:
    """The block points at the schema message."""

    def edit(a: ArrowFile) -> None:
        raw = a.to_bytes()
        length = struct.unpack_from("<i", raw, 12)[0]
        a.batches[0].block = {"offset": 8, "metadata": 8 + length, "body": 0}

    return on_arrow(edit)


def _null_in_required() -> Files:
    def edit(a: ArrowFile) -> None:
        a.batches[0].nodes[0] = [4, 1]
        a.batches[0].buffers[0] = b"\x07"

    return on_arrow(edit)


def _other_identity() -> Files:
    other = bytes(range(32))
    return base(index=put("identity", other), manifest=lambda m: m.update(identity=other.hex())).build()


# --- shards ------------------------------------------------------------------------------------


def _swapped(files: Files) -> None:
    files[S0], files[S1] = files[S1], files[S0]


def _records_shifted(shard: Shard) -> None:
    """F lies further on than the records need."""
    shard.trailer = {"F": 192, "size": 192 + 16 + 64}


def _footer(edit: Callable[[list], None]):
    def change(shard: Shard) -> None:
        shard.footer_entries = [(len(r.stored), r.crc, r.raw_len) for r in shard.records]
        edit(shard.footer_entries)

    return change


def _stored(number: int, raw: bytes, make=packed):
    """Another record of the same length."""

    def edit(shard: Shard) -> None:
        assert len(shard.records[number].stored) == len(raw)
        shard.records[number].stored = raw

    return lambda: on_shard(edit, 0, make)


def _foreign(files: Files) -> None:
    other = Cache([b"ALPHA", b"BETA"], parts=[(0, [2])]).build()["shards/000000.bin"]
    assert len(other) == len(files[S0])
    files[S0] = other


_LZ4_LEN = len(lz4.compress(b"a" * 100))

SHARDS = {
    "shard-magic-end": ("S1", lambda: poked(S0, -1)),
    "shard-trailer-flip": ("S2", lambda: poked(S0, -60)),
    "shard-trailer-crc": ("S2", lambda: poked(S1, -12)),
    "shards-swapped": ("S3", lambda: damaged(_swapped)),
    "shard-foreign": ("S3", lambda: damaged(_foreign)),
    "shard-id-in-manifest": ("S3", lambda: on_member(lambda m: m["shards"][1].update(id="0" * 32))),
    "shard-trailer-version-new": ("S4", lambda: on_shard(put("trailer", {"version": 2}))),
    "shard-trailer-version-zero": ("S5", lambda: on_shard(put("trailer", {"version": 0}))),
    "shard-trailer-flags": ("S5", lambda: on_shard(put("trailer", {"flags": 3}))),
    "shard-count": ("S5", lambda: on_shard(put("trailer", {"count": 3}))),
    "shard-size-field": ("S5", lambda: on_shard(put("trailer", {"size": 1 << 39}))),
    "shard-footer-offset": ("S5", lambda: on_shard(put("trailer", {"F": 64}))),
    "shard-footer-offset-huge": ("S5", lambda: on_shard(put("trailer", {"F": (1 << 64) - 64}))),
    "shard-magic": ("S6", lambda: poked(S0, 0)),
    "shard-header-flip": ("S6", lambda: poked(S1, 32)),
    "shard-version-new": ("S7", lambda: on_shard(lambda s: (put("version", 2)(s), put("trailer", {"version": 1})(s)))),
    "shard-flags": ("S8", lambda: on_shard(put("flags", 1 << 31))),
    "shard-version-zero": ("S9", lambda: on_shard(lambda s: (put("version", 0)(s), put("trailer", {"version": 1})(s)))),
    "shard-reserved": ("S9", lambda: on_shard(put("reserved", b"\1" + bytes(23)))),
    "shard-alignment": ("S9", lambda: on_shard(_realigned)),
    "shard-footer-flip": ("S10", lambda: poked(S0, 128 + 4)),
    "shard-footer-padding": ("S11", lambda: on_shard(put("footer_pad", b"\1"), 0, packed)),
    "shard-lengths": ("S11", lambda: on_shard(_footer(lambda e: e.__setitem__(1, (1 << 20, *e[1][1:]))))),
    "shard-raw-length": ("S11", lambda: on_shard(_footer(lambda e: e.__setitem__(0, (*e[0][:2], 1 << 31))), 0, packed)),
    "shard-id": ("S12", lambda: on_shard(put("trailer", {"id": b"not the digest!!"}))),
    "shard-footer-crc-entry": ("S13", lambda: on_shard(_footer(lambda e: e.__setitem__(0, (e[0][0], 7, e[0][2]))))),
    "record-flip": ("S14", lambda: poked(S1, 64)),
    "record-last-byte": ("S14", lambda: poked(S0, 72 + 3)),
    "record-lz4-offset-zero": ("S14", _stored(0, (lz4.sequence(b"a", 0, 94) + lz4.final(b"a" * 5)).ljust(_LZ4_LEN, b"a"))),
    "record-lz4-offset-far": ("S14", _stored(0, lz4.sequence(b"a", 2, 94) + lz4.final(b"a" * 5))),
    "record-lz4-short": ("S14", _stored(0, lz4.sequence(b"a", 1, 93) + lz4.final(b"a" * 5))),
    "record-lz4-long": ("S14", _stored(0, lz4.sequence(b"a", 1, 95) + lz4.final(b"a" * 5))),
    "record-lz4-truncated": ("S14", _stored(0, lz4.sequence(b"a", 1, 94) + b"\x60aaaaa")),
    "record-lz4-literals-missing": ("S14", _stored(0, b"\x50aaaaa\1\0\x5faa")),
    "record-lz4-ends-in-copy": ("S14", _stored(0, lz4.sequence(b"a" * 7, 1, 93))),
    "record-lz4-content": ("S14", _stored(1, lz4.sequence(b"c", 1, 94) + lz4.final(b"b" * 5))),
    "shard-padding-flip": ("S15", lambda: poked(S1, 70)),
    "shard-file-crc": ("S15", lambda: on_member(lambda m: m["shards"][0].update(crc32c="12345678"))),
    "shard-file-sha256": ("S15", lambda: on_member(lambda m: m["shards"][0].update(sha256="1" * 64))),
    "shard-padding": ("S16", lambda: on_shard(put("gap", b"\1"))),
    "chain-ordinal": ("S17", lambda: on_shard(put("ordinal", 2))),
    "chain-first": ("S17", lambda: on_shard(put("first", 1))),
    "chain-last-missing": ("S17", lambda: on_shard(put("last", False))),
    "chain-last-early": ("S17", lambda: on_shard(put("last", True), 0)),
    "chain-part-descends": ("S17", lambda: base(shards=_parts_descend).build()),
    "chain-begins-late": ("S17", lambda: base(shards=_begins_late).build()),
}


def _realigned(shard: Shard) -> None:
    """Records at the very same places, another align in the header."""
    assert len(shard.records[0].stored) == 5  # the next record is at 72 under both
    shard.align = 2


def _parts_descend(shards: list[Shard]) -> None:
    for shard, part in zip(shards, (5, 2), strict=True):
        shard.part, shard.first, shard.ordinal, shard.last = part, 0, 0, True


def _begins_late(shards: list[Shard]) -> None:
    for shard in shards:
        shard.ordinal += 1


CASES = {**MANIFEST, **FILES, **INDEX, **ENTRIES, **METADATA, **SHARDS}
