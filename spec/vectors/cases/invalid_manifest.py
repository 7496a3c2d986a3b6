"""Defects of manifest.json. Every one but the first three has a digest that fits."""

from collections.abc import Callable

from model.cache import Cache, seal_manifest, seal_text
from model.schema import Field

PREFIX = b'{"format":"dataset_rt.cache","version":1,'


def _base(**hooks) -> Cache:
    return Cache(
        [b"one", b"two"],
        [Field("n", "int64"), Field("t", "utf8")],
        [[1, 2], ["a", "b"]],
        parts=[(0, [1, 1])],
        hooks=hooks,
    )


def _bytes(edit: Callable[[bytes], bytes]):
    """The finished file changed as it is."""

    def change(files: dict[str, bytes]) -> None:
        files["manifest.json"] = edit(files["manifest.json"])

    return lambda: _base(files=change).build()


def _text(old: bytes, new: bytes):
    """Bytes before the tail replaced, then sealed again."""

    def edit(raw: bytes) -> bytes:
        assert raw[:-78].count(old) >= 1
        return seal_text(raw[:-78].replace(old, new, 1))

    return _bytes(edit)


def _set(*path, value):
    """One member set, added or (value ...) removed."""

    def edit(m: dict) -> None:
        at = m
        for key in path[:-1]:
            at = at[key]
        if value is ...:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return lambda: _base(manifest=edit).build()


def _flip(at: int):
    return _bytes(lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])


def _version(version: int):
    """A later version may have any members between prefix and tail."""
    return _bytes(lambda raw: seal_manifest({"anything": "else"}, version))


def _missing():
    cache = _base(files=lambda f: f.pop("manifest.json"))
    return cache.build()


def _equal_names(m: dict) -> None:
    m["shards"][1]["name"] = "000000"


def _field_name(name: str):
    return _set("fields", 1, "name", value=name)


MANIFEST = {
    "manifest-missing": ("M1", _missing),
    "manifest-empty": ("M2", _bytes(lambda raw: b"")),
    "manifest-truncated": ("M2", _bytes(lambda raw: raw[:-1])),
    "manifest-cut-in-half": ("M2", _bytes(lambda raw: raw[: len(raw) // 2])),
    "manifest-extra-byte": ("M2", _bytes(lambda raw: raw + b"\n")),
    "manifest-tail-upper-case": (
        "M2",
        _bytes(lambda raw: raw[:-67] + raw[-67:-3].upper() + raw[-3:]),
    ),
    "manifest-tail-other": ("M2", _bytes(lambda raw: raw[:-2] + b" \n")),
    "manifest-flip": ("M3", _flip(60)),
    "manifest-flip-version": ("M3", _flip(len(PREFIX) - 2)),
    "manifest-digest": ("M3", _bytes(lambda raw: raw[:-67] + b"0" * 64 + raw[-3:])),
    "manifest-other-format": ("M4", _text(b"dataset_rt.cache", b"dataset_rt.other")),
    "manifest-space-in-prefix": ("M5", _text(b'"version":1', b'"version": 1')),
    "manifest-version-text": ("M5", _text(b'"version":1', b'"version":"1"')),
    "manifest-version-leading-zero": ("M5", _text(b'"version":1', b'"version":01')),
    "manifest-bom": ("M4", _text(PREFIX, b"\xef\xbb\xbf" + PREFIX)),
    "manifest-version-2-53": ("M5", _text(b'"version":1', b'"version":9007199254740992')),
    "manifest-shared-comma": ("M5", _bytes(lambda raw: seal_text(PREFIX[:-1]))),
    "version-0": ("M6", _version(0)),
    "version-2": ("M6", _version(2)),
    "version-4294967295": ("M6", _version(4294967295)),
    "manifest-not-json": ("M7", _text(b'"codec":', b'"codec"')),
    "manifest-not-utf8": ("M7", _text(b"dataset_rt vectors", b"dataset_rt \xff\xfe")),
    "manifest-surrogate": ("M7", _text(b'"name":"vector"', b'"name":"\\ud800"')),
    "manifest-surrogate-name": ("M7", _text(b'"source":', b'"\\udfff":0,"source":')),
    "manifest-surrogate-unknown": ("M7", _text(b'"source":', b'"later":["\\ud800x"],"source":')),
    "manifest-nan": ("M7", _text(b'"source":', b'"later":NaN,"source":')),
    "manifest-control-character": ("M7", _text(b'"name":"vector"', b'"name":"vec\x01tor"')),
    "manifest-trailing-comma": ("M7", _text(b'"required":[]', b'"required":[],,"x":[]')),
    "manifest-leading-zero": ("M7", _text(b'"samples":2', b'"samples":02')),
    "manifest-two-objects": ("M7", _text(b'"source":', b'"x":0},{"source":')),
    "required-missing": ("M8", _set("required", value=...)),
    "required-no-list": ("M8", _set("required", value="future.thing")),
    "optional-no-texts": ("M8", _set("optional", value=[1])),
    "required-unknown": ("M9", _set("required", value=["future.thing"])),
    "required-zstd": ("M9", _set("required", value=["codec.zstd"])),
    "identity-missing": ("M10", _set("identity", value=...)),
    "identity-short": ("M10", _set("identity", value="00" * 31)),
    "identity-upper-case": ("M10", _set("identity", value="AB" * 32)),
    "source-missing": ("M10", _set("source", value=...)),
    "fingerprint-missing": ("M10", _set("source", "fingerprint", value=...)),
    "fingerprint-number": ("M10", _set("source", "fingerprint", value=5)),
    "created-number": ("M10", _set("created", value=0)),
    "created-offset": ("M10", _set("created", value="2026-01-02T03:04:05+00:00")),
    "created-hour": ("M10", _set("created", value="2026-01-02T24:00:00Z")),
    "created-second": ("M10", _set("created", value="2026-01-02T03:04:61Z")),
    "created-lower-case": ("M10", _set("created", value="2026-01-02t03:04:05z")),
    "created-point": ("M10", _set("created", value="2026-01-02T03:04:05.Z")),
    "created-newline": ("M10", _set("created", value="2026-01-02T03:04:05Z\n")),
    "created-month": ("M10", _set("created", value="2026-13-02T03:04:05Z")),
    "samples-text": ("M10", _set("samples", value="2")),
    "samples-zero": ("M10", _set("samples", value=0)),
    "samples-negative": ("M10", _set("samples", value=-2)),
    "samples-fraction": ("M10", _set("samples", value=2.5)),
    "samples-above-2-53": ("M10", _set("samples", value=2**53)),
    "samples-exponent": ("M10", _text(b'"samples":2', b'"samples":25e-1')),
    "samples-nearly-two": ("M10", _text(b'"samples":2', b'"samples":2.00000000000000000001')),
    "payload-bytes-above-2-64": (
        "M10",
        _text(b'"payload_bytes":6', b'"payload_bytes":18446744073709551622'),
    ),
    "payload-bytes-true": ("M10", _set("payload_bytes", value=True)),
    "fields-missing": ("M10", _set("fields", value=...)),
    "field-type-unknown": ("M10", _set("fields", 0, "type", value="int32")),
    "field-nullable-text": ("M10", _set("fields", 0, "nullable", value="no")),
    "field-description-null": ("M10", _set("fields", 0, "description", value=None)),
    "codec-unknown": ("M10", _set("codec", "name", value="brotli")),
    "alignment-3": ("M10", _set("alignment", value=3)),
    "alignment-8192": ("M10", _set("alignment", value=8192)),
    "user-number": ("M10", _set("user", value={"a": 1})),
    "user-null": ("M10", _set("user", value=None)),
    "media-type-null": ("M10", _set("media_type", value=None)),
    "index-sha256-null": ("M10", _set("index", "sha256", value=None)),
    "media-type-list": ("M10", _set("media_type", value=["text/plain"])),
    "metadata-file-missing": ("M10", _set("metadata", value=...)),
    "index-size-missing": ("M10", _set("index", "size", value=...)),
    "shard-crc-number": ("M10", _set("shards", 0, "crc32c", value=1)),
    "shard-crc-short": ("M10", _set("shards", 0, "crc32c", value="0000000")),
    "shard-sha256-short": ("M10", _set("shards", 0, "sha256", value="00")),
    "shard-id-missing": ("M10", _set("shards", 0, "id", value=...)),
    "shard-samples-zero": ("M10", _set("shards", 0, "samples", value=0)),
    "shard-size-small": ("M10", _set("shards", 0, "size", value=128)),
    "shard-size-2-40": ("M10", _set("shards", 0, "size", value=2**40)),
    "no-shards": ("M11", _set("shards", value=[])),
    "field-name-nul": ("M12", _field_name("a\0b")),
    "field-name-weight": ("M12", _field_name("weight")),
    "field-name-cache-id": ("M12", _field_name("cache_id")),
    "field-name-sample-id": ("M12", _field_name("sample_id")),
    "field-name-twice": ("M14", _field_name("n")),
    "field-name-long": ("M12", _field_name("ü" * 513)),
    "metadata-name": ("M10", _set("metadata", "name", value="../metadata.arrow")),
    "index-name": ("M10", _set("index", "name", value="index2.bin")),
    "shard-name-traversal": ("M13", _set("shards", 0, "name", value="../../../etc/passwd")),
    "shard-name-absolute": ("M13", _set("shards", 0, "name", value="/000000")),
    "shard-name-separator": ("M13", _set("shards", 0, "name", value="0/00000")),
    "shard-name-upper-case": ("M13", _set("shards", 0, "name", value="00000A")),
    "shard-name-letter-first": ("M13", _set("shards", 0, "name", value="a00000")),
    "shard-name-short": ("M13", _set("shards", 0, "name", value="00000")),
    "shard-name-long": ("M13", _set("shards", 0, "name", value="0" * 101)),
    "shard-name-newline": ("M13", _set("shards", 0, "name", value="000000\n")),
    "shard-name-digit-other": ("M13", _set("shards", 0, "name", value="00000٣")),
    "shard-name-twice": ("M14", lambda: _base(manifest=_equal_names).build()),
    "samples-do-not-add-up": ("M15", _set("samples", value=3)),
}
