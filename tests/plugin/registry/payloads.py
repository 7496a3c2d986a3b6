"""Looking into payloads: over two small caches, written when the first expression is made."""

from __future__ import annotations

import functools
import gzip
import tempfile
from typing import TYPE_CHECKING, Any

import polars as pl
from dataset_rt import CacheInput, DatasetRuntime, ShardCompression, WriterConfig, expr

from tests import support
from tests.plugin.registry.row import Example, Row

if TYPE_CHECKING:
    from collections.abc import Callable

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)
GZIP = gzip.compress(b"some text", mtime=0)
PAYLOADS = [
    [PNG, b"plain text", b"", GZIP, b"%PDF-1.7 and so on", support.payload(5, 3_000)],
    [b"compressed " * 40, PNG, b"a"],
]
MIME = {
    PNG: "image/png",
    GZIP: "application/gzip",
    PAYLOADS[0][4]: "application/pdf",
}

FRAME = pl.DataFrame(
    {
        "cache_id": pl.Series([0, 1, 0, 0, None, 0, 1, 0, 0, 1], dtype=pl.UInt64),
        "sample_id": pl.Series([5, 0, 1, 0, 2, None, 2, 2, 3, 1], dtype=pl.UInt64),
    }
)
UNKNOWN = pl.DataFrame(
    {
        "c": pl.Series([0, 0, 7, -1, None, 1, 1, 0], dtype=pl.Int32),
        "s": pl.Series([4, 6, 0, 0, 1, 2**40, 0, -3], dtype=pl.Int64),
    }
)
IDS = {"cache_id": "c", "sample_id": pl.col("s")}


@functools.cache
def _written() -> tuple[Any, list[str]]:
    folder = tempfile.TemporaryDirectory()  # kept, and removed when the process ends
    lz4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))
    runtime = DatasetRuntime(num_workers=1)
    paths = []
    for number, (payloads, config) in enumerate(zip(PAYLOADS, (support.QUIET, lz4), strict=True)):
        samples = [CacheInput(data, {"n": n}) for n, data in enumerate(payloads)]
        source = support.Source(f"cache-{number}", samples)
        done = support.succeed(runtime.write_cache(source, folder.name, writer_config=config))
        paths.append(str(done.path))
    return folder, paths


def paths() -> list[str]:
    return list(_written()[1])


def of_each(value: Callable[[bytes], Any], *, strict: bool = True) -> Callable[..., list[Any]]:
    """A value of each row's payload."""

    def definition(frame: pl.DataFrame, group: Any) -> list[Any]:
        del group
        found: list[Any] = []
        for cache, sample in frame.iter_rows():
            if cache is None or sample is None:
                found.append(None)
            elif 0 <= cache < len(PAYLOADS) and 0 <= sample < len(PAYLOADS[cache]):
                found.append(value(PAYLOADS[cache][sample]))
            elif strict:
                raise ValueError("no such sample")
            else:
                found.append(None)
        return found

    return definition


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mime(data: bytes) -> str:
    return MIME.get(data, "application/octet-stream")


def _row(
    name: str,
    dtype: type[pl.DataType],
    examples: list[Example],
    kind: Any = "elementwise",
) -> Row:
    return Row(
        name,
        kind,
        dtype,
        native=(name,),
        over=False,
        output=name,
        of_column=False,
        examples=examples,
    )


def _examples(
    function: Callable[..., pl.Expr], value: Callable[[bytes], Any], *more: Any
) -> list[Example]:
    return [
        Example(FRAME, lambda: function(paths(), *more), of_each(value)),
        Example(
            UNKNOWN,
            lambda: function(paths(), *more, strict=False, **IDS),
            of_each(value, strict=False),
        ),
        Example(
            FRAME.select(c=pl.col("cache_id").cast(pl.Int8), s=pl.col("sample_id").cast(pl.Int16)),
            lambda: function(paths(), *more, **IDS),
            of_each(value),
        ),
    ]


ROWS = [
    _row("payload_size", pl.UInt64, _examples(expr.payload_size, len)),
    _row("payload_crc", pl.UInt32, _examples(expr.payload_crc, crc32c)),
    _row(
        "payload_head",
        pl.Binary,
        [
            *_examples(expr.payload_head, lambda data: data[:7], 7),
            *_examples(expr.payload_head, lambda data: data[:0], 0),
            *_examples(expr.payload_head, bytes, 2**32 - 1),
        ],
    ),
    _row("payload_mime", pl.String, _examples(expr.payload_mime, mime)),
    _row(
        "payload",
        pl.Binary,
        _examples(expr.payload, bytes),
        kind="column",
    ),
]
