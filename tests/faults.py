"""Steers the preloaded shim (tests/shim/faults.c) from inside a process."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SHORT = "short"
"""In place of an error number: a read or write takes part of its bytes."""

ALWAYS = 1 << 40


class Rule:
    """Which calls fail: `count` of them from number `first` on, by path."""

    def __init__(
        self,
        call: str,
        number: int | str,
        below: Path,
        suffix: str = "*",
        first: int = 0,
        count: int = ALWAYS,
    ) -> None:
        self.line = f"{call} {number} {below} {suffix} {first} {count}"


def _shim() -> ctypes.CDLL:
    # The preloaded library is part of the process.
    library = ctypes.CDLL(None)
    library.faults_fired.restype = ctypes.c_long
    library.faults_seen.restype = ctypes.c_long
    return library


def arrange(*rules: Rule) -> None:
    """Replaces all rules; without one every call passes."""
    text = "\n".join(rule.line for rule in rules)
    assert _shim().faults_set(text.encode()) == len(rules)


def fired() -> int:
    """How many calls were made to fail since the rules were arranged."""
    return int(_shim().faults_fired())


def seen() -> int:
    """How many calls matched the rules."""
    return int(_shim().faults_seen())
