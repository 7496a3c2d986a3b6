"""Shard files: header, records, footer, trailer (format.md sections 5 and 10.4)."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from .checksums import crc32c
from .errors import CacheError, ErrorCode
from .index import Entry, length_fault
from .lz4 import BlockError, decompress_block
from .manifest import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .files import CacheFile
    from .index import Index
    from .manifest import Manifest, ShardInfo

HEADER_MAGIC = b"\x89DRTS\r\n\x1a"
TRAILER_MAGIC = b"\x1a\n\rSTRD\x89"
HEADER_SIZE = TRAILER_SIZE = 64
_HEADER = struct.Struct("<8sHBBIQQI24sI")
_TRAILER = struct.Struct("<QQQ16sIIII8s")
_LAST = 1


@dataclass(frozen=True)
class Header:
    """The first 64 bytes."""

    magic: bytes
    version: int
    codec: int
    align: int
    required_flags: int
    part: int
    first: int
    ordinal: int
    reserved: bytes
    crc: int

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """Take 64 bytes apart without judging them."""
        return cls(*_HEADER.unpack(data))


@dataclass(frozen=True)
class Trailer:
    """The last 64 bytes; ``footer`` is the offset F."""

    count: int
    footer: int
    size: int
    id: bytes
    footer_crc: int
    flags: int
    version: int
    crc: int
    magic: bytes

    @classmethod
    def unpack(cls, data: bytes) -> Trailer:
        """Take 64 bytes apart without judging them."""
        return cls(*_TRAILER.unpack(data))

    @property
    def last(self) -> bool:
        """Whether the shard is the last of its part."""
        return bool(self.flags & _LAST)


@dataclass(frozen=True)
class Records:
    """What a footer says of the records, with their places; one item a record in each list."""

    offsets: list[int]
    stored_len: list[int]
    raw_len: list[int]
    crc: list[int]
    end: int
    """F as it follows from the lengths (section 5.2)."""

    @classmethod
    def unpack(cls, footer: bytes, count: int, codec: Codec, alignment: int) -> Records:
        """Take a footer of ``codec.footer_size(count)`` bytes apart without judging it."""
        pairs = struct.unpack_from(f"<{2 * count}I", footer)
        stored, crcs = list(pairs[::2]), list(pairs[1::2])
        raw = stored
        if codec is not Codec.NONE:
            raw = list(struct.unpack_from(f"<{count}I", footer, 8 * count))
        offsets = []
        end = HEADER_SIZE
        for length in stored:
            start = -(-end // alignment) * alignment
            offsets.append(start)
            end = start + length
        return cls(offsets, stored, raw, crcs, -(-end // 64) * 64)


@dataclass(frozen=True)
class Link:
    """A shard's place in the chain of its part (section 5.6)."""

    name: str
    part: int
    ordinal: int
    first: int
    count: int
    last: bool


class Shard:
    """A shard file that has passed the checks of use."""

    def __init__(self, file: CacheFile, info: ShardInfo, manifest: Manifest) -> None:
        """Make the checks F2 and S1 .. S5."""
        self.file = file
        self.info = info
        self._codec = manifest.codec
        self._alignment = manifest.alignment
        file.check_size(info.size)
        self.trailer = self._open()

    def _open(self) -> Trailer:
        size = self.file.size
        if size < 136:
            self._refuse(ErrorCode.SHARD_DAMAGED, "S1", f"{size} bytes, at least 136")
        data = self.file.read(size - TRAILER_SIZE, TRAILER_SIZE)
        trailer = Trailer.unpack(data)
        if trailer.magic != TRAILER_MAGIC:
            detail = f"magic {trailer.magic.hex()}"
            self._refuse(ErrorCode.SHARD_DAMAGED, "S1", detail, "the trailer")
        crc = crc32c(data[:52])
        if crc != trailer.crc:
            detail = f"CRC {crc:08x}, but the trailer says {trailer.crc:08x}"
            self._refuse(ErrorCode.SHARD_DAMAGED, "S2", detail, "the trailer")
        if trailer.id != self.info.id:
            detail = f"id {trailer.id.hex()}, but the manifest means {self.info.id.hex()}"
            self._refuse(ErrorCode.SHARD_MISMATCH, "S3", detail, "the trailer")
        if trailer.version != 1:
            detail = f"version {trailer.version}; this reader knows version 1"
            self._refuse(ErrorCode.VERSION_UNSUPPORTED, "S4", detail, "the trailer")
        footer = size - TRAILER_SIZE - self._codec.footer_size(self.info.samples)
        found = (trailer.flags & ~_LAST, trailer.count, trailer.size, trailer.footer)
        wanted = (0, self.info.samples, size, footer)
        if found != wanted or footer % 64:
            detail = f"reserved flags, count, size, F are {found}, must be {wanted}"
            if found == wanted:
                detail = f"F is {footer}, must be a multiple of 64"
            self._refuse(ErrorCode.SHARD_INVALID, "S5", detail, "the trailer")
        return trailer

    def payload(self, entry: Entry, raw_len: int, sample: int) -> bytes:
        """Return the payload of an entry that passed E1 .. E4 (check S14)."""
        stored = self.file.read(entry.offset, entry.stored_len)
        place = f"byte {entry.offset}, sample {sample}"
        if entry.stored_len == raw_len:
            payload = stored
        else:
            try:
                payload = decompress_block(stored, raw_len)
            except BlockError as error:
                self._refuse(ErrorCode.RECORD_DAMAGED, "S14", str(error), place)
        crc = crc32c(payload)
        if crc != entry.crc:
            detail = f"CRC {crc:08x}, but the entry says {entry.crc:08x}"
            self._refuse(ErrorCode.RECORD_DAMAGED, "S14", detail, place)
        return payload

    def verify(self, index: Index, number: int, first_sample: int) -> Link:
        """Make the checks S6 .. S16 and return what S17 needs.

        ``number`` is the shard's place in the manifest, ``first_sample`` its first sample.
        """
        head = self.file.read(0, HEADER_SIZE)
        header = self._check_header(head)
        records = self._check_footer(head)
        for i in range(self.info.samples):
            sample = first_sample + i
            entry = Entry(number, records.offsets[i], records.stored_len[i], records.crc[i])
            if (index.entry(sample), index.raw_len(sample)) != (entry, records.raw_len[i]):
                detail = f"entry {sample} of index.bin isn't the one that follows from the footer"
                self._refuse(ErrorCode.ENTRY_INVALID, "S13", detail, f"record {i}")
        for i in range(self.info.samples):
            entry = Entry(number, records.offsets[i], records.stored_len[i], records.crc[i])
            self.payload(entry, records.raw_len[i], first_sample + i)
        self.file.check_whole(self.info, "S15")
        end = HEADER_SIZE
        for start, length in zip(records.offsets, records.stored_len, strict=True):
            self._check_zero(end, start)
            end = start + length
        self._check_zero(end, self.trailer.footer)
        return Link(
            self.info.path, header.part, header.ordinal, header.first, self.trailer.count,
            self.trailer.last,
        )  # fmt: skip

    def _check_header(self, data: bytes) -> Header:
        """Make the checks S6 .. S9."""
        header = Header.unpack(data)
        if header.magic != HEADER_MAGIC:
            detail = f"magic {header.magic.hex()}"
            self._refuse(ErrorCode.SHARD_DAMAGED, "S6", detail, "the header")
        crc = crc32c(data[:60])
        if crc != header.crc:
            detail = f"CRC {crc:08x}, but the header says {header.crc:08x}"
            self._refuse(ErrorCode.SHARD_DAMAGED, "S6", detail, "the header")
        if header.version != 1:
            detail = f"version {header.version}; this reader knows version 1"
            self._refuse(ErrorCode.VERSION_UNSUPPORTED, "S7", detail, "the header")
        if header.required_flags:
            detail = f"required flags {header.required_flags:#x}; this reader knows none"
            self._refuse(ErrorCode.FEATURE_UNSUPPORTED, "S8", detail, "the header")
        if any(header.reserved):
            detail = "reserved bytes that aren't zero"
            self._refuse(ErrorCode.SHARD_INVALID, "S9", detail, "the header")
        found = (header.codec, header.align)
        wanted = (self._codec.number, self._alignment.bit_length() - 1)
        if found != wanted:
            detail = f"codec and align are {found}, must be {wanted}"
            self._refuse(ErrorCode.SHARD_INVALID, "S9", detail, "the header")
        return header

    def _check_footer(self, head: bytes) -> Records:
        """Make the checks S10 .. S12."""
        count, start = self.info.samples, self.trailer.footer
        footer = self.file.read(start, self.file.size - TRAILER_SIZE - start)
        crc = crc32c(footer)
        if crc != self.trailer.footer_crc:
            detail = f"CRC {crc:08x}, but the trailer says {self.trailer.footer_crc:08x}"
            self._refuse(ErrorCode.SHARD_DAMAGED, "S10", detail, "the footer")
        records = Records.unpack(footer, count, self._codec, self._alignment)
        used = count * (8 if self._codec is Codec.NONE else 12)
        if any(footer[used:]):
            detail = "padding that isn't zero"
            self._refuse(ErrorCode.SHARD_INVALID, "S11", detail, "the footer")
        for i, (stored, raw) in enumerate(zip(records.stored_len, records.raw_len, strict=True)):
            fault = length_fault(stored, raw)
            if fault is not None:
                self._refuse(ErrorCode.SHARD_INVALID, "S11", fault, f"the footer, record {i}")
        if records.end != start:
            detail = f"by its lengths the footer begins at {records.end}, and not at {start}"
            self._refuse(ErrorCode.SHARD_INVALID, "S11", detail, "the footer")
        identity = shard_id(head, footer, count)
        if identity != self.trailer.id:
            detail = f"its content has the id {identity.hex()}"
            self._refuse(ErrorCode.SHARD_INVALID, "S12", detail, "the trailer")
        return records

    def _check_zero(self, start: int, end: int) -> None:
        if start < end and not self.file.is_zero(start, end):
            detail = "padding that isn't zero"
            self._refuse(ErrorCode.SHARD_INVALID, "S16", detail, f"bytes {start}..{end}")

    def _refuse(self, code: ErrorCode, check: str, detail: str, place: str = "") -> NoReturn:
        raise CacheError(code, check, self.file.name, detail, place=place)


def shard_id(header: bytes, footer: bytes, count: int) -> bytes:
    """Return the 16 bytes of a shard's identity (section 5.4)."""
    return hashlib.sha256(header + footer + count.to_bytes(8, "little")).digest()[:16]


def check_chain(links: Sequence[Link]) -> None:
    """Make check S17 over all shards in the order of the manifest."""
    before: Link | None = None
    for i, link in enumerate(links):
        fault = None
        if before is None or before.last:
            if before is not None and link.part <= before.part:
                fault = f"part {link.part} after part {before.part}, which has ended"
            elif link.ordinal != 0 or link.first != 0:
                fault = f"its part begins with ordinal {link.ordinal}, first {link.first}"
        elif link.part != before.part:
            fault = f"part {link.part} begins before part {before.part} has ended"
        elif (link.ordinal, link.first) != (before.ordinal + 1, before.first + before.count):
            fault = f"ordinal {link.ordinal}, first {link.first} don't follow the shard before"
        if fault is None and i == len(links) - 1 and not link.last:
            fault = "the last shard isn't marked as the last of its part"
        if fault is not None:
            raise CacheError(ErrorCode.SHARD_INVALID, "S17", link.name, fault, place="the header")
        before = link
