"""Checks of single arguments, shared by the public classes."""

from __future__ import annotations

import numbers
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_U32 = 2**32 - 1
MAX_U64 = 2**64 - 1
MAX_I64 = 2**63 - 1


def is_integer(value: object) -> bool:
    """Whether `value` is an integer of Python or NumPy, and no truth value."""
    # NumPy registers its integers as numbers.Integral, and leaves its bool out.
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def integer(value: object, argument: str, low: int, high: int) -> int:
    """Returns `value` as an int within `low` and `high`, both allowed.

    Raises:
        ArgumentTypeError: If it is no integer; a bool, a float or a string isn't one.
        InvalidArgumentError: If it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(
            f"{argument} must be an integer, found {describe(value)}", argument=argument
        )
    number = int(value)
    if not low <= number <= high:
        raise InvalidArgumentError(
            f"{argument} must be {_range_text(low, high)}, found {number}", argument=argument
        )
    return number


def flag(value: object, argument: str) -> bool:
    """Returns `value` if it is a bool.

    Raises:
        ArgumentTypeError: If it is not.
    """
    if not isinstance(value, bool):
        raise ArgumentTypeError(
            f"{argument} must be True or False, found {describe(value)}", argument=argument
        )
    return value


def absolute_path(value: object, argument: str) -> Path:
    """Returns a str or path object as an absolute path, resolved now.

    Nothing is expanded (`~`, patterns) and nothing is looked up on the disk.

    Raises:
        ArgumentTypeError: If it is bytes or no path at all.
        InvalidArgumentError: If it is empty or holds U+0000.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        hint = "; decode it with os.fsdecode" if isinstance(text, bytes) else ""
        raise ArgumentTypeError(
            f"{argument} must be a str or pathlib.Path, found {describe(value)}{hint}",
            argument=argument,
        )
    if not text:
        raise InvalidArgumentError(f"{argument} is an empty path", argument=argument)
    if "\0" in text:
        raise InvalidArgumentError(f"{argument} holds U+0000: {text!r}", argument=argument)
    return Path(text).absolute()


def path_list(paths: object, argument: str) -> list[Path]:
    """Returns several paths as absolute ones.

    Raises:
        ArgumentTypeError: If `paths` is one path, or no sequence, or an item is no path.
        InvalidArgumentError: If there are none, or one is empty.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise ArgumentTypeError(
            f"{argument} must be a list of paths, found the single path {paths!r}; "
            f"write [{paths!r}]",
            argument=argument,
        )
    try:
        items = list(iter_any(paths))
    except TypeError:
        raise ArgumentTypeError(
            f"{argument} must be a list of paths, found {describe(paths)}", argument=argument
        ) from None
    if not items:
        raise InvalidArgumentError(f"{argument} is empty: one cache is needed", argument=argument)
    return [absolute_path(item, f"{argument}[{number}]") for number, item in enumerate(items)]


def iter_any(value: object) -> Iterable[object]:
    """Returns an iterator of `value`; mappings and sets have no order and are refused.

    Raises:
        TypeError: If there is none.
    """
    if isinstance(value, (dict, set, frozenset)):
        raise TypeError("no order")
    iterator: Iterable[object] = iter(value)  # type: ignore[call-overload]
    return iterator


def describe(value: object) -> str:
    """Returns a value and its type for a message, shortened."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken repr must not hide the message
        text = "a value without a repr"
    limit = 60
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return f"{text} ({type(value).__name__})"


def _range_text(low: int, high: int) -> str:
    if high in (MAX_U32, MAX_U64, MAX_I64):
        return f"{low} to 2^{high.bit_length()} - 1"
    return f"{low} to {high}"
