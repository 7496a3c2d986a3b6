"""Splits and folds by keys, classes and time, and a check that they don't leak."""

from __future__ import annotations

from typing import Any

import polars as pl

from dataset_rt._arguments import MAX_U32, integer
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import Column, Columns, column, groups
from dataset_rt.expr._keys import Shares, key_columns, optional_key, parts, signed_seed

__all__ = [
    "Shares",
    "hash_fold",
    "hash_split",
    "split_leaks",
    "stratified_fold",
    "stratified_split",
    "time_split",
]


def hash_split(key: Columns, shares: Shares, *, seed: int, group: Columns | None = None) -> pl.Expr:
    """A split by the hash of a key: the same for a key for ever, whatever other rows there are.

    The hash is XXH3-64, as docs/reference/key-hash.md defines it. A key goes to the first part
    whose running sum of floor(share * 2^64) is above its hash; the last part ends at 2^64. So a
    part has about its share of many keys, and rows that are added move no other row.

    Args:
        key: Column or columns that name a row: integers of up to 64 bits, text, categories, bytes,
            Boolean or Date. Floats are refused. Integers hash alike whatever their width, text and
            categories too.
        shares: From the name of each part to its share, above 0, together 1 within 1e-9; at most
            255 parts.
        seed: 0 to 2^64 - 1. Another seed is another split.
        group: Column or columns whose rows stay together, such as a user or a cluster of near
            duplicates: then the hash is the group's. A row whose group is null goes by its key.

    Returns:
        Enum of the parts in the order of `shares`, named like the first column; null for a null
        key.

    Raises:
        InvalidArgumentError: If shares or seed are out of range.
        ArgumentTypeError: If an argument is of another type.

    A column of a type that can't be hashed is a `polars.exceptions.ComputeError` when the
    expression runs.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> frame = pl.DataFrame({"id": ["a", "b", "c", "d"]})
        >>> parts = frame.select(drt.hash_split("id", {"train": 0.5, "test": 0.5}, seed=1))
        >>> parts["id"].dtype
        Enum(categories=['train', 'test'])
    """
    keys = key_columns(key, "key")
    names, numbers = parts(shares)
    options = {"shares": numbers, "seed": signed_seed(seed), "keys": len(keys)}
    grouped = optional_key(group, "group")
    return _named(call("hash_split", [*keys, *grouped], options, kind="elementwise"), names)


def hash_fold(key: Columns, k: int, *, seed: int, group: Columns | None = None) -> pl.Expr:
    """A fold by the hash of a key: floor(hash * k / 2^64), the same for a key for ever.

    Args:
        key: As in `hash_split`.
        k: Number of folds, 1 to 2^32 - 1.
        seed: 0 to 2^64 - 1.
        group: As in `hash_split`.

    Returns:
        UInt32, 0 to k - 1, named like the first column; null for a null key.

    Raises:
        InvalidArgumentError: If k or the seed is out of range.
        ArgumentTypeError: If an argument is of another type.
    """
    keys = key_columns(key, "key")
    options = {"k": integer(k, "k", 1, MAX_U32), "seed": signed_seed(seed), "keys": len(keys)}
    grouped = optional_key(group, "group")
    return call("hash_fold", [*keys, *grouped], options, kind="elementwise")


def stratified_split(
    label: Columns,
    shares: Shares,
    *,
    key: Columns,
    seed: int,
    group: Columns | None = None,
    over: Columns | None = None,
) -> pl.Expr:
    """A split in which every class has the shares.

    Without `group` each part has its share of the rows of each class, rounded up or down; what is
    left over goes to the parts that are furthest behind, over all classes, so that many small
    classes don't add up to a wrong total. Rows of one class and key stay together and count for one
    where they stand on a border.

    With `group` all rows of a group are in one part. Groups come in the order of their hashes, and
    each goes to the part that lacks most of its classes. Where every group has rows of one class
    alone, a part is off its share of a class by less than the largest group; groups of several
    classes come about as near, without a guarantee.

    It depends on the values alone, never on the order of the rows. Rows that are added can move
    others, though few: within a class the parts follow each other in the order of the keys' hashes.

    Args:
        label: Column or columns that name the class, of the types of keys.
        shares: As in `hash_split`.
        key: Column or columns that name a row, as in `hash_split`.
        seed: 0 to 2^64 - 1.
        group: Column or columns whose rows stay together. A row whose group is null stands alone
            and goes by its key.
        over: Group columns: each of these groups is split by itself. A null is a group.

    Returns:
        Enum of the parts in the order of `shares`, named like the first column.

    Raises:
        InvalidArgumentError: If shares or seed are out of range.
        ArgumentTypeError: If an argument is of another type.

    Null labels and keys are a `polars.exceptions.ComputeError` when the expression runs.
    """
    names, numbers = parts(shares)
    options = {"shares": numbers}
    split = _stratified("stratified_split", label, options, key, seed, group, over)
    return _named(split, names)


def stratified_fold(
    label: Columns,
    k: int,
    *,
    key: Columns,
    seed: int,
    group: Columns | None = None,
    over: Columns | None = None,
) -> pl.Expr:
    """Folds in which every class is spread evenly: `stratified_split` with k equal shares.

    Without `group` a fold has floor or ceil of n_c / k rows of a class of n_c rows.

    Args:
        label: As in `stratified_split`.
        k: Number of folds, 1 to 1024.
        key: As in `stratified_split`.
        seed: 0 to 2^64 - 1.
        group: As in `stratified_split`.
        over: As in `stratified_split`.

    Returns:
        UInt32, 0 to k - 1, named like the first column.

    Raises:
        InvalidArgumentError: If k or the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    Null labels and keys are a `polars.exceptions.ComputeError` when the expression runs.
    """
    options = {"k": integer(k, "k", 1, 1024)}
    return _stratified("stratified_fold", label, options, key, seed, group, over)


def _stratified(
    name: str,
    label: Columns,
    options: dict[str, Any],
    key: Columns,
    seed: int,
    group: Columns | None,
    over: Columns | None,
) -> pl.Expr:
    labels = key_columns(label, "label")
    keys = key_columns(key, "key")
    grouped = optional_key(group, "group")
    options = {
        **options,
        "seed": signed_seed(seed),
        "labels": len(labels),
        "keys": len(keys),
        "groups": len(grouped),
    }
    return call(name, [*labels, *keys, *grouped], options, over=groups(over))


def _named(parts: pl.Expr, names: list[str]) -> pl.Expr:
    """Returns numbers of parts as an Enum of their names."""
    dtype = pl.Enum(names)
    # The numbers are the Enum's own. Polars 1 casts them, Polars 2 has a method for that instead.
    return parts.cat.to(dtype) if hasattr(parts.cat, "to") else parts.cast(dtype)


def time_split(time: Column, shares: Shares, *, over: Columns | None = None) -> pl.Expr:
    """A split by time: the first part has the earliest rows, the last the latest.

    Part j ends at the rank n * (its running share), to the nearest. Rows of one time are
    never parted: all are in the part of the first of them, so that no part has seen a later one's
    time.

    Args:
        time: Times, dates, integers or floats.
        shares: As in `hash_split`, from the earliest part to the latest.
        over: Group columns: each group is split by itself, such as every shop at its own times.

    Returns:
        Enum of the parts in the order of `shares`, named like the first column.

    Raises:
        InvalidArgumentError: If shares are out of range.
        ArgumentTypeError: If an argument is of another type.

    Nulls and NaN are a `polars.exceptions.ComputeError` when the expression runs.
    """
    names, numbers = parts(shares)
    columns = [column(time, "time")]
    return _named(call("time_split", columns, {"shares": numbers}, over=groups(over)), names)


def split_leaks(split: Column, key: Columns, *, over: Columns | None = None) -> pl.Expr:
    """Which rows have a key that stands in more than one part of a split.

    `frame.filter(drt.split_leaks("split", "user"))` shows them, and
    `frame.select(drt.split_leaks("split", "user").any()).item()` says whether there are any.

    Args:
        split: The parts: a column of the types of keys.
        key: Column or columns that must not be in two parts, as in `hash_split`.
        over: Group columns: keys are compared within each group. A null is a group.

    Returns:
        Boolean, named like the split. Rows whose part or key is null leak nothing.

    Raises:
        ArgumentTypeError: If an argument is of another type.
    """
    keys = key_columns(key, "key")
    columns = [column(split, "split"), *keys]
    return call("split_leaks", columns, {"keys": len(keys)}, over=groups(over))
