"""``index.bin``: header, section table, entries (format.md sections 6, 10.2 and 10.3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from .checksums import BLOCK_SIZE, crc32c, crc32c_of
from .errors import CacheError, ErrorCode
from .files import CheckedBlocks
from .manifest import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .files import CacheFile
    from .manifest import Manifest

MAGIC = b"\x89DRTI\r\n\x1a"
HEADER_SIZE = 128
SECTION_SIZE = 32
ENTRY_SIZE = 16
MAX_COMPRESSED = 0x7E000000
"""The longest payload, in bytes, that may be stored compressed."""

_HEADER = struct.Struct("<8sHBBIQQQI4s32s44sI")
_SECTION = struct.Struct("<IIQQII")
_ENTRY = struct.Struct("<QII")

_ENTRIES, _RAW_LENGTHS, _ENTRY_SUMS, _RAW_LENGTH_SUMS, _METADATA_SUMS = 1, 2, 17, 18, 32
_KNOWN = frozenset({_ENTRIES, _RAW_LENGTHS, _ENTRY_SUMS, _RAW_LENGTH_SUMS, _METADATA_SUMS})
_IGNORABLE = 1


@dataclass(frozen=True)
class IndexHeader:
    """The first 128 bytes."""

    magic: bytes
    version: int
    codec: int
    align: int
    required_flags: int
    samples: int
    shards: int
    size: int
    sections: int
    identity: bytes
    reserved: bytes
    crc: int

    @classmethod
    def unpack(cls, data: bytes) -> IndexHeader:
        """Take 128 bytes apart without judging them."""
        (magic, version, codec, align, flags, samples, shards, size, sections, gap, identity,
         reserved, crc) = _HEADER.unpack(data)  # fmt: skip
        return cls(
            magic, version, codec, align, flags, samples, shards, size, sections, identity,
            gap + reserved, crc,
        )  # fmt: skip


@dataclass(frozen=True)
class Section:
    """One row of the section table."""

    kind: int
    flags: int
    offset: int
    length: int
    crc: int
    reserved: int

    @classmethod
    def unpack(cls, data: bytes) -> Section:
        """Take 32 bytes apart without judging them."""
        return cls(*_SECTION.unpack(data))


@dataclass(frozen=True)
class Entry:
    """Where a payload is: shard, offset in its file, length of the record, CRC of the payload."""

    shard: int
    offset: int
    stored_len: int
    crc: int

    @classmethod
    def unpack(cls, data: bytes) -> Entry:
        """Take 16 bytes apart without judging them."""
        position, stored_len, crc = _ENTRY.unpack(data)
        return cls(position >> 40, position & (1 << 40) - 1, stored_len, crc)


def length_fault(stored_len: int, raw_len: int) -> str | None:
    """Say what breaks check E4 in two lengths, or return ``None``."""
    if stored_len > raw_len:
        return f"{stored_len} stored bytes for a payload of {raw_len}"
    if stored_len < raw_len and raw_len > min(255 * stored_len, MAX_COMPRESSED):
        return f"{stored_len} stored bytes can't stand for a payload of {raw_len}"
    return None


class Index:
    """An ``index.bin`` that has passed the checks of opening."""

    def __init__(self, file: CacheFile, manifest: Manifest) -> None:
        """Make the checks I1 .. I13."""
        self._file = file
        self._manifest = manifest
        self._sections = self._open()
        entry_sums = self._sums(_ENTRY_SUMS)
        self._entries = self._blocks(_ENTRIES, entry_sums)
        self._raw_lengths: CheckedBlocks | None = None
        if manifest.codec is not Codec.NONE:
            raw_sums = self._sums(_RAW_LENGTH_SUMS)
            self._raw_lengths = self._blocks(_RAW_LENGTHS, raw_sums)
        self.metadata_sums: list[int] = self._sums(_METADATA_SUMS)

    def _open(self) -> dict[int, Section]:
        """Make the checks I1 .. I12 and return the known sections."""
        file, manifest = self._file, self._manifest
        if file.size < HEADER_SIZE:
            self._refuse(ErrorCode.INDEX_DAMAGED, "I1", f"{file.size} bytes, at least 128")
        data = file.read(0, HEADER_SIZE)
        header = IndexHeader.unpack(data)
        if header.magic != MAGIC:
            self._refuse(ErrorCode.INDEX_DAMAGED, "I1", f"magic {header.magic.hex()}", "byte 0")
        table_end = HEADER_SIZE + SECTION_SIZE * header.sections
        if table_end > file.size:
            detail = f"{header.sections} sections don't fit into {file.size} bytes"
            self._refuse(ErrorCode.INDEX_DAMAGED, "I2", detail, "byte 40")
        crc = crc32c_of((data[:124], *file.pieces(HEADER_SIZE, table_end)))
        if crc != header.crc:
            detail = f"CRC {crc:08x}, but the header says {header.crc:08x}"
            self._refuse(ErrorCode.INDEX_DAMAGED, "I3", detail, "byte 124")
        if header.version != 1:
            detail = f"version {header.version}; this reader knows version 1"
            self._refuse(ErrorCode.VERSION_UNSUPPORTED, "I4", detail, "byte 8")
        sections = [
            Section.unpack(file.read(at, SECTION_SIZE))
            for at in range(HEADER_SIZE, table_end, SECTION_SIZE)
        ]
        if any(header.reserved) or any(section.reserved for section in sections):
            self._refuse(ErrorCode.INDEX_INVALID, "I5", "reserved bytes that aren't zero")
        if header.required_flags:
            detail = f"required flags {header.required_flags:#x}; this reader knows none"
            self._refuse(ErrorCode.FEATURE_UNSUPPORTED, "I6", detail, "byte 12")
        found = (header.codec, header.align, header.samples, header.shards, header.size)
        wanted = (
            manifest.codec.number, manifest.alignment.bit_length() - 1, manifest.samples,
            len(manifest.shards), file.size,
        )  # fmt: skip
        if found != wanted:
            detail = f"codec, align, samples, shards, size are {found}, must be {wanted}"
            self._refuse(ErrorCode.INDEX_INVALID, "I7", detail)
        if header.identity != manifest.identity:
            self._refuse(ErrorCode.INDEX_INVALID, "I8", "the identity isn't the manifest's")
        self._check_table(sections, table_end)
        return {section.kind: section for section in sections if section.kind in _KNOWN}

    def _check_table(self, sections: list[Section], table_end: int) -> None:
        """Make the checks I9 .. I12."""
        before = -1
        for section in sections:
            kind = section.kind
            if kind <= before:
                self._refuse(ErrorCode.INDEX_INVALID, "I9", f"kind {kind} after {before}")
            before = kind
            if section.flags & ~_IGNORABLE or (kind in _KNOWN and section.flags):
                detail = f"flags {section.flags:#x} of section {kind}"
                self._refuse(ErrorCode.INDEX_INVALID, "I9", detail)
            if kind < 16 and section.crc:
                self._refuse(ErrorCode.INDEX_INVALID, "I9", f"a CRC for section {kind}")
        for section in sections:
            if section.kind not in _KNOWN and not section.flags & _IGNORABLE:
                detail = f"section {section.kind} is unknown and may not be ignored"
                self._refuse(ErrorCode.FEATURE_UNSUPPORTED, "I10", detail)
        end = table_end
        for section in sections:
            start = -(-end // 64) * 64
            if section.offset != start:
                detail = f"section {section.kind} begins at {section.offset}, must at {start}"
                self._refuse(ErrorCode.INDEX_INVALID, "I11", detail)
            end = start + section.length
        if end != self._file.size:
            detail = f"sections end at {end} of {self._file.size} bytes"
            self._refuse(ErrorCode.INDEX_INVALID, "I11", detail)
        found = {section.kind: section.length for section in sections if section.kind in _KNOWN}
        wanted = self._wanted_lengths()
        if found != wanted:
            detail = f"lengths of sections are {found}, must be {wanted}"
            self._refuse(ErrorCode.INDEX_INVALID, "I12", detail)

    def _wanted_lengths(self) -> dict[int, int]:
        samples = self._manifest.samples

        def sums(length: int) -> int:
            return 4 * -(-length // BLOCK_SIZE)

        wanted = {_ENTRIES: ENTRY_SIZE * samples, _ENTRY_SUMS: sums(ENTRY_SIZE * samples)}
        if self._manifest.codec is not Codec.NONE:
            wanted |= {_RAW_LENGTHS: 4 * samples, _RAW_LENGTH_SUMS: sums(4 * samples)}
        wanted[_METADATA_SUMS] = sums(self._manifest.metadata.size)
        return wanted

    def _sums(self, kind: int) -> list[int]:
        """Read a section of sums (check I13)."""
        section = self._sections[kind]
        data = self._file.read(section.offset, section.length)
        crc = crc32c(data)
        if crc != section.crc:
            detail = f"CRC {crc:08x}, but the table says {section.crc:08x}"
            self._refuse(ErrorCode.INDEX_DAMAGED, "I13", detail, f"section {kind}")
        return [number for (number,) in struct.iter_unpack("<I", data)]

    def _blocks(self, kind: int, sums: list[int]) -> CheckedBlocks:
        section = self._sections[kind]
        name = self._file.name

        def fault(number: int, detail: str) -> CacheError:
            place = f"block {number} of section {kind}"
            return CacheError(ErrorCode.INDEX_DAMAGED, "I14", name, detail, place=place)

        return CheckedBlocks(self._file, section.offset, section.length, sums, fault)

    def entry(self, sample: int) -> Entry:
        """Return the entry of a sample, not yet checked by :meth:`checked`."""
        return Entry.unpack(self._entries.read(sample * ENTRY_SIZE, ENTRY_SIZE))

    def raw_len(self, sample: int) -> int:
        """Return the length of a payload in bytes, not yet checked by :meth:`checked`."""
        if self._raw_lengths is None:
            return self.entry(sample).stored_len
        return int.from_bytes(self._raw_lengths.read(sample * 4, 4), "little")

    def checked(self, sample: int) -> tuple[Entry, int]:
        """Return entry and ``raw_len`` of a sample after the checks E1 .. E4."""
        entry, raw_len = self.entry(sample), self.raw_len(sample)
        self._check(sample, entry, raw_len)
        return entry, raw_len

    def lengths_and_crcs(self) -> Iterator[tuple[Entry, int]]:
        """Yield entry and ``raw_len`` of every sample, in order, after E1 .. E4 of each."""
        for sample in range(self._manifest.samples):
            yield self.checked(sample)

    def _check(self, sample: int, entry: Entry, raw_len: int) -> None:
        place = f"entry {sample}"
        shards = self._manifest.shards
        if entry.shard >= len(shards):
            detail = f"shard {entry.shard} of {len(shards)}"
            self._refuse(ErrorCode.ENTRY_INVALID, "E1", detail, place)
        if entry.offset < 64 or entry.offset % self._manifest.alignment:
            detail = f"offset {entry.offset}, alignment {self._manifest.alignment}"
            self._refuse(ErrorCode.ENTRY_INVALID, "E2", detail, place)
        shard = shards[entry.shard]
        end = shard.size - 64 - self._manifest.codec.footer_size(shard.samples)
        if entry.offset + entry.stored_len > end:
            detail = f"ends at {entry.offset + entry.stored_len}, the records at {end}"
            self._refuse(ErrorCode.ENTRY_INVALID, "E3", detail, place)
        fault = length_fault(entry.stored_len, raw_len)
        if fault is not None:
            self._refuse(ErrorCode.ENTRY_INVALID, "E4", fault, place)

    def verify(self) -> None:
        """Make the checks I14 for all blocks, I15 and I16."""
        self._entries.check_all()
        if self._raw_lengths is not None:
            self._raw_lengths.check_all()
        self._file.check_whole(self._manifest.index, "I15")
        header = IndexHeader.unpack(self._file.read(0, HEADER_SIZE))
        table_end = end = HEADER_SIZE + SECTION_SIZE * header.sections
        for at in range(HEADER_SIZE, table_end, SECTION_SIZE):
            section = Section.unpack(self._file.read(at, SECTION_SIZE))
            if not self._file.is_zero(end, section.offset):
                detail = "padding that isn't zero"
                place = f"bytes {end}..{section.offset}"
                self._refuse(ErrorCode.INDEX_INVALID, "I16", detail, place)
            end = section.offset + section.length

    def _refuse(self, code: ErrorCode, check: str, detail: str, place: str = "") -> NoReturn:
        raise CacheError(code, check, self._file.name, detail, place=place)
