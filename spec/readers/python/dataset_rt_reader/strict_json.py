"""JSON as RFC 8259 has it, without what Python's parser lets through besides."""

from __future__ import annotations

import json
from typing import NoReturn

_LONGEST_INTEGER = 20


class JsonError(ValueError):
    """Bytes are not UTF-8, not one JSON object, or hold an unpaired surrogate."""


def parse_object(data: bytes) -> dict[str, object]:
    """Parse one JSON object.

    Integers of more than 20 characters become floats: no member that is used may be so large.

    Raises:
        JsonError: also for objects that are nested too deep for this reader.

    """
    try:
        value: object = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except RecursionError as error:
        raise JsonError("nested too deep") from error
    except ValueError as error:
        raise JsonError(f"not JSON in UTF-8: {error}") from error
    if not isinstance(value, dict):
        raise JsonError("not an object")
    return value


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_INTEGER else float(text)


def _constant(text: str) -> NoReturn:
    raise JsonError(f"{text} is not JSON")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Here and not on the result: a member that a later one of its name replaces is text too.
    for name, value in pairs:
        _check_text(name)
        _check_texts(value)
    return dict(pairs)


def _check_texts(value: object) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, list):
            waiting.extend(item)


def _check_text(text: str) -> None:
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise JsonError("a text has an unpaired surrogate")
