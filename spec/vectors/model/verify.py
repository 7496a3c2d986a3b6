"""Whole verification in the order of format.md, section 10.5.

Raises Refused with the code and the check.
"""

import hashlib
import json
import re
import struct
from pathlib import Path

from . import lz4
from .checksum import block_sums, crc32c
from .identity import identity
from .schema import Bits, Field
from .verify_arrow import Refused, columns, need

KNOWN = {1, 2, 17, 18, 32}
MAX_COMPRESSED = 0x7E000000
DIGITS = re.compile(r"[0-9a-f]*")
TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?Z"
)


def up(x: int, a: int) -> int:
    return -(-x // a) * a


def hexadecimal(value, digits: int) -> bool:
    return isinstance(value, str) and len(value) == digits and DIGITS.fullmatch(value) is not None


def count_of(value, low: int = 0, high: int = (1 << 53) - 1) -> bool:
    return type(value) is int and low <= value <= high


def texts(value) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


# --- manifest ----------------------------------------------------------------------------------


def parse_manifest(raw: bytes) -> dict:
    tail = re.fullmatch(rb',"sha256":"([0-9a-f]{64})"\}\n', raw[-78:])
    need(tail, "manifest_damaged", "M2")
    need(hashlib.sha256(raw[:-78]).hexdigest().encode() == tail[1], "manifest_damaged", "M3")
    start = b'{"format":"dataset_rt.cache","version":'
    need(raw.startswith(start), "manifest_damaged", "M4")
    version = re.match(rb"(0|[1-9][0-9]{0,15}),", raw[len(start) : -78] + b"\0")
    need(version and int(version[1]) < 1 << 53, "manifest_invalid", "M5")
    need(version[1] == b"1", "version_unsupported", "M6")
    try:
        m = json.loads(raw.decode(), parse_constant=not_json)
        json.dumps(m, ensure_ascii=False).encode()
    except ValueError:
        raise Refused("manifest_invalid", "M7") from None
    need(isinstance(m, dict), "manifest_invalid", "M7")
    need(texts(m.get("required")) and texts(m.get("optional")), "manifest_invalid", "M8")
    need(not m["required"], "feature_unsupported", "M9")
    check_members(m)
    need(len(m["fields"]) <= 4096 and 1 <= len(m["shards"]) <= 1 << 24, "manifest_invalid", "M11")
    fields, shards = [f["name"] for f in m["fields"]], [s["name"] for s in m["shards"]]
    need(all(len(n.encode()) <= 1024 and "\0" not in n for n in fields), "name_invalid", "M12")
    need(not {"weight", "cache_id", "sample_id"} & set(fields), "name_invalid", "M12")
    need(all(re.fullmatch("[0-9][0-9a-z-]{5,99}", n) for n in shards), "name_invalid", "M13")
    need(
        len(set(fields)) == len(fields) and len(set(shards)) == len(shards),
        "manifest_invalid",
        "M14",
    )
    need(sum(s["samples"] for s in m["shards"]) == m["samples"], "manifest_invalid", "M15")
    return m


def not_json(constant: str):
    """NaN and the infinities, which Python's parser takes."""
    raise ValueError(constant)


def check_members(m: dict) -> None:
    def ok(condition) -> None:
        need(condition, "manifest_invalid", "M10")

    ok(hexadecimal(m.get("identity"), 64))
    source = m.get("source")
    ok(isinstance(source, dict) and isinstance(source.get("name"), str))
    ok(
        "fingerprint" in source
        and (source["fingerprint"] is None or isinstance(source["fingerprint"], str))
    )
    ok(
        isinstance(m.get("created"), str)
        and TIME.fullmatch(m["created"])
        and isinstance(m.get("writer"), str)
    )
    ok(
        count_of(m.get("samples"), 1)
        and count_of(m.get("payload_bytes"))
        and count_of(m.get("stored_bytes"))
    )
    ok(isinstance(m.get("fields"), list))
    for f in m["fields"]:
        ok(
            isinstance(f, dict)
            and isinstance(f.get("name"), str)
            and type(f.get("nullable")) is bool
        )
        ok(
            f.get("type") in ("bool", "int64", "float64", "utf8")
            and isinstance(f.get("description", ""), str)
        )
    ok(isinstance(m.get("codec"), dict) and m["codec"].get("name") in ("none", "lz4"))
    ok(m.get("alignment") in [1 << i for i in range(13)] and type(m["alignment"]) is int)
    user = m.get("user", {})
    ok(isinstance(user, dict) and all(isinstance(v, str) for v in user.values()))
    ok(isinstance(m.get("media_type", ""), str))
    ok(isinstance(m.get("shards"), list))
    for name, key in (("metadata.arrow", "metadata"), ("index.bin", "index")):
        ok(isinstance(m.get(key), dict) and m[key].get("name") == name)
    for f in [m["metadata"], m["index"], *m["shards"]]:
        ok(isinstance(f, dict) and isinstance(f.get("name"), str) and count_of(f.get("size")))
        ok(hexadecimal(f.get("crc32c"), 8) and ("sha256" not in f or hexadecimal(f["sha256"], 64)))
    for s in m["shards"]:
        ok(count_of(s.get("samples"), 1) and hexadecimal(s.get("id"), 32))
        ok(128 + footer_length(m, s["samples"]) <= s["size"] < 1 << 40)


def footer_length(m: dict, count: int) -> int:
    return up(count * (8 if m["codec"]["name"] == "none" else 12), 8)


# --- files -------------------------------------------------------------------------------------


def read_files(root: Path, m: dict) -> list[bytes]:
    out = []
    for f, path in [
        (m["metadata"], "metadata.arrow"),
        (m["index"], "index.bin"),
        *((s, f"shards/{s['name']}.bin") for s in m["shards"]),
    ]:
        need((root / path).is_file(), "file_missing", "F1")
        raw = (root / path).read_bytes()
        need(len(raw) == f["size"], "file_size", "F2")
        out.append(raw)
    return out


def whole(raw: bytes, f: dict, rule: str) -> None:
    need(f"{crc32c(raw):08x}" == f["crc32c"], "checksum_mismatch", rule)
    need(
        "sha256" not in f or hashlib.sha256(raw).hexdigest() == f["sha256"],
        "checksum_mismatch",
        rule,
    )


def check_index(raw: bytes, m: dict):
    """Entries, raw lengths or None, sums of metadata blocks."""
    need(len(raw) >= 128 and raw[:8] == b"\x89DRTI\r\n\x1a", "index_damaged", "I1")
    version, codec, align, flags, samples, shards, size, count, reserved = struct.unpack_from(
        "<HBBIQQQII", raw, 8
    )
    need(128 + 32 * count <= len(raw), "index_damaged", "I2")
    table = raw[128 : 128 + 32 * count]
    need(crc32c(raw[:124] + table) == struct.unpack_from("<I", raw, 124)[0], "index_damaged", "I3")
    need(version == 1, "version_unsupported", "I4")
    rows = list(struct.iter_unpack("<IIQQII", table))
    need(
        not reserved and not any(raw[80:124]) and not any(r[5] for r in rows), "index_invalid", "I5"
    )
    need(flags == 0, "feature_unsupported", "I6")
    lz = m["codec"]["name"] == "lz4"
    sound = (
        codec == lz
        and 1 << align == m["alignment"]
        and samples == m["samples"]
        and shards == len(m["shards"])
    )
    need(sound and size == len(raw), "index_invalid", "I7")
    need(raw[48:80].hex() == m["identity"], "index_invalid", "I8")
    kinds = [r[0] for r in rows]
    need(all(a < b for a, b in zip(kinds, kinds[1:], strict=False)), "index_invalid", "I9")
    for kind, bits, _, _, crc, _ in rows:
        need(bits <= (kind not in KNOWN) and (kind >= 16 or crc == 0), "index_invalid", "I9")
    for kind, bits, *_ in rows:
        need(kind in KNOWN or bits & 1, "feature_unsupported", "I10")
    at, found = 128 + 32 * count, {}
    for kind, _, offset, length, crc, _ in rows:
        need(offset == up(at, 64) and offset + length <= len(raw), "index_invalid", "I11")
        found[kind], at = (offset, length, crc), offset + length
    need(at == len(raw), "index_invalid", "I11")
    sums = lambda n: 4 * -(-n // 65_536)  # noqa: E731
    lengths = {1: 16 * samples, 17: sums(16 * samples), 32: sums(m["metadata"]["size"])}
    lengths |= {2: 4 * samples, 18: sums(4 * samples)} if lz else {}
    known = {k: v[1] for k, v in found.items() if k in KNOWN}
    need(known == lengths, "index_invalid", "I12")
    data = {k: raw[o : o + n] for k, (o, n, _) in found.items()}
    for kind in sorted(lengths):
        need(kind < 16 or crc32c(data[kind]) == found[kind][2], "index_damaged", "I13")
    words = lambda kind: [v for (v,) in struct.iter_unpack("<I", data[kind])]  # noqa: E731
    need(block_sums(data[1]) == words(17), "index_damaged", "I14")
    need(not lz or block_sums(data[2]) == words(18), "index_damaged", "I14")
    whole(raw, m["index"], "I15")
    at = 128 + 32 * count
    for offset, length, _ in sorted(found.values()):
        need(not any(raw[at:offset]), "index_invalid", "I16")
        at = offset + length
    entries = list(struct.iter_unpack("<QII", data[1]))
    return entries, words(2) if lz else [e[1] for e in entries], words(32)


def lengths_fit(stored: int, raw_len: int) -> bool:
    return stored == raw_len or (stored < raw_len <= 255 * stored and raw_len <= MAX_COMPRESSED)


def check_entries(entries, raws, m: dict) -> None:
    for (position, stored, _), raw_len in zip(entries, raws, strict=True):
        shard, offset = position >> 40, position & (1 << 40) - 1
        need(shard < len(m["shards"]), "entry_invalid", "E1")
        need(offset >= 64 and offset % m["alignment"] == 0, "entry_invalid", "E2")
        s = m["shards"][shard]
        need(
            offset + stored <= s["size"] - 64 - footer_length(m, s["samples"]),
            "entry_invalid",
            "E3",
        )
        need(lengths_fit(stored, raw_len), "entry_invalid", "E4")
    fits = sum(raws) == m["payload_bytes"] and sum(e[1] for e in entries) == m["stored_bytes"]
    need(fits, "manifest_invalid", "T1")


# --- shards ------------------------------------------------------------------------------------


def check_shard(raw: bytes, number: int, s: dict, m: dict, entries, raws) -> tuple:
    """Payloads and (part, first, ordinal, count, last). `entries` are those of this shard."""
    tail = raw[-64:]
    need(len(raw) >= 136 and tail[56:] == b"\x1a\n\rSTRD\x89", "shard_damaged", "S1")
    need(crc32c(tail[:52]) == struct.unpack_from("<I", tail, 52)[0], "shard_damaged", "S2")
    count, end, size = struct.unpack_from("<QQQ", tail)
    footer_crc, flags, version = struct.unpack_from("<III", tail, 40)
    need(tail[24:40].hex() == s["id"], "shard_mismatch", "S3")
    need(version == 1, "version_unsupported", "S4")
    sound = flags <= 1 and count == s["samples"] and size == len(raw)
    need(
        sound and end == size - 64 - footer_length(m, count) and end % 64 == 0,
        "shard_invalid",
        "S5",
    )
    need(
        raw[:8] == b"\x89DRTS\r\n\x1a" and crc32c(raw[:60]) == struct.unpack_from("<I", raw, 60)[0],
        "shard_damaged",
        "S6",
    )
    version, codec, align, required, part, first, ordinal = struct.unpack_from("<HBBIQQI", raw, 8)
    need(version == 1, "version_unsupported", "S7")
    need(required == 0, "feature_unsupported", "S8")
    lz = m["codec"]["name"] == "lz4"
    need(
        not any(raw[36:60]) and codec == lz and 1 << align == m["alignment"], "shard_invalid", "S9"
    )
    footer = raw[end:-64]
    need(crc32c(footer) == footer_crc, "shard_damaged", "S10")
    pairs = list(struct.iter_unpack("<II", footer[: 8 * count]))
    own = (
        [v for (v,) in struct.iter_unpack("<I", footer[8 * count : 12 * count])]
        if lz
        else [p[0] for p in pairs]
    )
    need(not any(footer[(12 if lz else 8) * count :]), "shard_invalid", "S11")
    at, made, spans = 64, [], []
    for (stored, crc), raw_len in zip(pairs, own, strict=True):
        need(lengths_fit(stored, raw_len), "shard_invalid", "S11")
        begin = up(at, m["alignment"])
        spans.append((at, begin))
        made.append((number << 40 | begin, stored, crc))
        at = begin + stored
    spans.append((at, end))
    need(end == up(at, 64), "shard_invalid", "S11")
    need(
        hashlib.sha256(raw[:64] + footer + tail[:8]).digest()[:16] == tail[24:40],
        "shard_invalid",
        "S12",
    )
    need(made == entries and own == raws, "entry_invalid", "S13")
    payloads = []
    for (position, stored, crc), raw_len in zip(made, own, strict=True):
        at = position & (1 << 40) - 1
        payload = raw[at : at + stored]
        if stored != raw_len:
            payload = lz4.decompress(payload, raw_len)
        need(payload is not None and crc32c(payload) == crc, "record_damaged", "S14")
        payloads.append(payload)
    whole(raw, s, "S15")
    need(not any(any(raw[a:b]) for a, b in spans), "shard_invalid", "S16")
    return payloads, (part, first, ordinal, count, flags & 1)


def check_chain(parts: list[tuple]) -> None:
    before = None
    for i, (part, first, ordinal, _, last) in enumerate(parts):
        if before is None or part != before[0]:
            sound = (before is None or part > before[0]) and ordinal == 0 and first == 0
        else:
            sound = ordinal == before[2] + 1 and first == before[1] + before[3]
        sound &= last == (i + 1 == len(parts) or parts[i + 1][0] != part)
        need(sound, "shard_invalid", "S17")
        before = parts[i]


# --- the whole ---------------------------------------------------------------------------------


def verify(root: Path):
    """Manifest, payloads, columns."""
    need((root / "manifest.json").is_file(), "file_missing", "M1")
    m = parse_manifest((root / "manifest.json").read_bytes())
    metadata, index, *shards = read_files(root, m)
    entries, raws, sums = check_index(index, m)
    check_entries(entries, raws, m)
    need(block_sums(metadata) == sums, "metadata_damaged", "A1")
    table = columns(metadata, m["fields"], m["samples"])
    whole(metadata, m["metadata"], "A14")
    payloads, parts, at = [], [], 0
    for number, (raw, s) in enumerate(zip(shards, m["shards"], strict=True)):
        own = slice(at, at + s["samples"])
        got, part = check_shard(raw, number, s, m, entries[own], raws[own])
        payloads += got
        parts.append(part)
        at += s["samples"]
    check_chain(parts)
    fields = [Field(f["name"], f["type"], f["nullable"]) for f in m["fields"]]
    bits = [
        [v if v is None else Bits(v) for v in c] if f.type == "float64" else c
        for f, c in zip(fields, table, strict=True)
    ]
    made = identity(fields, bits, [(r, e[2]) for r, e in zip(raws, entries, strict=True)])
    need(made.hex() == m["identity"], "identity_mismatch", "D1")
    return m, payloads, table
