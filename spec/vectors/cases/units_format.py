"""Unit cases of format.md. Each case is {"in": ..., "out": ...}."""

import re
import struct

from model import lz4
from model.arrow import batch_ranges
from model.cache import INDEX_MAGIC, Cache, Record, Shard, seal_text
from model.checksum import block_sums, crc32c
from model.identity import identity
from model.schema import Field
from model.tagged import tag, tags

from .invalid_manifest import PREFIX
from .valid import _HAND, all_types, noise, nullable


def u(value: int) -> dict:
    return tag("uint64", value)


def case(out, **given) -> dict:
    return {"in": given, "out": out}


def crcs() -> list[dict]:
    given = [
        b"",
        b"a",
        b"123456789",
        bytes(32),
        b"\xff" * 32,
        bytes(range(32)),
        bytes(range(31, -1, -1)),
        noise(300),
    ]
    return [
        case({"number": u(crc32c(g)), "hex": tag("utf8", f"{crc32c(g):08x}")}, data=tag("bytes", g))
        for g in given
    ]


def sums() -> list[dict]:
    """Blocks of 65,536 bytes of a stream of zero bytes."""
    return [
        case(tags("uint64", block_sums(bytes(n))), zero_bytes=u(n))
        for n in (0, 1, 65_535, 65_536, 65_537, 131_072, 131_073)
    ]


def lz4_blocks() -> list[dict]:
    """Stored bytes and raw_len -> the payload, or null where the block is broken."""
    copy, end = lz4.sequence, lz4.final
    blocks = [
        (lz4.compress(b"abcabcabc" * 9), 81),
        (end(b""), 0),
        (end(b"literals"), 8),
        (end(noise(15)), 15),
        (end(noise(270)), 270),
        (end(noise(525)), 525),
    ]
    blocks += [(block, len(raw)) for raw, block in _HAND.items() if len(raw) < 1000]
    good = copy(b"a", 1, 94) + end(b"a" * 5)
    blocks += [
        (good, 100),
        (good, 99),
        (good, 101),
        (b"", 0),
        (b"", 1),
        (good[:-1], 100),
        (good + b"\0", 100),
    ]
    blocks += [
        (copy(b"a", 0, 94) + end(b"aaaaa"), 100),
        (copy(b"a", 2, 94) + end(b"aaaaa"), 100),
        (b"\x1fa\1\0", 100),
        (b"\x1fa\1", 100),
        (b"\xf0", 15),
    ]
    blocks += [(b"\xf0" + b"\xff" * 20, 15), (copy(b"a" * 7, 1, 93), 100)]
    out = []
    for block, raw_len in blocks:
        raw = lz4.decompress(block, raw_len)
        shown = {"type": "null", "value": ""} if raw is None else tag("bytes", raw)
        out.append(case(shown, stored=tag("bytes", block), raw_len=u(raw_len)))
    return out


_CHAIN = [
    Shard("x", [Record(b"hello", crc32c(b"hello"), 5)]),
    Shard(
        "x",
        [Record(b"", 0, 0), Record(b"abc", crc32c(b"abc"), 3)],
        align=12,
        part=7,
        first=1 << 33,
        ordinal=9,
        last=False,
    ),
    Shard(
        "x",
        [Record(lz4.compress(b"z" * 90), crc32c(b"z" * 90), 90)],
        codec=1,
        align=0,
        part=2**64 - 1,
        ordinal=2**32 - 1,
    ),
]


def shard_parts() -> list[dict]:
    """Header, footer and trailer of whole shards, and what they say."""
    out = []
    for shard in _CHAIN:
        raw = shard.seal()
        end = struct.unpack_from("<Q", raw, len(raw) - 56)[0]
        header = {
            "codec": u(shard.codec),
            "align": u(shard.align),
            "part": u(shard.part),
            "first": u(shard.first),
            "ordinal": u(shard.ordinal),
        }
        trailer = {
            "count": u(len(shard.records)),
            "F": u(end),
            "size": u(len(raw)),
            "id": tag("bytes", shard.id),
            "last": tag("bool", shard.last),
        }
        records = {
            "offsets": tags("uint64", shard.offsets),
            "stored_len": tags("uint64", [len(r.stored) for r in shard.records]),
            "raw_len": tags("uint64", [r.raw_len for r in shard.records]),
            "crc": tags("uint64", [r.crc for r in shard.records]),
        }
        given = {
            "header": tag("bytes", raw[:64]),
            "footer": tag("bytes", raw[end:-64]),
            "trailer": tag("bytes", raw[-64:]),
        }
        out.append(case({"header": header, "trailer": trailer, "records": records}, **given))
    return out


def index_entries() -> list[dict]:
    given = [
        (0, 64, 5, 1),
        (1, 72, 0, 0),
        (2**24 - 1, 2**40 - 8, 2**32 - 1, 2**32 - 1),
        (258, 0x0102030405, 0x06070809, 0x0A0B0C0D),
    ]
    out = []
    for shard, offset, stored, crc in given:
        raw = struct.pack("<QII", shard << 40 | offset, stored, crc)
        out.append(
            case(
                {"shard": u(shard), "offset": u(offset), "stored_len": u(stored), "crc": u(crc)},
                entry=tag("bytes", raw),
            )
        )
    return out


def index_headers() -> list[dict]:
    """The first bytes of index.bin: header and section table."""
    out = []
    for codec, payloads in [("none", [b"hello"]), ("lz4", [b"a" * 50, b""])]:
        raw = Cache(payloads, codec=codec).build()["index.bin"]
        assert raw[:8] == INDEX_MAGIC
        count = struct.unpack_from("<I", raw, 40)[0]
        rows = list(struct.iter_unpack("<IIQQII", raw[128 : 128 + 32 * count]))
        sections = {
            name: tags("uint64", [r[i] for r in rows])
            for i, name in enumerate(("kind", "flags", "offset", "length", "crc"))
        }
        shown = {
            "codec": u(raw[10]),
            "align": u(raw[11]),
            "samples": u(len(payloads)),
            "shards": u(1),
            "size": u(len(raw)),
            "identity": tag("bytes", raw[48:80]),
        }
        out.append(case(shown | {"sections": sections}, head=tag("bytes", raw[: 128 + 32 * count])))
    return out


def rotation() -> list[dict]:
    """Stored lengths and the writer's limit -> samples of each shard."""
    lengths = [
        [0] * 5, [100, 1, 0, 300, 7, 8, 9, 0, 0, 250, 63, 64, 65], [1000], [1000, 1000], [1, 1000, 1], [8] * 40,
    ]  # fmt: skip
    out = []
    for given in lengths:
        for limit, align, codec in [
            (1, 3, "none"),
            (144, 3, "none"),
            (512, 3, "none"),
            (512, 3, "lz4"),
            (512, 0, "none"),
            (5000, 12, "none"),
        ]:
            cache = Cache([], max_shard_bytes=limit, align=align, codec=codec)
            counts = cache.shard_counts([Record(bytes(n), 0, n) for n in given])
            told = {
                "stored_len": tags("uint64", given),
                "max_shard_bytes": u(limit),
                "align": u(align),
                "codec": tag("utf8", codec),
            }
            out.append(case(tags("uint64", counts), **told))
    return out


def batches() -> list[dict]:
    """Text bytes of each row, as runs of (rows, bytes), -> rows of each batch."""
    mib = 1 << 20
    given = [[(1, 0)], [(65_536, 0)], [(65_537, 0)], [(140_000, 0)], [(16, mib)], [(17, mib)], [(1, 20 * mib), (2, 1)], [(2, 1), (1, 17 * mib), (2, 1)],
             [(1, 16 * mib), (1, 0), (1, 1)], [(65_536, 256), (1, 0)], [(65_536, 257)]]  # fmt: skip
    out = []
    for runs in given:
        column = [_Text(n) for rows, n in runs for _ in range(rows)]
        made = [len(r) for r in batch_ranges([Field("t", "utf8")], [column], len(column))]
        told = {
            "rows": tags("uint64", [r for r, _ in runs]),
            "bytes": tags("uint64", [n for _, n in runs]),
        }
        out.append(case(tags("uint64", made), **told))
    return out


class _Text:
    """Stands for text of n bytes without holding them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def encode(self) -> "_Text":
        return self

    def __len__(self) -> int:
        return self.n

    def __bool__(self) -> bool:
        return True


def identities() -> list[dict]:
    """Small contents; the columns are those of the valid caches of the same name."""
    out = []
    for name, cache in [
        ("minimal", Cache([b"hello"])),
        ("all-types", all_types()),
        ("nullable", nullable()),
    ]:
        pairs = [(len(p), crc32c(p)) for p in cache.payloads]
        told = {
            "cache": tag("utf8", name),
            "raw_len": tags("uint64", [p[0] for p in pairs]),
            "crc": tags("uint64", [p[1] for p in pairs]),
        }
        out.append(case(tag("bytes", identity(cache.fields, cache.columns, pairs)), **told))
    return out


def identities_by_rule() -> list[dict]:
    """Sample i has raw_len i mod 7 and crc i * 2654435761 mod 2^32; one field "n", int64, value i; one field "t", utf8, nullable:
    null where i mod 3 = 0, else i in decimal."""
    out = []
    for rows in (1, 2, 65_535, 65_536, 65_537, 131_073):
        pairs = [(i % 7, i * 2_654_435_761 % 2**32) for i in range(rows)]
        texts = [None if i % 3 == 0 else str(i) for i in range(rows)]
        made = identity(
            [Field("n", "int64"), Field("t", "utf8", True)], [list(range(rows)), texts], pairs
        )
        out.append(case(tag("bytes", made), samples=u(rows)))
    return out


def shard_names() -> list[dict]:
    good = ["000000", "999999", "1000000", "0a-b-c", "9" * 100, "0-----", "00000z"]
    bad = [
        "",
        "0",
        "00000",
        "a00000",
        "-00000",
        "00000A",
        "00000_",
        "00000.",
        "000/00",
        "000\\00",
        "0" * 101,
        "000000\n",
        "00000\0",
        "00000é",
        "../000",
        "00000٣",
    ]
    for name in good + bad:
        assert bool(re.fullmatch("[0-9][0-9a-z-]{5,99}", name)) == (name in good)
    return [case(tag("bool", n in good), name=tag("utf8", n)) for n in good + bad]


def manifest_tails() -> list[dict]:
    """Whole manifests, as bytes -> what the checks M2 to M6 say."""
    good = seal_text(PREFIX + b'"any":0')
    start = b'{"format":"dataset_rt.cache","version":'
    given = [
        ("ok", good), ("manifest_damaged", b""), ("manifest_damaged", good[1:]), ("manifest_damaged", good[:-1]), ("manifest_damaged", good + b" "),
        ("manifest_damaged", good.replace(b"any", b"Any")), ("manifest_damaged", good[-78:]), ("manifest_damaged", seal_text(b"{")),
        ("manifest_damaged", seal_text(b" " + PREFIX + b'"any":0')), ("manifest_damaged", seal_text(start.replace(b"cache", b"other") + b'1,"any":0')),
        ("version_unsupported", seal_text(start + b'2,"x":[')), ("version_unsupported", seal_text(start + b"0,")),
        ("version_unsupported", seal_text(start + b"9007199254740991,")), ("manifest_invalid", seal_text(start + b"9007199254740992,")),
        ("manifest_invalid", seal_text(start + b"1")), ("manifest_invalid", seal_text(start + b"01,")), ("manifest_invalid", seal_text(start + b"-1,")),
        ("manifest_invalid", seal_text(start + b" 1,")), ("manifest_invalid", seal_text(start + b"1.0,")), ("manifest_invalid", seal_text(start + b",")),
    ]  # fmt: skip
    return [case(tag("utf8", outcome), manifest=tag("bytes", raw)) for outcome, raw in given]


CASES = {
    "crc32c": (crcs, ["2"]),
    "block-sums": (sums, ["6.2"]),
    "lz4-blocks": (lz4_blocks, ["5.5"]),
    "shard-parts": (shard_parts, ["5.1", "5.3", "5.4"]),
    "index-entries": (index_entries, ["6.3"]),
    "index-headers": (index_headers, ["6.1", "6.2"]),
    "rotation": (rotation, ["11.1"]),
    "batches": (batches, ["7.4"]),
    "identity": (identities, ["9"]),
    "identity-by-rule": (identities_by_rule, ["9"]),
    "shard-names": (shard_names, ["3"]),
    "manifest-tail": (manifest_tails, ["8.1", "8.4"]),
}
