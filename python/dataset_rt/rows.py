"""The active table as a sequence of samples."""

from __future__ import annotations

import importlib
import sys
from array import array
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from dataset_rt._arguments import describe, is_integer, iter_any
from dataset_rt.batch import SampleBatch
from dataset_rt.errors import ArgumentTypeError, SampleIndexError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from dataset_rt._native import CachedSample
    from dataset_rt.dataset import CachedDataset

__all__ = ["Rows"]

_ITERATION_BLOCK = 256


class Rows:
    """Map-style view of a dataset: row i of the active table, in table order.

    The view is live: after `update_metadata` it shows the new table. Reading from it moves no
    window of the dataset. It is a map-style dataset for `torch.utils.data.DataLoader` too, with
    worker processes if you like.

    `rows[3]` and `rows[-1]` are samples; `rows[10:20]`, `rows[[4, 2, 2]]`, `rows[mask]` are
    batches, in the order asked for.
    """

    __slots__ = ("__weakref__", "_dataset")

    def __init__(self, dataset: CachedDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return self._dataset._native.active_rows  # noqa: SLF001 - the view's own dataset

    @overload
    def __getitem__(self, index: int) -> CachedSample: ...
    @overload
    def __getitem__(
        self, index: slice | Sequence[int] | Sequence[bool] | npt.NDArray[Any] | pl.Series
    ) -> SampleBatch: ...
    def __getitem__(self, index: Any) -> CachedSample | SampleBatch:
        """Returns one sample for an integer, a batch for a slice, integers or a mask.

        Integers may be negative and of NumPy. A mask has one truth value a row.

        Raises:
            SampleIndexError: If an index is out of range, or a mask has another length.
            ArgumentTypeError: If it is none of these.
        """
        native = self._dataset._native  # noqa: SLF001 - the view's own dataset
        # Plain integers come first and cost nothing more: loaders call this a million times.
        if type(index) is int or is_integer(index):
            try:
                return native.row(index)
            except OverflowError:
                raise _out_of_range(int(index), native.active_rows) from None
        return SampleBatch._wrap(native.take(_positions(index, native.active_rows)))  # noqa: SLF001 - made here

    def take(self, indices: Sequence[int] | npt.NDArray[Any] | pl.Series) -> SampleBatch:
        """Returns the rows with these numbers as one batch, in their order, repeats included.

        Args:
            indices: Integers, negative ones from the end: a sequence, a NumPy array or a Series.

        Raises:
            SampleIndexError: If one is out of range.
            ArgumentTypeError: If they are no integers.
        """
        native = self._dataset._native  # noqa: SLF001 - the view's own dataset
        rows = _positions(indices, native.active_rows, masks=False)
        return SampleBatch._wrap(native.take(rows))  # noqa: SLF001 - made here

    def __getitems__(self, indices: Sequence[int]) -> list[CachedSample]:
        """Returns several rows as samples: what a DataLoader calls once a batch."""
        if "torch" in sys.modules:
            # This process may be a loader's worker, whose collate function meets samples next.
            importlib.import_module("dataset_rt.torch")
        return list(self.take(indices))

    def __iter__(self) -> Iterator[CachedSample]:
        start = 0
        while start < len(self):
            stop = min(start + _ITERATION_BLOCK, len(self))
            yield from self[start:stop]
            start = stop

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self._dataset,)

    def __repr__(self) -> str:
        return f"<Rows: {len(self):,} active rows of {self._dataset!r}>"


def _positions(indices: Any, length: int, *, masks: bool = True) -> bytes:  # noqa: ANN401 - many kinds
    """Returns row numbers as native-endian int64 values, checked and counted from the start."""
    if isinstance(indices, slice):
        if not masks:
            raise _wrong_kind(indices)
        try:
            return array("q", range(*indices.indices(length))).tobytes()
        except TypeError:
            raise _wrong_kind(indices) from None
    if isinstance(indices, pl.Series):
        return _from_series(indices, length, masks=masks)
    if hasattr(indices, "__array__"):
        import numpy as np  # noqa: PLC0415 - whoever has arrays has it

        return _from_numpy(np.asarray(indices), length, masks=masks)
    if isinstance(indices, (bytes, bytearray)):
        # They would iterate as integers.
        raise _wrong_kind(indices)
    try:
        items = list(iter_any(indices))
    except TypeError:
        raise _wrong_kind(indices) from None
    return _from_list(items, length, masks=masks)


def _from_series(values: pl.Series, length: int, *, masks: bool) -> bytes:
    if values.null_count():
        raise ArgumentTypeError("a row index must not be null", argument="indices")
    if not (values.dtype.is_integer() or values.dtype == pl.Boolean):
        raise _wrong_kind(values)
    if "numpy" not in sys.modules:
        return _from_list(values.to_list(), length, masks=masks)
    return _from_numpy(values.to_numpy(), length, masks=masks)


def _from_list(items: list[Any], length: int, *, masks: bool) -> bytes:
    kinds = set(map(type, items))
    if kinds == {bool} and masks:
        if len(items) != length:
            raise _wrong_mask(len(items), length)
        return array("q", [row for row, kept in enumerate(items) if kept]).tobytes()
    if kinds - {int}:
        if not all(map(is_integer, items)):
            raise _wrong_kind(next(item for item in items if not is_integer(item)))
        items = [int(item) for item in items]
    if items and (max(items) >= length or min(items) < -length):
        raise _out_of_range(next(i for i in items if not -length <= i < length), length)
    if items and min(items) < 0:
        items = [item + length if item < 0 else item for item in items]
    return array("q", items).tobytes()


def _from_numpy(values: npt.NDArray[Any], length: int, *, masks: bool) -> bytes:
    import numpy as np  # noqa: PLC0415 - whoever has arrays has it

    if values.ndim != 1:
        raise ArgumentTypeError(
            f"rows are taken by an array of one dimension, found shape {values.shape}",
            argument="indices",
        )
    kind = values.dtype.kind
    if kind == "b" and masks:
        if len(values) != length:
            raise _wrong_mask(len(values), length)
        return np.flatnonzero(values).astype(np.int64).tobytes()
    if kind not in "iu":
        raise ArgumentTypeError(
            f"rows are taken by integers, found an array of {values.dtype}", argument="indices"
        )
    if len(values) == 0:
        return b""
    high, low = int(values.max()), int(values.min())
    if high >= length or low < -length:
        raise _out_of_range(high if high >= length else low, length)
    rows = values.astype(np.int64)
    if low < 0:
        rows[rows < 0] += length
    return rows.tobytes()


def _out_of_range(index: int, length: int) -> SampleIndexError:
    return SampleIndexError(
        f"row {index} is out of range: the active table has {length} rows",
        index=index,
        length=length,
    )


def _wrong_mask(found: int, length: int) -> SampleIndexError:
    return SampleIndexError(
        f"a mask needs one truth value for each of the {length} active rows, found {found}",
        index=found,
        length=length,
    )


def _wrong_kind(found: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "rows are taken by an integer, a slice, integers or a mask of truth values, found "
        f"{describe(found)}",
        argument="indices",
    )
