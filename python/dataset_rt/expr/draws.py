"""Draws by weight and class, orders, curricula and buckets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from dataset_rt._arguments import MAX_U32, describe, flag, integer
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import Column, Columns, column, groups, number
from dataset_rt.expr._keys import key_columns, optional_key, signed_seed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "bucket",
    "curriculum_mask",
    "draw_counts",
    "length_group_key",
    "m_per_class",
    "repeat_count",
    "sample_weighted",
    "shuffle_key",
]


def sample_weighted(
    weight: Column,
    n: int,
    *,
    seed: int,
    key: Columns | None = None,
    replacement: bool = False,
    over: Columns | None = None,
) -> pl.Expr:
    """Draws n rows by weight.

    Without replacement the rows are drawn one after another, each in proportion to the weights that
    are left (Efraimidis and Spirakis 2006), in linear time. The chance of a row to be among them is
    not proportional to its weight unless n is small. With replacement every draw is by itself, and
    a row is drawn n * weight / sum times on average.

    Args:
        weight: Numbers of at least 0, finite. Rows of weight 0 are never drawn.
        n: Rows to draw, 0 to 2^32 - 1; with `over` in each group.
        seed: 0 to 2^64 - 1.
        key: Column or columns that name a row, as in `hash_split`; no two rows should have the
            same. With it a row's luck goes by its key, otherwise by its place.
        replacement: Whether a row may be drawn again.
        over: Group columns: each group is drawn from by itself, with other luck. A null is a group.
            `.over()` would repeat the same luck in every group, and make a native call for each.

    Returns:
        Boolean without replacement, the number of times a row was drawn (UInt32) with it; named
        like the weight.

    Raises:
        InvalidArgumentError: If n or the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    Weights that are null, negative or not finite, and fewer than n rows (with replacement: none)
    with a weight above 0, are a `polars.exceptions.ComputeError` when the expression runs; a column
    of no rows has no draws.
    """
    keys = optional_key(key, "key")
    name = "sample_counts" if flag(replacement, "replacement") else "sample_mask"
    options = {
        "n": integer(n, "n", 0, MAX_U32),
        "seed": signed_seed(seed),
        "keys": len(keys),
    }
    return call(name, [column(weight, "weight"), *keys], options, over=groups(over))


def draw_counts(
    weight: Column,
    n: int,
    *,
    seed: int,
    stream: int = 0,
    replacement: bool = True,
    over: Columns | None = None,
) -> pl.Expr:
    """How often a dataset with these weights gives each row in its first n samples.

    By the sampler of the runtime itself: what `CachedDataset` emits with `shuffle=True`, this seed
    and this stream after its table was set. Rows of weight 0 are left out, as
    `update_metadata(..., zero_weights="drop")` does.

    Args:
        weight: Numbers of at least 0, finite.
        n: Samples, 0 to 2^32 - 1. An epoch is as many as there are rows, unless it was set.
        seed: The seed of the dataset.
        stream: The stream given to `update_metadata`.
        replacement: That of the dataset's configuration.
        over: Group columns: each group is a dataset of its own, with a seed of its own.

    Returns:
        UInt32, named like the weight.

    Raises:
        InvalidArgumentError: If n, seed or stream are out of range.
        ArgumentTypeError: If an argument is of another type.

    Weights that are null, negative or not finite, and rows of which none has a weight above 0, are
    a `polars.exceptions.ComputeError` when the expression runs.
    """
    options = {
        "n": integer(n, "n", 0, MAX_U32),
        "seed": signed_seed(seed),
        "stream": integer(stream, "stream", 0, MAX_U32),
        "replacement": flag(replacement, "replacement"),
    }
    return call("draw_counts", [column(weight, "weight")], options, over=groups(over))


def shuffle_key(key: Columns | None = None, *, seed: int, over: Columns | None = None) -> pl.Expr:
    """Random numbers to sort rows by: `frame.sort(drt.shuffle_key("id", seed=1))`.

    Args:
        key: Column or columns that name a row, as in `hash_split`: then its number is the same
            whatever other rows there are. Without it rows go by their places.
        seed: 0 to 2^64 - 1.
        over: Group columns: each group has numbers of its own. A null is a group.

    Returns:
        UInt64, named like the key, or "shuffle_key" without one; null for a null key, unless there
        is `over`.

    Raises:
        InvalidArgumentError: If the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    With `over` a null key is a `polars.exceptions.ComputeError` when the expression runs.
    """
    keys = optional_key(key, "key")
    grouped = groups(over)
    options = {"seed": signed_seed(seed), "keys": len(keys)}
    if keys and not grouped:
        return call("shuffle_key", keys, options, kind="elementwise")
    # The first column says how many rows there are, and gives the name.
    first = keys[0] if keys else pl.int_range(pl.len()).alias("shuffle_key")
    return call("shuffle_rows", [first, *keys], options, over=grouped)


def m_per_class(
    label: Columns,
    m: int,
    *,
    seed: int,
    key: Columns | None = None,
    over: Columns | None = None,
) -> pl.Expr:
    """How often to take each row so that every class is taken m times.

    Of a class of more than m rows, m are drawn, all alike and without replacement. A smaller class
    is taken whole as often as it fits into m, and the rest is drawn from it.

    Args:
        label: Column or columns that name the class, of the types of keys.
        m: Rows to take of each class, 0 to 2^32 - 1.
        seed: 0 to 2^64 - 1.
        key: Column or columns that name a row; as in `sample_weighted`.
        over: Group columns: m rows of each class in each group. A null is a group.

    Returns:
        UInt32, named like the label.

    Raises:
        InvalidArgumentError: If m or the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    Null labels and keys are a `polars.exceptions.ComputeError` when the expression runs.
    """
    labels = key_columns(label, "label")
    keys = optional_key(key, "key")
    options = {
        "m": integer(m, "m", 0, MAX_U32),
        "seed": signed_seed(seed),
        "labels": len(labels),
        "keys": len(keys),
    }
    return call("m_per_class", [*labels, *keys], options, over=groups(over))


def repeat_count(
    factor: Column, *, seed: int, key: Columns | None = None, over: Columns | None = None
) -> pl.Expr:
    """How often to take each row: a factor, such as `repeat_factor`, rounded at random.

    A factor f gives floor(f), and one more with probability f - floor(f) (Gupta, Dollar and
    Girshick 2019): f on average. `pl.all().repeat_by(...)` and `explode` make the rows.

    Args:
        factor: Numbers of at least 0 and below 2^32 - 1.
        seed: 0 to 2^64 - 1; another one an epoch.
        key: Column or columns that name a row; as in `sample_weighted`.
        over: Group columns: each group has luck of its own. A null is a group.

    Returns:
        UInt32, named like the factor.

    Raises:
        InvalidArgumentError: If the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    Factors that are null or out of range, and null keys, are a `polars.exceptions.ComputeError`
    when the expression runs.
    """
    keys = optional_key(key, "key")
    options = {"seed": signed_seed(seed), "keys": len(keys)}
    return call("repeat_count", [column(factor, "factor"), *keys], options, over=groups(over))


def curriculum_mask(
    difficulty: Column, competence: float, *, over: Columns | None = None
) -> pl.Expr:
    """Which rows a learner of this competence sees: the share of rows no harder is at most it.

    The rule of Platanios and others (2019), in which that share is the cumulative density of the
    difficulty. Rows of equal difficulty come in together, once all of them fit.

    Args:
        difficulty: Numbers or times; larger is harder.
        competence: 0 to 1; at 1 all rows are in.
        over: Group columns: shares are those within each group. A null is a group.

    Returns:
        Boolean, named like the difficulty.

    Raises:
        InvalidArgumentError: If the competence is out of range.
        ArgumentTypeError: If an argument is of another type.

    Nulls and NaN are a `polars.exceptions.ComputeError` when the expression runs.
    """
    options = {"competence": number(competence, "competence", least=0, most=1)}
    return call("curriculum_mask", [column(difficulty, "difficulty")], options, over=groups(over))


def length_group_key(
    length: Column, batch_size: int, *, order: Column, over: Columns | None = None
) -> pl.Expr:
    """Places of rows in an order whose batches have rows of like length.

    Rows are put in the order of `order`, cut into runs of m batches, and each run is sorted from
    long to short; m is rows // (4 * batch_size), at least 1 and at most 50. Then the first of the
    longest rows changes places with the first row of all, so that the largest batch comes first.
    The grouping by length of the transformers library, with `order` for its permutation.

    `frame.sort(drt.length_group_key("length", 32, order=drt.shuffle_key("id", seed=1)))` is the
    frame in that order.

    Args:
        length: Numbers.
        batch_size: Rows of a batch, 1 to 2^32 - 1.
        order: Numbers to put rows in order by, such as `shuffle_key`; of equal ones the first row
            comes first.
        over: Group columns: each group has places of its own. A null is a group.

    Returns:
        UInt64, 0 to rows - 1, named like the length.

    Raises:
        InvalidArgumentError: If the batch size is out of range.
        ArgumentTypeError: If an argument is of another type.

    Nulls and NaN are a `polars.exceptions.ComputeError` when the expression runs.
    """
    options = {"batch_size": integer(batch_size, "batch_size", 1, MAX_U32)}
    columns = [column(length, "length"), column(order, "order")]
    return call("length_group_key", columns, options, over=groups(over))


def bucket(
    value: Column,
    *,
    edges: Sequence[float] | None = None,
    n: int | None = None,
    over: Columns | None = None,
) -> pl.Expr:
    """Numbers of buckets, by edges or as many buckets of like size.

    Args:
        value: Numbers; for `n` also times.
        edges: Rising numbers; the bucket is how many of them are at most the value, 0 to
            len(edges).
        n: Number of buckets, 1 to 2^32 - 1: the bucket is floor(n * smaller / rows), where
            `smaller` rows have a smaller value; equal values share a bucket. Nulls don't count.
        over: Group columns, within which `n` buckets are made; edges are the same for all groups.

    Returns:
        UInt32, named like the value; null for null.

    Raises:
        InvalidArgumentError: Unless exactly one of `edges` and `n` is given, and it is in range.
        ArgumentTypeError: If an argument is of another type.

    NaN is a `polars.exceptions.ComputeError` when the expression runs.
    """
    values = column(value, "value")
    grouped = groups(over)
    if (edges is None) == (n is None):
        raise InvalidArgumentError("bucket takes either edges or n", argument="edges")
    if edges is not None:
        return call("bucket_edges", [values], {"edges": _edges(edges)}, kind="elementwise")
    options = {"n": integer(n, "n", 1, MAX_U32)}
    return call("bucket_count", [values], options, over=grouped)


def _edges(edges: Iterable[object]) -> list[float]:
    if not isinstance(edges, Sequence) or isinstance(edges, (str, bytes)):
        raise ArgumentTypeError(
            f"edges must be a list of numbers, found {describe(edges)}", argument="edges"
        )
    found = [number(edge, f"edges[{i}]") for i, edge in enumerate(edges)]
    if not found or any(low >= high for low, high in pairwise(found)):
        raise InvalidArgumentError(
            f"edges must be at least one number, each above the one before, found "
            f"{describe(edges)}",
            argument="edges",
        )
    return found
