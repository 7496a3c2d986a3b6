"""Rows of ``metadata.arrow`` (format.md section 7)."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from .arrow_file import NAME, Batch, Column, Extent, read_batches
from .errors import CacheError, ErrorCode
from .files import CheckedBlocks
from .manifest import FieldType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .files import CacheFile
    from .manifest import Manifest

Value: TypeAlias = bool | int | float | str | None
"""A metadata value; ``None`` is null."""

MAX_TEXT = 2**30
"""The longest text value, in bytes."""

_ROWS_AT_ONCE = 4096
_TEXT_AT_ONCE = 1 << 24


class Metadata:
    """A ``metadata.arrow`` that has passed the checks of opening.

    Values of ``float64`` pass through Python's own float, which keeps every bit, but for
    signalling NaNs on some processors.
    """

    def __init__(self, file: CacheFile, manifest: Manifest, sums: Sequence[int]) -> None:
        """Make the checks A1 (as far as it reads) and A2 .. A10; ``sums`` is section 32."""

        def fault(number: int, detail: str) -> CacheError:
            place = f"block {number}"
            return CacheError(ErrorCode.METADATA_DAMAGED, "A1", NAME, detail, place=place)

        self._file = file
        self._manifest = manifest
        self._blocks = CheckedBlocks(file, 0, file.size, sums, fault)
        self.batches: list[Batch] = []
        self._starts: list[int] = []

    @classmethod
    def open(cls, file: CacheFile, manifest: Manifest, sums: Sequence[int]) -> Metadata:
        """Make the checks of opening."""
        metadata = cls(file, manifest, sums)
        metadata._load()
        return metadata

    @classmethod
    def verified(cls, file: CacheFile, manifest: Manifest, sums: Sequence[int]) -> Metadata:
        """Make the checks A1 for all blocks, A2 .. A13 and A14."""
        metadata = cls(file, manifest, sums)
        metadata._blocks.check_all()
        metadata._load()
        for batch in metadata.batches:
            for number in range(len(manifest.fields)):
                metadata._verify_column(batch, number)
        file.check_whole(manifest.metadata, "A14")
        return metadata

    def _load(self) -> None:
        self.batches = read_batches(self._blocks, self._manifest)
        self._starts = [batch.first for batch in self.batches]

    def row(self, row: int) -> list[Value]:
        """Return the values of one row, in the order of the fields."""
        batch = self.batches[bisect_right(self._starts, row) - 1]
        fields = range(len(self._manifest.fields))
        return [self._values(batch, number, row - batch.first, 1)[0] for number in fields]

    def column(self, number: int, start: int, end: int) -> list[Value]:
        """Return the values of rows ``start .. end`` of one field."""
        values: list[Value] = []
        at = bisect_right(self._starts, start) - 1
        while start < end:
            batch = self.batches[at]
            stop = min(end, batch.first + batch.length)
            values += self._values(batch, number, start - batch.first, stop - start)
            start = stop
            at += 1
        return values

    def _values(self, batch: Batch, number: int, first: int, count: int) -> list[Value]:
        """Return ``count`` values of a column from row ``first`` of the batch on."""
        column, kind = batch.columns[number], self._manifest.fields[number].type
        valid = None
        if column.null_count:
            valid = self._bits(column.validity, first, count)
        values: list[Value]
        if kind is FieldType.UTF8:
            return self._texts(batch, number, first, count, valid)
        if kind is FieldType.BOOL:
            values = list(self._bits(column.values, first, count))
        else:
            code = "q" if kind is FieldType.INT64 else "d"
            data = self._blocks.read(column.values.offset + 8 * first, 8 * count)
            values = list(struct.unpack(f"<{count}{code}", data))
        if valid is not None:
            values = [v if ok else None for v, ok in zip(values, valid, strict=True)]
        return values

    def _bits(self, extent: Extent, first: int, count: int) -> list[bool]:
        start, end = first // 8, -(-(first + count) // 8)
        data = self._blocks.read(extent.offset + start, end - start)
        shift = first - 8 * start
        return [bool(data[i >> 3] >> (i & 7) & 1) for i in range(shift, shift + count)]

    def _texts(
        self, batch: Batch, number: int, first: int, count: int, valid: list[bool] | None
    ) -> list[Value]:
        """Read texts after the checks A11 (nulls too) and A12."""
        column = batch.columns[number]
        offsets = self._offsets(batch, number, first, count)
        low, high = offsets[0], offsets[-1]
        joined = None
        if high - low <= _TEXT_AT_ONCE:
            joined = self._blocks.read(column.values.offset + low, high - low)
        values: list[Value] = []
        for i in range(count):
            if valid is not None and not valid[i]:
                values.append(None)
                continue
            start, end = offsets[i], offsets[i + 1]
            if joined is None:
                data = self._blocks.read(column.values.offset + start, end - start)
            else:
                data = joined[start - low : end - low]
            try:
                values.append(data.decode("utf-8"))
            except UnicodeDecodeError as error:
                self._refuse("A12", f"not UTF-8: {error.reason}", batch, number, first + i)
        return values

    def _offsets(self, batch: Batch, number: int, first: int, count: int) -> tuple[int, ...]:
        """Read ``count + 1`` offsets and make check A11 on each pair."""
        column = batch.columns[number]
        extent = column.offsets if column.offsets is not None else column.values
        data = self._blocks.read(extent.offset + 4 * first, 4 * (count + 1))
        offsets: tuple[int, ...] = struct.unpack(f"<{count + 1}i", data)
        for i in range(count):
            start, end = offsets[i], offsets[i + 1]
            if not 0 <= start <= end <= column.values.length or end - start > MAX_TEXT:
                detail = f"a text from {start} to {end} of {column.values.length} bytes"
                self._refuse("A11", detail, batch, number, first + i)
        return offsets

    def _verify_column(self, batch: Batch, number: int) -> None:
        """Make the checks A13, and A11 and A12 of every text."""
        column = batch.columns[number]
        if column.null_count:
            self._check_null_count(batch, number, column)
        if self._manifest.fields[number].type is FieldType.UTF8:
            for first in range(0, batch.length, _ROWS_AT_ONCE):
                self._values(batch, number, first, min(_ROWS_AT_ONCE, batch.length - first))

    def _check_null_count(self, batch: Batch, number: int, column: Column) -> None:
        present = 0
        for first in range(0, batch.length, 8 * _ROWS_AT_ONCE):
            rows = min(8 * _ROWS_AT_ONCE, batch.length - first)
            data = self._blocks.read(column.validity.offset + first // 8, -(-rows // 8))
            bits = int.from_bytes(data, "little") & (1 << rows) - 1
            present += bits.bit_count()
        nulls = batch.length - present
        if nulls != column.null_count:
            detail = f"{nulls} nulls, but null_count is {column.null_count}"
            self._refuse("A13", detail, batch, number, 0)

    def _refuse(self, check: str, detail: str, batch: Batch, number: int, row: int) -> NoReturn:
        name = self._manifest.fields[number].name
        place = f"row {batch.first + row}, column {name!r}"
        raise CacheError(ErrorCode.METADATA_INVALID, check, NAME, detail, place=place)
