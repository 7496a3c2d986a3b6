"""One expression in a process of its own: `python -m benches.expression_alone JOB ROWS`.

Prints the milliseconds of the second run; the first one pays for the memory. Threads of Polars are
those that POLARS_MAX_THREADS says when the process starts.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import polars as pl
from dataset_rt import expr as drt

from .expression_frame import frame_of
from .expression_keys import SEED, SHARES, split_by_hash
from .expression_row import selected
from .tally import milliseconds

JOBS = {
    "hash_split-int": "id",
    "hash_split-int-polars": "id",
    "hash_split-text": "name",
    "hash_split-text-polars": "name",
    "sample_weighted": "score",
}
"""The column that each needs."""


def expression(job: str, count: int) -> pl.Expr:
    column = JOBS[job]
    if job == "sample_weighted":
        return drt.sample_weighted(column, count // 2, seed=SEED)
    if job.endswith("-polars"):
        return split_by_hash(column)
    return drt.hash_split(column, SHARES, seed=SEED)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("rows", type=int)
    options = parser.parse_args()
    if pl.thread_pool_size() != 1:
        sys.exit("POLARS_MAX_THREADS is not 1")
    frame = frame_of(options.rows, [JOBS[options.job]])
    column = expression(options.job, options.rows)
    first = selected(column, frame)
    if first.dtype == pl.Boolean and first.sum() != options.rows // 2:
        sys.exit(f"{first.sum()} rows drawn")
    del first
    print(milliseconds(partial(selected, column, frame)))


if __name__ == "__main__":
    main()
