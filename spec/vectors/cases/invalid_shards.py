"""Missing and cut files; defects of shards."""

from collections.abc import Callable

from model import lz4
from model.cache import Cache, Shard

from .breaking import S0, S1, Files, base, damaged, on_member, on_shard, packed, poked, put

def _folder(files: Files, name: str) -> None:
    """A folder in place of a file."""
    files[name + "/inside"] = files.pop(name)


FILES = {
    "metadata-missing": ("F1", lambda: damaged(lambda f: f.pop("metadata.arrow"))),
    "index-missing": ("F1", lambda: damaged(lambda f: f.pop("index.bin"))),
    "shard-missing": ("F1", lambda: damaged(lambda f: f.pop(S1))),
    "metadata-folder": ("F1", lambda: damaged(lambda f: _folder(f, "metadata.arrow"))),
    "shard-folder": ("F1", lambda: damaged(lambda f: _folder(f, S1))),
    "metadata-truncated": (
        "F2",
        lambda: damaged(lambda f: f.update({"metadata.arrow": f["metadata.arrow"][:-1]})),
    ),
    "index-truncated": (
        "F2",
        lambda: damaged(lambda f: f.update({"index.bin": f["index.bin"][:-4]})),
    ),
    "index-empty": ("F2", lambda: damaged(lambda f: f.update({"index.bin": b""}))),
    "shard-truncated": ("F2", lambda: damaged(lambda f: f.update({S1: f[S1][:-64]}))),
    "shard-too-long": ("F2", lambda: damaged(lambda f: f.update({S0: f[S0] + b"\0"}))),
}


def _swapped(files: Files) -> None:
    files[S0], files[S1] = files[S1], files[S0]


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
    "shard-trailer-version-zero": ("S4", lambda: on_shard(put("trailer", {"version": 0}))),
    "shard-trailer-flags": ("S5", lambda: on_shard(put("trailer", {"flags": 3}))),
    "shard-count": ("S5", lambda: on_shard(put("trailer", {"count": 3}))),
    "shard-size-field": ("S5", lambda: on_shard(put("trailer", {"size": 1 << 39}))),
    "shard-footer-offset": ("S5", lambda: on_shard(put("trailer", {"F": 64}))),
    "shard-footer-offset-huge": ("S5", lambda: on_shard(put("trailer", {"F": (1 << 64) - 64}))),
    "shard-magic": ("S6", lambda: poked(S0, 0)),
    "shard-header-flip": ("S6", lambda: poked(S1, 32)),
    "shard-version-new": (
        "S7",
        lambda: on_shard(lambda s: (put("version", 2)(s), put("trailer", {"version": 1})(s))),
    ),
    "shard-flags": ("S8", lambda: on_shard(put("flags", 1 << 31))),
    "shard-version-zero": (
        "S7",
        lambda: on_shard(lambda s: (put("version", 0)(s), put("trailer", {"version": 1})(s))),
    ),
    "shard-reserved": ("S9", lambda: on_shard(put("reserved", b"\1" + bytes(23)))),
    "shard-alignment": ("S9", lambda: on_shard(_realigned)),
    "shard-footer-flip": ("S10", lambda: poked(S0, 128 + 4)),
    "shard-footer-padding": ("S11", lambda: on_shard(put("footer_pad", b"\1"), 0, packed)),
    "shard-lengths": (
        "S11",
        lambda: on_shard(_footer(lambda e: e.__setitem__(1, (1 << 20, *e[1][1:])))),
    ),
    "shard-raw-length": (
        "S11",
        lambda: on_shard(_footer(lambda e: e.__setitem__(0, (*e[0][:2], 1 << 31))), 0, packed),
    ),
    "shard-id": ("S12", lambda: on_shard(put("trailer", {"id": b"not the digest!!"}))),
    "shard-footer-crc-entry": (
        "S13",
        lambda: on_shard(_footer(lambda e: e.__setitem__(0, (e[0][0], 7, e[0][2])))),
    ),
    "record-flip": ("S14", lambda: poked(S1, 64)),
    "record-last-byte": ("S14", lambda: poked(S0, 72 + 3)),
    "record-lz4-offset-zero": (
        "S14",
        _stored(0, (lz4.sequence(b"a", 0, 94) + lz4.final(b"a" * 5)).ljust(_LZ4_LEN, b"a")),
    ),
    "record-lz4-offset-far": ("S14", _stored(0, lz4.sequence(b"a", 2, 94) + lz4.final(b"a" * 5))),
    "record-lz4-short": ("S14", _stored(0, lz4.sequence(b"a", 1, 93) + lz4.final(b"a" * 5))),
    "record-lz4-long": ("S14", _stored(0, lz4.sequence(b"a", 1, 95) + lz4.final(b"a" * 5))),
    "record-lz4-truncated": ("S14", _stored(0, lz4.sequence(b"a", 1, 94) + b"\x60aaaaa")),
    "record-lz4-literals-missing": ("S14", _stored(0, b"\x50aaaaa\1\0\x5faa")),
    "record-lz4-ends-in-copy": ("S14", _stored(0, lz4.sequence(b"a" * 7, 1, 93))),
    "record-lz4-content": ("S14", _stored(1, lz4.sequence(b"c", 1, 94) + lz4.final(b"b" * 5))),
    "shard-padding-flip": ("S15", lambda: poked(S1, 70)),
    "shard-file-crc": (
        "S15",
        lambda: on_member(lambda m: m["shards"][0].update(crc32c="12345678")),
    ),
    "shard-file-sha256": (
        "S15",
        lambda: on_member(lambda m: m["shards"][0].update(sha256="1" * 64)),
    ),
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
