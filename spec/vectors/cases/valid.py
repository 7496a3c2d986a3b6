"""Valid caches: each shows one thing that a correct reader accepts."""

import hashlib
import json
import struct

from model import lz4
from model.arrow import arrow_file
from model.cache import Cache, Section, seal_text
from model.schema import Bits, Field

_EXTREMES = [
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, float("inf"), float("-inf"),
    Bits(0x7FF8000000000000), Bits(0xFFF8000000000000), Bits(0x7FF0000000000001), Bits(0xFFF8DEADBEEF0001), Bits(0x7FFFFFFFFFFFFFFF),
]  # fmt: skip
_TEXTS = [
    "", "a", "\0", "a\0b", "é", "e\u0301", "日本語", "\U0001f600", "\ufeff", "\uffff", "\U0010ffff", "\n\t\"\\", "\u202e", "ß", "x" * 300,
]  # fmt: skip
_INTS = [
    0,
    1,
    -1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    -(2**63),
    255,
    256,
    65_535,
    65_536,
]


def noise(length: int, seed: bytes = b"noise") -> bytes:
    """Bytes that don't compress."""
    out = b""
    while len(out) < length:
        out += hashlib.sha256(seed + struct.pack("<Q", len(out))).digest()
    return out[:length]


def minimal() -> Cache:
    return Cache([b"hello"])


def all_types() -> Cache:
    fields = [
        Field("flag", "bool"),
        Field("count", "int64"),
        Field("score", "float64"),
        Field("label", "utf8", description="free text, \u00fc\u0301"),
    ]
    rows = len(_TEXTS)
    return Cache(
        [t.encode() * 2 for t in _TEXTS],
        fields,
        [[i % 3 == 0 for i in range(rows)], _INTS, _EXTREMES, _TEXTS],
    )


def nullable() -> Cache:
    fields = [
        Field("b", "bool", True),
        Field("i", "int64", True),
        Field("f", "float64", True),
        Field("s", "utf8", True),
        Field("never", "utf8", True),
    ]
    columns = [
        [True, None, False, True, False, True, None, None, None],
        [None, 1, -2, 5, 6, 7, None, None, None],
        [1.5, -0.0, None, 0.25, 4.0, 5.0, None, None, None],
        ["", None, "x", "", "null", "None", None, None, None],
        ["always"] * 9,
    ]
    return Cache([bytes([i]) for i in range(9)], fields, columns, batches=[3, 3, 3])


def described() -> Cache:
    user = {"licence": "CC0", "": "empty key", "ключ": "значение\n"}
    return Cache(
        [b"one", b"two", b"three"],
        fingerprint="2026-01-01/abc",
        user=user,
        media_type="text/plain; charset=utf-8",
        name="a source.v1",
    )


def many_batches() -> Cache:
    rows = 12
    fields = [Field("i", "int64"), Field("s", "utf8"), Field("b", "bool")]
    columns = [
        list(range(rows)),
        [f"row {i}" for i in range(rows)],
        [i % 2 == 0 for i in range(rows)],
    ]
    return Cache([b"%d" % i for i in range(rows)], fields, columns, batches=[1, 2, 8, 1])


def many_shards() -> Cache:
    payloads = [noise(n, b"shards") for n in (100, 1, 0, 300, 7, 8, 9, 0, 0, 250, 63, 64, 65)]
    return Cache(payloads, [Field("i", "int64")], [list(range(13))], max_shard_bytes=512)


def lz4_mixed() -> Cache:
    payloads = [
        b"a" * 1000,
        noise(200),
        b"",
        b"abcabcabc" * 50,
        b"short",
        bytes(70_000),
        b"x" * 13,
        noise(40) + b"y" * 400 + noise(40),
    ]
    return Cache(
        payloads, [Field("i", "int64")], [list(range(8))], codec="lz4", max_shard_bytes=600
    )


_HAND = {
    bytes(100): lz4.sequence(b"\0", 1, 94) + lz4.final(bytes(5)),  # overlapping copy
    b"0123456789abcdef" * 20: lz4.sequence(b"0123456789abcdef", 16, 299)
    + lz4.final(b"bcdef"),  # lengths of 15 and more
    noise(300) * 2: lz4.sequence(noise(300), 300, 290)
    + lz4.final(noise(300)[-10:]),  # 300 literals
    b"ab" * 140: lz4.sequence(b"ab", 2, 4)
    + lz4.sequence(b"ab", 8, 259)
    + lz4.final(b"b" + b"ab" * 6),
    noise(16, b"far") + bytes(65_519) + noise(16, b"far") + b"-end-": (
        lz4.sequence(noise(16, b"far") + b"\0", 1, 65_518)
        + lz4.sequence(b"", 65_535, 16)
        + lz4.final(b"-end-")
    ),  # the largest offset
}


def lz4_by_hand() -> Cache:
    return Cache(list(_HAND), codec="lz4", encode=_HAND.__getitem__)


def lz4_never() -> Cache:
    """A codec is declared and no record uses it."""
    return Cache([b"a" * 500, b""], codec="lz4", encode=lambda raw: raw)


def empty_payloads() -> Cache:
    return Cache([b""] * 5, [Field("i", "int64")], [[5, 4, 3, 2, 1]], max_shard_bytes=144)


def optional_unknown() -> Cache:
    cache = Cache(
        [b"a", b"b"], [Field("i", "int64")], [[1, 2]], optional=["future.hint", "codec.zstd"]
    )

    def manifest(m: dict) -> None:
        m["later"] = {"nested": [1, {"deep": None}], "text": "ignored"}
        m["fields"][0]["unit"] = "mm"
        m["shards"][0]["note"] = "ignored"
        m["codec"]["level"] = 3

    def sections(found: list[Section]) -> None:
        found.insert(2, Section(19, b"ignored", flags=1))
        found.append(Section(1000, b"also ignored, odd length", flags=1))

    cache.hooks = {"manifest": manifest, "index": lambda index: setattr(index, "edit", sections)}
    return cache


def two_parts() -> Cache:
    """As several tasks write: parts 3 and 7, names of attempts."""
    names = ["0003-0-attempt-a", "0003-1-attempt-a", "0007-0-attempt-c", "9" * 100]
    payloads = [b"p%d" % i for i in range(9)]
    return Cache(
        payloads,
        [Field("i", "int64")],
        [list(range(9))],
        parts=[(3, [2, 1]), (7, [4, 2])],
        names=names,
    )


def alignment_1() -> Cache:
    return Cache([b"abc", b"", b"defgh", b"i"], align=0)


def alignment_4096() -> Cache:
    return Cache([b"abc", b"", b"defgh", noise(4097)], align=12)


def many_samples() -> Cache:
    """Sections 1 and 32 of more than one block."""
    rows = 5_000
    fields = [Field("i", "int64"), Field("f", "float64")]
    return Cache(
        [b"%x" % i if i % 5 == 0 else b"" for i in range(rows)],
        fields,
        [list(range(rows)), [i / 7 for i in range(rows)]],
        align=0,
    )


def field_names() -> Cache:
    names = [
        "",
        "e\u0301",
        "\u00e9",
        "Weight",
        "cache_id ",
        "a.b",
        '"quoted"',
        "\n",
        "\U0001f600",
        "n" * 1024,
        "\u00fc" * 512,
    ]
    return Cache(
        [b"1", b"2"],
        [Field(n, "int64", nullable=i % 2 == 1) for i, n in enumerate(names)],
        [[i, -i] for i in range(len(names))],
    )


def liberal_metadata() -> Cache:
    """What a writer of this text doesn't do and a reader accepts all the same."""
    fields = [Field("s", "utf8", True), Field("b", "bool", True), Field("i", "int64", True)]
    columns = [["aa", None, "cc"], [True, False, True], [1, None, 3]]
    model = arrow_file(fields, columns, [range(3)])
    batch = model.batches[0]
    batch.buffers[0] = b"\xfd"  # bits after the last row are set
    batch.buffers[1] = struct.pack(
        "<4i", 2, 4, 6, 8
    )  # offsets begin at 2; the null's slot has bytes, not even text
    batch.buffers[2] = b"--aa\xff\xfecc--"
    batch.buffers[3] = b"\xff"  # a validity buffer without a null
    batch.buffers[4] = b"\xfd"
    batch.buffers[6] = struct.pack("<3q", 1, 77, 3) + bytes(
        40
    )  # a value under the null, a longer buffer
    return Cache([b"x", b"y", b"z"], fields, columns, metadata=model.to_bytes())


def pyarrow_metadata() -> Cache:
    """metadata.arrow as written by pyarrow, with its own alignment and batches."""
    import pyarrow as pa

    fields = [
        Field("s", "utf8", True),
        Field("f", "float64"),
        Field("b", "bool", True),
        Field("i", "int64"),
    ]
    columns = [
        ["α", None, "", "delta", "e"],
        [0.5, -0.0, 1e300, 3.0, 4.0],
        [None, True, False, True, None],
        [1, 2, 3, 4, 5],
    ]
    types = {"utf8": pa.string(), "float64": pa.float64(), "bool": pa.bool_(), "int64": pa.int64()}
    schema = pa.schema([pa.field(f.name, types[f.type], f.nullable) for f in fields])
    table = pa.table(
        [pa.array(c, types[f.type]) for f, c in zip(fields, columns, strict=True)], schema=schema
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return Cache(
        [b"1", b"2", b"3", b"4", b"5"], fields, columns, metadata=sink.getvalue().to_pybytes()
    )


def file_sha256() -> Cache:
    return Cache([b"checked", b"twice"], file_sha256=True)


def json_forms() -> Cache:
    """Another order of members, white space and escapes: all legal JSON."""
    cache = Cache(
        [b"a", b"b"], [Field("\u00e9/x", "utf8")], [["1", "2"]], name="caf\u00e9 \U0001f600"
    )

    def files(found: dict[str, bytes]) -> None:
        members = json.loads(found["manifest.json"])
        rest = {
            k: members[k] for k in reversed(members) if k not in ("format", "version", "sha256")
        }
        text = json.dumps(rest, ensure_ascii=True, indent=1)
        text = text.replace("\\u00e9/x", "\\u00E9\\/x")
        found["manifest.json"] = seal_text(
            '{"format":"dataset_rt.cache","version":1,\r\n\t' + text[1:-1] + " "
        )

    cache.hooks = {"files": files}
    return cache


def extra_files() -> Cache:
    """Files the manifest doesn't name are ignored."""
    cache = Cache([b"a"])
    cache.hooks = {
        "files": lambda f: f.update(
            {
                "README.txt": b"not part of it\n",
                "shards/000001.bin": b"stray",
                "manifest.json.bak": b"{}",
            }
        )
    }
    return cache


def wide() -> Cache:
    names = [f"c{i:03d}" for i in range(120)]
    types = ["bool", "int64", "float64", "utf8"]
    fields = [Field(n, types[i % 4]) for i, n in enumerate(names)]
    values = {"bool": True, "int64": 7, "float64": 0.5, "utf8": "t"}
    return Cache([b"w"], fields, [[values[f.type]] for f in fields])


def odd_names() -> Cache:
    """Names that mean something in a programming language."""
    names = ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "length", "then"]
    names += ["0", "-1", "__class__", "self", "None", "null", "undefined", "NaN", "index", "payload"]
    rows = [[i, -i] for i in range(len(names))]
    fields = [Field(n, "int64") for n in names]
    return Cache([b"1", b"2"], fields, rows, user={n: n for n in names})


def extreme_numbers() -> Cache:
    """Ends of the ranges beside nulls, in two batches."""
    ints = [-(2**63), None, 2**63 - 1, -1, None, 2**53 + 1, -(2**53) - 1, 0]
    floats = [
        Bits(0x7FEFFFFFFFFFFFFF),
        Bits(0x8000000000000001),
        None,
        Bits(0x000FFFFFFFFFFFFF),
        Bits(0x0010000000000000),
        Bits(0xFFF0000000000000),
        Bits(0x8000000000000000),
        None,
    ]
    fields = [Field("i", "int64", True), Field("f", "float64", True)]
    return Cache([b"%d" % i for i in range(8)], fields, [ints, floats], batches=[3, 5])


def date_forms() -> Cache:
    """No calendar is asked: the form alone counts."""
    cache = Cache([b"a"])
    cache.hooks = {"manifest": lambda m: m.update(created="0000-02-31T23:59:60.123456789012Z")}
    return cache


def many_batches_nulls() -> Cache:
    """Seventeen batches: with nulls at other places, of nulls alone, and without any."""
    rows = 153
    fields = [Field(t, t, True) for t in ("bool", "int64", "float64", "utf8")]
    makes = [lambda i: i % 3 == 1, lambda i: i * i, lambda i: i / 8, lambda i: "\u00e9" * (i % 7)]
    batches = list(range(1, 18))
    of = [n for n, count in enumerate(batches) for _ in range(count)]

    def null(row: int, column: int) -> bool:
        return of[row] % 4 == 1 or (of[row] % 4 != 2 and (row + column) % 5 == 0)

    columns = [[None if null(i, c) else f(i) for i in range(rows)] for c, f in enumerate(makes)]
    return Cache([b"%x" % i for i in range(rows)], fields, columns, batches=batches)


def big_texts() -> Cache:
    """Text of several blocks of 65,536 bytes; characters and offsets stand across their ends."""
    texts = ["\u20ac" * 30_000, "", "\U0001f600" * 17_000, "x", "\u00e9" * 40_001]
    return Cache([b"", b"1", b"2", b"3", b"4"], [Field("t", "utf8")], [texts])


def empty_buffers() -> Cache:
    """Buffers without bytes may stand anywhere in the body."""
    fields = [Field("i", "int64"), Field("t", "utf8", True), Field("j", "int64")]
    columns = [[1, 2], ["", ""], [3, 4]]
    model = arrow_file(fields, columns, [range(2)])
    # Buffers: 0 and 1 of i, 2 to 4 of t, 5 and 6 of j; the body has three times 64 bytes.
    model.batches[0].places = {0: (192, 0), 2: (0, 0), 4: (8, 0), 5: (184, 0)}
    return Cache([b"a", b"b"], fields, columns, metadata=model.to_bytes())


def many_blocks() -> Cache:
    """One sample more than a block of the identity; sections 1 and 2 of several blocks of sums."""
    rows = 65_537
    flags = [None if i % 1000 == 7 else i % 3 == 0 for i in range(rows)]
    payloads = [b"z" * 50 if i % 4096 == 4095 else b"" for i in range(rows)]
    payloads[-1] = b"last"
    return Cache(payloads, [Field("flag", "bool", True)], [flags], codec="lz4", align=0)


CASES = {
    "minimal": (minimal, ["3", "5", "6", "7", "8", "9"]),
    "all-types": (all_types, ["7.1", "9"]),
    "nullable": (nullable, ["7.1", "7.3", "7.4", "9"]),
    "described": (described, ["8.2"]),
    "many-batches": (many_batches, ["7.1"]),
    "many-shards": (many_shards, ["5.2", "11.1"]),
    "lz4-mixed": (lz4_mixed, ["5.3", "5.5", "6.2"]),
    "lz4-by-hand": (lz4_by_hand, ["5.5"]),
    "lz4-never": (lz4_never, ["5.5"]),
    "empty-payloads": (empty_payloads, ["5.2", "11.1"]),
    "optional-unknown": (optional_unknown, ["6.2", "8.2", "14"]),
    "two-parts": (two_parts, ["3", "5.6"]),
    "alignment-1": (alignment_1, ["5.2"]),
    "alignment-4096": (alignment_4096, ["5.2"]),
    "many-samples": (many_samples, ["6.2"]),
    "field-names": (field_names, ["8.3"]),
    "liberal-metadata": (liberal_metadata, ["7.3", "9"]),
    "pyarrow-metadata": (pyarrow_metadata, ["7.2", "7.3"]),
    "file-sha256": (file_sha256, ["8.2"]),
    "json-forms": (json_forms, ["8.1", "8.2"]),
    "extra-files": (extra_files, ["3"]),
    "wide": (wide, ["7.1"]),
    "odd-names": (odd_names, ["8.2", "8.3"]),
    "extreme-numbers": (extreme_numbers, ["7.1", "9"]),
    "date-forms": (date_forms, ["8.2"]),
    "many-batches-nulls": (many_batches_nulls, ["7.1", "7.3", "9"]),
    "big-texts": (big_texts, ["6.2", "7.3"]),
    "empty-buffers": (empty_buffers, ["7.3"]),
    "many-blocks": (many_blocks, ["5.3", "6.2", "7.4", "9"]),
}
