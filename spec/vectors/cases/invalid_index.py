"""Defects of index.bin and of its entries."""

from model.cache import Index, Section

from .breaking import Files, on_entry, on_index, on_member, on_sections, packed, poked, put


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
    "index-version-zero": ("I4", lambda: on_index(put("version", 0))),
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
    "index-section-bits": (
        "I9",
        lambda: on_sections(lambda f: f.append(Section(99, b"x", flags=3))),
    ),
    "index-array-crc": ("I9", lambda: on_sections(_on_kind(1, crc=1))),
    "index-section-unknown": (
        "I10",
        lambda: on_sections(lambda f: f.append(Section(99, b"needed"))),
    ),
    "index-section-kind-0": (
        "I10",
        lambda: on_sections(lambda f: f.insert(0, Section(0, b"needed"))),
    ),
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
    "entry-nothing-stored": ("E4", lambda: on_index(_nothing_stored, packed)),
    "entry-other-record": ("S13", lambda: on_entry(0, offset=72)),
    "entry-shorter": ("S13", lambda: _moved_length()),
    "entry-crc": (
        "S13",
        lambda: on_index(lambda i: i.entries.__setitem__(0, (*i.entries[0][:2], 1))),
    ),
    "entries-swapped": ("S13", lambda: on_index(lambda i: i.entries.reverse())),
    "payload-bytes": ("T1", lambda: on_member(lambda m: m.update(payload_bytes=19))),
    "stored-bytes": ("T1", lambda: on_member(lambda m: m.update(stored_bytes=17))),
}


def _nothing_stored(index: Index) -> None:
    """No byte can stand for a hundred."""
    position, _, crc = index.entries[0]
    index.entries[0] = (position, 0, crc)


def _moved_length() -> Files:
    """One byte from one sample to another: the sums still fit."""

    def edit(index: Index) -> None:
        (p0, n0, c0), (p1, n1, c1) = index.entries[:2]
        index.entries[:2] = [(p0, n0 - 1, c0), (p1, n1 + 1, c1)]

    return on_index(edit)
