"""Several samples at once: one payload buffer with offsets, and columns of metadata."""

from __future__ import annotations

import html
from array import array
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import polars as pl

from dataset_rt import _native
from dataset_rt._arguments import describe, is_integer
from dataset_rt.active_table import CACHE_ID, IDENTITY, SAMPLE_ID, pack, unpack
from dataset_rt.errors import ArgumentTypeError, SampleIndexError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from dataset_rt._native import (
        CachedSample,
        NativeBatchIterator,
        NativeBinary,
        NativeBlockTable,
    )

__all__ = ["BatchIterator", "SampleBatch"]


class _Samples(Protocol):
    """What a batch stands on: the native one, or what a pickle brought."""

    def __len__(self) -> int: ...
    @property
    def buffer(self) -> bytes: ...
    @property
    def offsets(self) -> bytes: ...
    def payloads(self) -> list[bytes]: ...
    def binary(self) -> NativeBinary: ...
    def sample(self, index: int, /) -> CachedSample: ...
    def cache_ids(self) -> Any: ...  # noqa: ANN401 - anything with __arrow_c_stream__
    def sample_ids(self) -> Any: ...  # noqa: ANN401 - same
    def gathered(self) -> tuple[NativeBlockTable, int] | None: ...
    def metadata(self) -> Any: ...  # noqa: ANN401 - same


class SampleBatch:
    """Samples in the order in which they were drawn or asked for.

    Made by `CachedDataset.iter_batches` and `CachedDataset.rows`. It holds copies of the payloads,
    so it stays valid whatever becomes of the dataset. It has `len`, an index (one sample) and
    iterates over its samples.
    """

    __slots__ = ("__weakref__", "_metadata", "_samples")

    _samples: _Samples
    _metadata: pl.DataFrame | None

    def __init__(self, *_args: object, **_options: object) -> None:
        raise ArgumentTypeError(
            "a SampleBatch is made by CachedDataset.iter_batches, dataset.rows[...] or "
            "dataset.rows.take(...)"
        )

    @classmethod
    def _wrap(cls, samples: _Samples) -> Self:
        self = object.__new__(cls)
        self._samples = samples
        self._metadata = None
        return self

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[CachedSample]:
        return map(self._samples.sample, range(len(self._samples)))

    def __getitem__(self, index: int) -> CachedSample:
        if not is_integer(index):
            raise ArgumentTypeError(
                f"a batch is indexed by one integer, found {describe(index)}", argument="index"
            )
        length = len(self)
        position = int(index)
        if not -length <= position < length:
            raise SampleIndexError(
                f"index {position} is out of range for a batch of {length} samples",
                index=position,
                length=length,
            )
        return self._samples.sample(position % length)

    @property
    def data(self) -> list[bytes]:
        """The payloads."""
        return self._samples.payloads()

    @property
    def data_arrow(self) -> NativeBinary:
        """The payloads as one Arrow LargeBinary array, without a copy.

        It has `__arrow_c_array__`: `pyarrow.array(batch.data_arrow)`.
        """
        return self._samples.binary()

    def data_numpy(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Returns the payloads as one read-only buffer and its offsets, without a copy.

        Returns:
            All bytes, shape (total,), uint8, and offsets, shape (len + 1,), int64: payload i is
            `buffer[offsets[i]:offsets[i + 1]]`.

        Raises:
            ImportError: If NumPy is not installed.
        """
        import numpy as np  # noqa: PLC0415 - optional

        buffer = np.frombuffer(self._samples.buffer, dtype=np.uint8)
        return buffer, np.frombuffer(self._samples.offsets, dtype=np.int64)

    @property
    def metadata(self) -> pl.DataFrame:
        """The stored fields of all caches, one row a sample; null where a cache lacks the field."""
        if self._metadata is None:
            self._metadata = _frame(self._samples)
        return self._metadata.clone()

    def metadata_numpy(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the stored fields as one array a field, shape (len,).

        Returns:
            bool, int64 and float64 arrays, and object arrays of str. A column with nulls is an
            object array with None in their place, so that no value changes.

        Raises:
            ImportError: If NumPy is not installed.
        """
        import numpy as np  # noqa: PLC0415 - optional

        arrays: dict[str, npt.NDArray[Any]] = {}
        for column in self.metadata.get_columns():
            if column.dtype == pl.String or column.null_count():
                values = np.empty(len(column), dtype=object)
                values[:] = column.to_list()
                arrays[column.name] = values
            else:
                arrays[column.name] = column.to_numpy()
        return arrays

    @property
    def cache_id(self) -> pl.Series:
        """Position of each sample's cache in `cache_paths`, UInt64."""
        return pl.DataFrame(self._samples.cache_ids()).get_column(CACHE_ID)

    @property
    def sample_id(self) -> pl.Series:
        """Row of each sample in its cache, UInt64."""
        return pl.DataFrame(self._samples.sample_ids()).get_column(SAMPLE_ID)

    # A batch never changes.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        metadata = self.metadata
        table = pl.DataFrame([self.cache_id, self.sample_id, *metadata.get_columns()])
        lacking = None
        if any(column.null_count() for column in metadata.get_columns()):
            # A null in the table is a field that the cache lacks, or a null that it stores.
            fields = metadata.columns
            lacking = [[name for name in fields if name not in s.metadata] for s in self]
        samples = self._samples
        return _restore, (samples.buffer, samples.offsets, pack(table), lacking)

    def __repr__(self) -> str:
        fields = ", ".join(self.metadata.columns) or "none"
        size = f"{len(self._samples.buffer):,} bytes"
        return f"<SampleBatch: {len(self):,} samples, {size}, fields: {fields}>"

    def _repr_html_(self) -> str:
        offsets = _integers(self._samples.offsets)
        lengths = [offsets[i + 1] - offsets[i] for i in range(len(self))]
        table = pl.DataFrame(
            [
                self.cache_id,
                self.sample_id,
                pl.Series("payload bytes", lengths, dtype=pl.Int64),
                *(c.alias(f"metadata.{c.name}") for c in self.metadata.get_columns()),
            ]
        )
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{table._repr_html_()}"


class BatchIterator:
    """One window of batches. Threads may share it: each batch goes to one of them."""

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: NativeBatchIterator) -> None:
        self._native = native

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SampleBatch:
        return SampleBatch._wrap(next(self._native))  # noqa: SLF001 - one module

    def __length_hint__(self) -> int:
        return self._native.__length_hint__()

    def __reduce__(self) -> NoReturn:
        raise ArgumentTypeError(
            "an iterator of batches can't be pickled or copied: pickle the dataset and call "
            "iter_batches() where it arrives"
        )

    def __repr__(self) -> str:
        return f"<BatchIterator: {self.__length_hint__():,} batches to come>"


class _Restored:
    """The samples of a batch that went through a pickle."""

    def __init__(
        self, buffer: bytes, offsets: bytes, table: pl.DataFrame, lacking: list[list[str]] | None
    ) -> None:
        self.buffer = buffer
        self.offsets = offsets
        self._bounds = _integers(offsets)
        self._table = table
        self._lacking = lacking

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def payloads(self) -> list[bytes]:
        return [self._payload(index) for index in range(len(self))]

    def _payload(self, index: int) -> bytes:
        return self.buffer[self._bounds[index] : self._bounds[index + 1]]

    def binary(self) -> NativeBinary:
        return _native.large_binary(self.buffer, self.offsets)

    def sample(self, index: int, /) -> CachedSample:
        metadata = self._table.row(index, named=True)
        cache_id, sample_id = metadata.pop(CACHE_ID), metadata.pop(SAMPLE_ID)
        for name in self._lacking[index] if self._lacking else ():
            del metadata[name]
        return _native.CachedSample(self._payload(index), metadata, cache_id, sample_id)

    def cache_ids(self) -> pl.DataFrame:
        return pl.DataFrame([self._table.get_column(CACHE_ID)])

    def sample_ids(self) -> pl.DataFrame:
        return pl.DataFrame([self._table.get_column(SAMPLE_ID)])

    def gathered(self) -> None:
        return None

    def metadata(self) -> pl.DataFrame:
        columns = self._table.get_columns()
        return pl.DataFrame([column for column in columns if column.name not in IDENTITY])


def _frame(samples: _Samples) -> pl.DataFrame:
    gathered = samples.gathered()
    if gathered is None:
        return pl.DataFrame(samples.metadata())
    block, first = gathered
    frame = block.frame
    if frame is None:
        frame = block.keep(pl.DataFrame(block.table()))
    return frame.slice(first, len(samples))


def _restore(
    buffer: bytes, offsets: bytes, table: bytes, lacking: list[list[str]] | None
) -> SampleBatch:
    return SampleBatch._wrap(_Restored(buffer, offsets, unpack(table), lacking))  # noqa: SLF001 - one module


def _integers(data: bytes) -> array[int]:
    values = array("q")
    values.frombytes(data)
    return values
