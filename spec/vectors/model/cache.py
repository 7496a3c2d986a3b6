"""A whole cache as bytes: shards, index, manifest (format.md, sections 5, 6, 8 and 11).

Every part is first a small model, then sealed. A hook may change a model before it is sealed, so that its checksums fit
the changed content; the hook "files" comes last and makes damage.
"""

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from . import lz4
from .arrow import arrow_file, batch_ranges, up
from .checksum import block_sums, crc32c
from .identity import identity
from .schema import Field

SHARD_MAGIC = b"\x89DRTS\r\n\x1a"
TRAILER_MAGIC = SHARD_MAGIC[::-1]
INDEX_MAGIC = b"\x89DRTI\r\n\x1a"
CREATED = "2026-01-02T03:04:05Z"
WRITER = "dataset_rt vectors 1"
CODECS = {"none": 0, "lz4": 1}


@dataclass
class Record:
    stored: bytes
    crc: int
    raw_len: int


def footer_length(count: int, codec: int) -> int:
    return up(count * (12 if codec else 8), 8)


@dataclass
class Shard:
    name: str
    records: list[Record]
    codec: int = 0
    align: int = 3
    part: int = 0
    first: int = 0
    ordinal: int = 0
    last: bool = True
    version: int = 1
    flags: int = 0
    reserved: bytes = bytes(24)
    gap: bytes = b"\0"  # what fills the space between records
    footer_pad: bytes = b"\0"
    footer_entries: list[tuple[int, int, int]] | None = None
    trailer: dict = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    id: bytes = b""

    def seal(self) -> bytes:
        header = SHARD_MAGIC + struct.pack(
            "<HBBIQQI",
            self.version,
            self.codec,
            self.align,
            self.flags,
            self.part,
            self.first,
            self.ordinal,
        )
        header += self.reserved
        header += struct.pack("<I", crc32c(header))
        out, self.offsets = bytearray(header), []
        for r in self.records:
            out += self.gap * (up(len(out), 1 << self.align) - len(out))
            self.offsets.append(len(out))
            out += r.stored
        out += self.gap * (up(len(out), 64) - len(out))
        entries = self.footer_entries or [(len(r.stored), r.crc, r.raw_len) for r in self.records]
        footer = b"".join(struct.pack("<II", n, crc) for n, crc, _ in entries)
        if self.codec:
            footer += b"".join(struct.pack("<I", raw) for _, _, raw in entries)
        footer += self.footer_pad * (up(len(footer), 8) - len(footer))
        t = {
            "count": len(entries),
            "F": len(out),
            "size": len(out) + len(footer) + 64,
            "flags": int(self.last),
            "version": self.version,
        }
        t |= self.trailer
        self.id = (
            t.get("id")
            or hashlib.sha256(header + footer + struct.pack("<Q", t["count"])).digest()[:16]
        )
        trailer = struct.pack("<QQQ", t["count"], t["F"], t["size"]) + self.id
        trailer += struct.pack("<III", crc32c(footer), t["flags"], t["version"])
        trailer += struct.pack("<I", crc32c(trailer)) + TRAILER_MAGIC
        return bytes(out) + footer + trailer


@dataclass
class Section:
    kind: int
    data: bytes
    flags: int = 0
    crc: int | None = None
    offset: int | None = None
    length: int | None = None
    reserved: int = 0


@dataclass
class Index:
    codec: int
    align: int
    samples: int
    shards: int
    identity: bytes
    entries: list[tuple[int, int, int]]  # position, stored_len, crc
    raw_lens: list[int]
    metadata_sums: list[int]
    version: int = 1
    flags: int = 0
    reserved: bytes = bytes(44)
    gap: bytes = b"\0"
    size: int | None = None
    tail: bytes = b""
    edit: Callable[[list[Section]], None] | None = None

    def sections(self) -> list[Section]:
        entries = b"".join(struct.pack("<QII", *e) for e in self.entries)
        raws = struct.pack(f"<{len(self.raw_lens)}I", *self.raw_lens)
        words = lambda sums: struct.pack(f"<{len(sums)}I", *sums)  # noqa: E731
        out = [Section(1, entries), Section(17, words(block_sums(entries)))]
        if self.codec:
            out[1:1] = [Section(2, raws)]
            out += [Section(18, words(block_sums(raws)))]
        return [*out, Section(32, words(self.metadata_sums))]

    def seal(self) -> bytes:
        sections = self.sections()
        if self.edit:
            self.edit(sections)
        table, body, at = b"", bytearray(), 128 + 32 * len(sections)
        begin = at
        for s in sections:
            body += self.gap * (up(at, 64) - at)
            at = up(at, 64)
            offset = at if s.offset is None else s.offset
            length = len(s.data) if s.length is None else s.length
            crc = s.crc if s.crc is not None else crc32c(s.data) if s.kind >= 16 else 0
            table += struct.pack("<IIQQII", s.kind, s.flags, offset, length, crc, s.reserved)
            body += s.data
            at += len(s.data)
        body += self.tail
        size = begin + len(body) if self.size is None else self.size
        head = INDEX_MAGIC + struct.pack(
            "<HBBIQQQII",
            self.version,
            self.codec,
            self.align,
            self.flags,
            self.samples,
            self.shards,
            size,
            len(sections),
            0,
        )
        head += self.identity + self.reserved
        return head + struct.pack("<I", crc32c(head + table)) + table + bytes(body)


def seal_manifest(members: dict, version: int = 1) -> bytes:
    """Members other than format, version and the tail, in order."""
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    return seal_text(f'{{"format":"dataset_rt.cache","version":{version},' + text[1:-1])


def seal_text(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return raw + b',"sha256":"' + hashlib.sha256(raw).hexdigest().encode() + b'"}\n'


@dataclass
class Cache:
    """What is to be written. parts: per part its number and the counts of its shards."""

    payloads: list[bytes]
    fields: list[Field] = field(default_factory=list)
    columns: list[list] = field(default_factory=list)
    codec: str = "none"
    align: int = 3
    max_shard_bytes: int = 1 << 30
    parts: list[tuple[int, list[int]]] | None = None
    batches: list[int] | None = None
    metadata: bytes | None = None
    name: str = "vector"
    fingerprint: str | None = None
    user: dict | None = None
    media_type: str | None = None
    required: list[str] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)
    file_sha256: bool = False
    names: list[str] | None = None
    encode: Callable[[bytes], bytes] | None = None
    hooks: dict = field(default_factory=dict)

    def hook(self, name: str, model) -> None:
        if name in self.hooks:
            self.hooks[name](model)

    def record(self, raw: bytes) -> Record:
        stored = raw
        if self.codec == "lz4":
            block = (self.encode or lz4.compress)(raw)
            stored = block if len(block) < len(raw) else raw
        return Record(stored, crc32c(raw), len(raw))

    def shard_counts(self, records: list[Record]) -> list[int]:
        """The rotation rule of section 11.1."""
        per, counts, end, count = 12 if self.codec != "none" else 8, [], 64, 0
        for r in records:
            after = up(end, 1 << self.align) + len(r.stored)
            if count and up(after, 64) + up((count + 1) * per, 8) + 64 > self.max_shard_bytes:
                counts.append(count)
                after, count = up(64, 1 << self.align) + len(r.stored), 0
            end, count = after, count + 1
        return [*counts, count]

    def shards(self) -> list[Shard]:
        records = [self.record(p) for p in self.payloads]
        out, at = [], 0
        for part, counts in self.parts or [(0, self.shard_counts(records))]:
            first = 0
            for ordinal, count in enumerate(counts):
                name = self.names[len(out)] if self.names else f"{len(out):06d}"
                shard = Shard(
                    name,
                    records[at : at + count],
                    CODECS[self.codec],
                    self.align,
                    part,
                    first,
                    ordinal,
                )
                shard.last = ordinal == len(counts) - 1
                out.append(shard)
                at, first = at + count, first + count
        assert at == len(records)
        return out

    def arrow(self) -> bytes:
        if self.metadata is not None:
            return self.metadata
        if self.batches:
            ends = [sum(self.batches[: i + 1]) for i in range(len(self.batches))]
            ranges = [range(e - n, e) for e, n in zip(ends, self.batches, strict=True)]
        else:
            ranges = batch_ranges(self.fields, self.columns, len(self.payloads))
        model = arrow_file(self.fields, self.columns, ranges)
        self.hook("arrow", model)
        return model.to_bytes()

    def build(self) -> dict[str, bytes]:
        metadata = self.arrow()
        shards = self.shards()
        ident = identity(self.fields, self.columns, [(len(p), crc32c(p)) for p in self.payloads])
        self.hook("shards", shards)
        sealed = [s.seal() for s in shards]
        entries, raws = [], []
        for number, shard in enumerate(shards):
            for r, offset in zip(shard.records, shard.offsets, strict=True):
                entries.append((number << 40 | offset, len(r.stored), r.crc))
                raws.append(r.raw_len)
        index = Index(
            CODECS[self.codec],
            self.align,
            len(entries),
            len(shards),
            ident,
            entries,
            raws,
            block_sums(metadata),
        )
        self.hook("index", index)
        files = {"metadata.arrow": metadata, "index.bin": index.seal()}
        files |= {f"shards/{s.name}.bin": raw for s, raw in zip(shards, sealed, strict=True)}
        members = self.members(ident, entries, shards, sealed, files)
        self.hook("manifest", members)
        files["manifest.json"] = seal_manifest(members)
        self.hook("files", files)
        return files

    def file(self, name: str, raw: bytes) -> dict:
        out = {"name": name, "size": len(raw), "crc32c": f"{crc32c(raw):08x}"}
        if self.file_sha256:
            out["sha256"] = hashlib.sha256(raw).hexdigest()
        return out

    def members(self, ident, entries, shards, sealed, files) -> dict:
        fields = []
        for f in self.fields:
            member = {"name": f.name, "type": f.type, "nullable": f.nullable}
            fields.append(
                member | ({"description": f.description} if f.description is not None else {})
            )
        out = {
            "required": self.required,
            "optional": self.optional,
            "identity": ident.hex(),
            "source": {"name": self.name, "fingerprint": self.fingerprint},
            "created": CREATED,
            "writer": WRITER,
            "samples": len(self.payloads),
            "payload_bytes": sum(map(len, self.payloads)),
            "stored_bytes": sum(n for _, n, _ in entries),
            "fields": fields,
            "codec": {"name": self.codec},
            "alignment": 1 << self.align,
        }
        if self.user is not None:
            out["user"] = self.user
        if self.media_type is not None:
            out["media_type"] = self.media_type
        out["metadata"] = self.file("metadata.arrow", files["metadata.arrow"])
        out["index"] = self.file("index.bin", files["index.bin"])
        out["shards"] = [
            self.file(s.name, raw) | {"samples": len(s.records), "id": s.id.hex()}
            for s, raw in zip(shards, sealed, strict=True)
        ]
        return out
