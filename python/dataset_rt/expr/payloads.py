"""Looking into the payloads of rows: sizes, checksums, first bytes, media types, all bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataset_rt._arguments import MAX_I64, MAX_U32, flag, integer, path_list
from dataset_rt.errors import InvalidArgumentError
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import column

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from dataset_rt.expr._call import Kind
    from dataset_rt.expr._columns import Column

__all__ = [
    "DEFAULT_MAX_BYTES",
    "payload",
    "payload_crc",
    "payload_head",
    "payload_mime",
    "payload_size",
]

DEFAULT_MAX_BYTES: Final = 2**30
"""Bytes that one call of `payload` reads at most, unless told otherwise: 1 GiB."""


def payload_size(
    paths: Sequence[str | Path],
    *,
    strict: bool = True,
    cache_id: Column = "cache_id",
    sample_id: Column = "sample_id",
) -> pl.Expr:
    """Length of each row's payload in bytes, uncompressed. From the index: no payload is read.

    Args:
        paths: Folders of the caches; their order gives the cache ids, as in `cached_dataset`.
            Relative paths are resolved now.
        strict: Whether a row that names no sample, or one that can't be read, is an error. With
            False it gets null. A cache that can't be opened is an error in any case.
        cache_id: Column of cache ids, any integers.
        sample_id: Column of sample ids, any integers.

    Returns:
        UInt64, named "payload_size"; null where an id is null.

    Raises:
        InvalidArgumentError: If there are no paths.
        ArgumentTypeError: If an argument has the wrong type.

    When it runs, `polars.exceptions.ComputeError` says what can't be read and why.
    """
    options = {"strict": flag(strict, "strict")}
    return _call("payload_size", paths, options, (cache_id, sample_id))


def payload_crc(
    paths: Sequence[str | Path],
    *,
    strict: bool = True,
    cache_id: Column = "cache_id",
    sample_id: Column = "sample_id",
) -> pl.Expr:
    """CRC-32C of each row's payload, as stored in the index: no payload is read.

    Of the uncompressed bytes. Equal payloads have equal sums; different ones may have too, one pair
    in 4 billion by chance.

    Args:
        paths: As in `payload_size`.
        strict: As in `payload_size`.
        cache_id: As in `payload_size`.
        sample_id: As in `payload_size`.

    Returns:
        UInt32, named "payload_crc"; null where an id is null.

    Raises:
        InvalidArgumentError: If there are no paths.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"strict": flag(strict, "strict")}
    return _call("payload_crc", paths, options, (cache_id, sample_id))


def payload_head(
    paths: Sequence[str | Path],
    n: int,
    *,
    strict: bool = True,
    cache_id: Column = "cache_id",
    sample_id: Column = "sample_id",
) -> pl.Expr:
    """The first bytes of each row's payload.

    Of a cache without compression no more is read, so that the checksum, which covers the whole
    payload, is not compared. With compression payloads are read whole and checked.

    Args:
        paths: As in `payload_size`.
        n: Number of bytes, 0 to 2^32 - 1; a shorter payload is given whole.
        strict: As in `payload_size`.
        cache_id: As in `payload_size`.
        sample_id: As in `payload_size`.

    Returns:
        Binary, named "payload_head"; null where an id is null.

    Raises:
        InvalidArgumentError: If there are no paths or `n` is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"strict": flag(strict, "strict"), "n": integer(n, "n", 0, MAX_U32)}
    return _call("payload_head", paths, options, (cache_id, sample_id))


def payload_mime(
    paths: Sequence[str | Path],
    *,
    strict: bool = True,
    cache_id: Column = "cache_id",
    sample_id: Column = "sample_id",
) -> pl.Expr:
    """Media type of each row's payload, by its first 262 bytes, read as in `payload_head`.

    Images (PNG, JPEG, GIF, TIFF, WebP, BMP, AVIF, HEIC, HEIF, JPEG XL, JPEG 2000), sound (WAV,
    FLAC, MP3, AIFF, MP4), video (MP4, QuickTime, 3GPP, WebM, Matroska, AVI), Ogg, archives and
    compressed files (zip, gzip, zstd, xz, bzip2, 7z, lz4, rar, tar), tables and arrays (Parquet,
    Arrow, NumPy, HDF5, SQLite), PDF, PostScript, RTF, XML, HTML and WebAssembly are known.

    Args:
        paths: As in `payload_size`.
        strict: As in `payload_size`.
        cache_id: As in `payload_size`.
        sample_id: As in `payload_size`.

    Returns:
        String, named "payload_mime": "application/octet-stream" for what is not known, plain text
        included; null where an id is null.

    Raises:
        InvalidArgumentError: If there are no paths.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"strict": flag(strict, "strict")}
    return _call("payload_mime", paths, options, (cache_id, sample_id))


def payload(
    paths: Sequence[str | Path],
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    strict: bool = True,
    cache_id: Column = "cache_id",
    sample_id: Column = "sample_id",
) -> pl.Expr:
    """Each row's payload, whole and checked.

    Read on the calling thread, in the order of the rows. It needs all rows at once, so that its
    limit holds for all of them: filter first. For more than fits into memory use `scan_cache` with
    `payload=True`, which goes in batches. In `group_by` and with `.over()` the limit is one a
    group.

    Args:
        paths: As in `payload_size`.
        max_bytes: Bytes that all payloads may have together; more are refused before anything is
            read.
        strict: As in `payload_size`.
        cache_id: As in `payload_size`.
        sample_id: As in `payload_size`.

    Returns:
        Binary, named "payload"; null where an id is null.

    Raises:
        InvalidArgumentError: If there are no paths or `max_bytes` is negative.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "strict": flag(strict, "strict"),
        "max_bytes": integer(max_bytes, "max_bytes", 0, MAX_I64),
    }
    return _call("payload", paths, options, (cache_id, sample_id), kind="column")


def _call(
    name: str,
    paths: Sequence[str | Path],
    options: dict[str, Any],
    ids: tuple[Column, Column],
    kind: Kind = "elementwise",
) -> pl.Expr:
    folders = [str(path) for path in path_list(paths, "paths")]
    for number, folder in enumerate(folders):
        # Bytes that are no text come as lone surrogates.
        if any("\ud800" <= character <= "\udfff" for character in folder):
            raise InvalidArgumentError(
                f"paths[{number}] is not UTF-8, which expressions can't carry: {folder!r}",
                argument="paths",
            )
    columns = [column(ids[0], "cache_id"), column(ids[1], "sample_id")]
    return call(name, columns, {"paths": folders, **options}, kind=kind).alias(name)
