"""A workload as Arrow record batches, for the libraries that store columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.workloads import Workload

SCHEMA = pa.schema(
    [
        ("data", pa.binary()),
        ("label", pa.int64()),
        ("score", pa.float64()),
        ("split", pa.string()),
        ("flag", pa.bool_()),
    ]
)


def column_lists(workload: Workload, rows: int) -> Iterator[dict[str, list[Any]]]:
    """The workload in pieces of so many rows, as lists by column."""
    pool = workload.pool
    for first in range(0, workload.samples, rows):
        piece = slice(first, min(first + rows, workload.samples))
        starts, sizes = workload.pool_starts[piece].tolist(), workload.sizes[piece].tolist()
        label, score, split, flag = workload.columns.lists(piece)
        data = [pool[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        yield {"data": data, "label": label, "score": score, "split": split, "flag": flag}


def reader(workload: Workload, rows: int) -> pa.RecordBatchReader:
    batches = (pa.record_batch(piece, schema=SCHEMA) for piece in column_lists(workload, rows))
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)
