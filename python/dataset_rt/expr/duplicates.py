"""Fingerprints of texts for finding duplicates and near duplicates with joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dataset_rt._arguments import MAX_U32, integer
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import Column, Columns, choice, column, columns, groups
from dataset_rt.expr._keys import signed_seed

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ShingleUnit",
    "content_hash",
    "duplicate_rank",
    "hamming",
    "minhash",
    "minhash_band",
    "minhash_similarity",
    "simhash",
]

ShingleUnit: TypeAlias = Literal["char", "word"]
"""What shingles are runs of: Unicode scalar values, or what stands between white space."""

MAX_VALUES = 2**16
"""Values of a signature."""


def content_hash(*by: Column, seed: int = 0) -> pl.Expr:
    """The hash of a row's content: equal for equal values, whatever frame they are in.

    XXH3-64 as docs/reference/key-hash.md defines it; of 10^6 rows that differ two have the same
    hash with probability 3e-8, of 10^8 with 3e-4.

    Args:
        *by: Columns of integers of up to 64 bits, text, categories, bytes, Boolean or Date. Text is
            hashed as it is: normalise it first where case, white space or Unicode forms should not
            count.
        seed: 0 to 2^64 - 1.

    Returns:
        UInt64, named like the first column; null where one of the values is.

    Raises:
        InvalidArgumentError: If there is no column, or the seed is out of range.
        ArgumentTypeError: If an argument is of another type.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> hash = pl.select(drt.content_hash(pl.lit("a"))).item()
        >>> f"{hash:x}"
        'e6c632b61e964e1f'
    """
    found = columns(by, "by")
    return call("content_hash", found, {"seed": signed_seed(seed)}, kind="elementwise")


def minhash(
    text: Column, *, k: int = 128, shingle: int = 5, unit: ShingleUnit = "char", seed: int = 0
) -> pl.Expr:
    """MinHash signatures (Broder 1997): the more alike two texts, the more values agree.

    A text is the set of its shingles, the runs of `shingle` units that follow each other (a shorter
    text is one shingle). Of each of k permutations of all hashes the signature keeps the smallest
    value of a shingle. Two texts agree at a place with the probability that is the Jaccard
    similarity J of their sets, so `minhash_similarity` estimates J without bias and with standard
    error sqrt(J (1 - J) / k), at most 0.044 for k = 128. Signatures compare if k, shingle, unit and
    seed are the same.

    Args:
        text: Text or categories, taken as they are: normalise first where case, white space or
            Unicode forms should not count, such as with `str.to_lowercase` and `str.normalize`.
        k: Values of a signature, 1 to 65,536. Time and memory go with it.
        shingle: Units of a shingle, at least 1.
        unit: "char" for Unicode scalar values, "word" for what stands between white space.
        seed: 0 to 2^64 - 1.

    Returns:
        Array of k UInt32, named like the text; null for null.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument is of another type.
    """
    options = {**_cut(shingle, unit, seed), "k": integer(k, "k", 1, MAX_VALUES)}
    return call("minhash", [column(text, "text")], options, kind="elementwise")


def minhash_band(signature: Column, bands: int) -> pl.Expr:
    """Hashes of the bands of a signature, to join texts that are likely alike.

    The k values are cut into `bands` runs of r = k / bands. Texts of similarity J have a band in
    common with probability 1 - (1 - J^r)^bands, which turns from unlikely to likely about
    J = (1 / bands)^(1 / r): 0.71 for k = 128 and 16 bands. After `explode` an ordinary join on the
    hashes finds the pairs; `minhash_similarity` tells the good ones.

    Args:
        signature: A column that `minhash` made.
        bands: A divisor of k.

    Returns:
        Array of `bands` UInt64, named like the signature; null for null.

    Raises:
        InvalidArgumentError: If `bands` is below 1.
        ArgumentTypeError: If an argument is of another type.

    A column that holds no signatures, or whose length `bands` doesn't divide, is a
    `polars.exceptions.ComputeError` when the expression runs.
    """
    options = {"bands": integer(bands, "bands", 1, MAX_VALUES)}
    return call("minhash_band", [column(signature, "signature")], options, kind="elementwise")


def minhash_similarity(left: Column, right: Column) -> pl.Expr:
    """The share of equal values of two signatures: an estimate of the Jaccard similarity.

    Args:
        left: A column that `minhash` made.
        right: Another, with the same options.

    Returns:
        Float64, 0 to 1, named like the left one; null where one of both is.

    Raises:
        ArgumentTypeError: If an argument is of another type.
    """
    both = [column(left, "left"), column(right, "right")]
    return call("minhash_similarity", both, {}, kind="elementwise")


def simhash(
    text: Column, *, shingle: int = 5, unit: ShingleUnit = "char", seed: int = 0
) -> pl.Expr:
    """SimHash (Charikar 2002): 64 bits of which like texts have many in common.

    Bit i is 1 if more than half of the hashes of the shingles have it, each occurrence counted.
    Texts whose counts of shingles have the angle a differ in 64 a / pi bits on average; see
    `hamming`.

    Args:
        text: As in `minhash`.
        shingle: As in `minhash`.
        unit: As in `minhash`.
        seed: 0 to 2^64 - 1.

    Returns:
        UInt64, named like the text; null for null.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument is of another type.
    """
    return call("simhash", [column(text, "text")], _cut(shingle, unit, seed), kind="elementwise")


def hamming(left: Column, right: Column) -> pl.Expr:
    """In how many bits two integers differ, such as two values of `simhash`.

    A plain Polars expression.

    Args:
        left: Integers.
        right: Integers of the same type.

    Returns:
        UInt32, named like the left one; null where one of both is.

    Raises:
        ArgumentTypeError: If an argument is of another type.
    """
    return (column(left, "left") ^ column(right, "right")).bitwise_count_ones()


def duplicate_rank(
    *by: Column, order: Column | None = None, over: Columns | None = None
) -> pl.Expr:
    """How many rows of the same key come before a row: 0 for the one to keep.

    `frame.filter(drt.duplicate_rank("hash") == 0)` keeps the first row of each key.

    Args:
        *by: Columns that make the key, of the types that `content_hash` takes.
        order: Numbers or times, smallest first; of equal ones the first row. Without it rows come
            in the order of the frame.
        over: Group columns: only rows of one group are duplicates. A null is a group.

    Returns:
        UInt32, named like the first column. A row with a null in its key is no duplicate: 0.

    Raises:
        InvalidArgumentError: If there is no column.
        ArgumentTypeError: If an argument is of another type.

    Null and NaN in `order` are a `polars.exceptions.ComputeError` when the expression runs.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> frame = pl.DataFrame({"text": ["a", "b", "a", "a"]})
        >>> frame.select(drt.duplicate_rank("text"))["text"].to_list()
        [0, 0, 1, 2]
    """
    keys = columns(by, "by")
    ordered = [] if order is None else [column(order, "order")]
    return call("duplicate_rank", [*keys, *ordered], {"keys": len(keys)}, over=groups(over))


def _cut(shingle: int, unit: ShingleUnit, seed: int) -> dict[str, Any]:
    """Returns the options that say how texts are cut and hashed."""
    return {
        "shingle": integer(shingle, "shingle", 1, MAX_U32),
        "unit": choice(unit, "unit", ("char", "word")),
        "seed": signed_seed(seed),
    }
