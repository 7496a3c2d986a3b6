"""The Python side of the active table: what `update_metadata` takes, brought into one form.

The native core checks identity and weights and keeps them; this module accepts the table in the
shapes that people have, checks its columns, and puts them in the documented order and types.
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dataset_rt.errors import DatasetRTWarning, MetadataTableError, MetadataTableTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

CACHE_ID: Final = "cache_id"
SAMPLE_ID: Final = "sample_id"
WEIGHT: Final = "weight"
IDENTITY: Final = (CACHE_ID, SAMPLE_ID)

Field = tuple[str, str, bool]
"""Name, type ("bool", "int64", "float64", "utf8"), and whether the column may hold nulls."""

_INTEGERS: Final = frozenset(
    (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
)
# Polars got 16-bit floats late.
_FLOATS: Final = frozenset(
    dtype for dtype in (getattr(pl, "Float16", None), pl.Float32, pl.Float64) if dtype is not None
)

_STORED: Final[dict[str, type[pl.DataType]]] = {
    "bool": pl.Boolean,
    "int64": pl.Int64,
    "float64": pl.Float64,
    "utf8": pl.String,
}
# What turns into the stored type without loss for every value. Integers and floats don't mix. A
# column of nulls alone has no other type after a way through CSV or pandas.
_WIDENED: Final[dict[str, frozenset[Any]]] = {
    "bool": frozenset((pl.Boolean, pl.Null)),
    "int64": _INTEGERS - {pl.UInt64} | {pl.Null},
    "float64": frozenset((pl.Float64, pl.Null)),
    "utf8": frozenset((pl.String, pl.Categorical, pl.Enum, pl.Null)),
}


def normalise(table: object, fields: Sequence[Field], *, stacklevel: int) -> pl.DataFrame:
    """Checks a table and returns it in the form that `get_metadata` documents.

    Args:
        table: A Polars DataFrame or LazyFrame, a pandas DataFrame, or anything with
            `__arrow_c_stream__`.
        fields: The stored fields of the dataset, in table order.
        stacklevel: Frames between the caller's code and this function, for warnings.

    Returns:
        cache_id and sample_id (UInt64), the stored fields, weight (Float64), then further columns
        as they came. Whether the ids exist and the weights are positive is for the core to check.

    Raises:
        MetadataTableError: If a column is missing, an id or a weight is null, an id is negative,
            or there is no row.
        MetadataTableTypeError: If the table or a column has a type that is not allowed.
    """
    frame = to_frame(table)
    names = frame.columns
    _check_columns(frame, fields)
    _check_types(frame, fields)
    if frame.height == 0:
        raise MetadataTableError("the table has no rows: at least one sample must stay active")
    stored = [name for name, _, _ in fields]
    known = {*IDENTITY, *stored, WEIGHT}
    if "weight_right" in names and "weight_right" not in stored:
        warnings.warn(
            "the table has a column weight_right, which a join leaves behind when both sides have "
            "a weight: only the column weight counts",
            DatasetRTWarning,
            stacklevel=stacklevel + 1,
        )
    columns = [_identity(frame.get_column(name)) for name in IDENTITY]
    columns += [_as(frame.get_column(name), _STORED[kind]) for name, kind, _ in fields]
    columns.append(_weight(frame.get_column(WEIGHT)))
    columns += [frame.get_column(name) for name in names if name not in known]
    return pl.DataFrame(columns)


def without_zero_weights(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the normalised table without its rows of weight 0.

    Raises:
        MetadataTableError: If no row is left.
    """
    weighs = frame.get_column(WEIGHT) != 0
    if weighs.all():
        return frame
    kept = frame.filter(weighs)
    if kept.height == 0:
        raise MetadataTableError(
            f"all {frame.height} rows have weight 0: at least one sample must stay active",
            column=WEIGHT,
        )
    return kept


def in_given_rows(
    error: MetadataTableError, given: pl.DataFrame, kept: pl.DataFrame
) -> MetadataTableError:
    """Returns the error of the kept rows as one of the rows as they were given."""
    if error.row is None or kept is given:
        return error
    row = (given.get_column(WEIGHT) != 0).arg_true()[error.row]
    message = f"{error.message} (row {row} of the table as it was given, with weights 0)"
    return MetadataTableError(message, column=error.column, row=row)


def to_frame(table: object) -> pl.DataFrame:
    """Returns the table as a Polars frame that shares no memory with anything that can change.

    Raises:
        MetadataTableTypeError: If it is nothing that can be read as a table.
        MetadataTableError: If two columns have one name.
    """
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(table, pandas.DataFrame):
            # NaN is a value of a float field, and null is none of pandas' floats.
            return _detached(pl.from_pandas(table, nan_to_null=False))
        if hasattr(table, "__arrow_c_stream__") and not isinstance(table, pl.Series):
            return _detached(pl.DataFrame(table))
    except pl.exceptions.DuplicateError as error:
        raise MetadataTableError(f"two columns of the table have one name: {error}") from error
    # PyArrow says of complex numbers and the like that they are not implemented.
    except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError) as error:
        if isinstance(error, MetadataTableTypeError):
            raise
        raise MetadataTableTypeError(
            f"the {type(table).__module__}.{type(table).__name__} can't be read as a table of "
            f"Polars: {error}"
        ) from error
    raise MetadataTableTypeError(
        "the metadata table must be a Polars DataFrame or LazyFrame, a pandas DataFrame, or an "
        f"object with __arrow_c_stream__, found {type(table).__name__}"
    )


def identity_and_weight(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the three columns that the core takes."""
    return _in_one_piece([frame.get_column(name) for name in (*IDENTITY, WEIGHT)])


def _in_one_piece(columns: Sequence[pl.Series]) -> pl.DataFrame:
    """Returns a frame that Polars hands out without its thread pool, which a forked child has not.

    `select` needs the pool, and so does a frame of several chunks when it becomes a stream.
    """
    return pl.DataFrame([column.rechunk() for column in columns])


def lay_over(exported: pl.DataFrame, overlay: pl.DataFrame) -> pl.DataFrame:
    """Returns the exported table with the overlay's columns in place of its own, then the rest."""
    laid = {column.name: column for column in overlay.get_columns()}
    columns = [laid.pop(column.name, column) for column in exported.get_columns()]
    return pl.DataFrame([*columns, *laid.values()])


def changed_columns(overlay: pl.DataFrame, exported: pl.DataFrame) -> pl.DataFrame:
    """Returns identity, weight, and the overlay's columns that differ from the exported ones."""
    own = {column.name: column for column in exported.get_columns()}
    kept = []
    for column in overlay.get_columns():
        name = column.name
        same = name in own and own[name].equals(column, check_dtypes=True, null_equal=True)
        if name in (*IDENTITY, WEIGHT) or not same:
            kept.append(column)
    return pl.DataFrame(kept)


def pack(frame: pl.DataFrame) -> bytes:
    """Returns a frame as a compressed Arrow stream."""
    buffer = io.BytesIO()
    # The stream form, not the file form: the latter needs the thread pool of Polars.
    _in_one_piece(frame.get_columns()).write_ipc_stream(buffer, compression="zstd")
    return buffer.getvalue()


def unpack(data: bytes) -> pl.DataFrame:
    """Returns the frame that `pack` was given."""
    return pl.read_ipc_stream(io.BytesIO(data))


def _detached(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns a deep copy: pandas and NumPy may write into the memory that the frame points to."""
    return frame if frame.width == 0 else unpack(pack(_without_objects(frame)))


def _without_objects(frame: pl.DataFrame) -> pl.DataFrame:
    for column in frame.get_columns():
        if column.dtype == pl.Object:
            raise MetadataTableTypeError(
                f"column {column.name!r} holds Python objects, which can't be kept: drop it or "
                "cast it to a type of Polars",
                column=column.name,
            )
    return frame


def _check_columns(frame: pl.DataFrame, fields: Sequence[Field]) -> None:
    present = set(frame.columns)
    needed = [*IDENTITY, *(name for name, _, _ in fields), WEIGHT]
    missing = [name for name in needed if name not in present]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        plural = "s" if len(missing) > 1 else ""
        raise MetadataTableError(
            f"the table lacks the column{plural} {listed}; start from get_metadata() and keep "
            f"cache_id, sample_id, every stored field and weight. Found: "
            f"{', '.join(repr(name) for name in frame.columns) or 'no column'}",
            column=missing[0],
        )


def _check_types(frame: pl.DataFrame, fields: Sequence[Field]) -> None:
    _without_objects(frame)
    schema = frame.schema
    for name in IDENTITY:
        if schema[name] not in _INTEGERS:
            raise _wrong_type(name, schema[name], "an integer of at most 64 bits", "UInt64")
    for name, kind, _ in fields:
        if not any(schema[name] == allowed for allowed in _WIDENED[kind]):
            target = _STORED[kind].__name__
            raise _wrong_type(name, schema[name], f"{target}, as in the cache", target)
    if schema[WEIGHT] not in _INTEGERS | _FLOATS:
        allowed = "an integer or float of at most 64 bits"
        raise _wrong_type(WEIGHT, schema[WEIGHT], allowed, "Float64")


def _wrong_type(name: str, found: pl.DataType, allowed: str, target: str) -> MetadataTableTypeError:
    return MetadataTableTypeError(
        f"column {name!r} must be {allowed}, found {found}; "
        f"use pl.col({name!r}).cast(pl.{target}) if that is what you mean",
        column=name,
    )


def _identity(column: pl.Series) -> pl.Series:
    _refuse_nulls(column)
    if column.dtype.is_signed_integer() and (negative := column < 0).any():
        row = _first(negative)
        raise MetadataTableError(
            f"column {column.name!r} must not be negative, found {column[row]} in row {row}",
            column=column.name,
            row=row,
        )
    return _as(column, pl.UInt64)


def _weight(column: pl.Series) -> pl.Series:
    _refuse_nulls(column)
    return _as(column, pl.Float64)


def _as(column: pl.Series, dtype: type[pl.DataType]) -> pl.Series:
    # An interrupt in the middle of a cast is lost in Polars, so none is made without need.
    return column if column.dtype == dtype else column.cast(dtype)


def _refuse_nulls(column: pl.Series) -> None:
    count = column.null_count()
    if count:
        row = _first(column.is_null())
        nulls = "1 null" if count == 1 else f"{count} nulls"
        raise MetadataTableError(
            f"column {column.name!r} must not hold nulls, found {nulls}, the first in row {row}",
            column=column.name,
            row=row,
        )


def _first(mask: pl.Series) -> int:
    row = mask.arg_max()
    return 0 if row is None else row
