"""The warning about caches that were reused without proof."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from dataset_rt._locks import ForkLock
from dataset_rt.errors import CacheReuseWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataset_rt._native import NativeOutcome

_MANY = 3
_lock = ForkLock()
# Path and date of the caches that were spoken of: a cache written again is another one.
_said: set[tuple[str, str]] = set()


def warn_unproven(outcomes: Sequence[NativeOutcome], *, stacklevel: int) -> None:
    """Warns once a process and cache; more than three caches of a call share one warning."""
    new: list[tuple[str, str, str]] = []
    with _lock.own():
        for outcome in outcomes:
            if not outcome.unproven or outcome.path is None:
                continue
            key = (str(outcome.path), outcome.created or "at an unknown time")
            if key not in _said:
                _said.add(key)
                new.append((*key, outcome.reason))
    if len(new) > _MANY:
        dates = sorted(created for _, created, _ in new)
        named = ", ".join(path for path, _, _ in new[:_MANY])
        warnings.warn(
            f"{len(new)} caches were reused though nothing proves that they are what their sources "
            f"yield now, written {dates[0]} to {dates[-1]}: {named} and {len(new) - _MANY} more. "
            f"{_ADVICE}",
            CacheReuseWarning,
            stacklevel=stacklevel + 1,
        )
        return
    for path, created, reason in new:
        warnings.warn(
            f"the cache {path}, written {created}, was reused though nothing proves that it is "
            f"what its source yields now ({reason}). {_ADVICE}",
            CacheReuseWarning,
            stacklevel=stacklevel + 1,
        )


_ADVICE = (
    "Give the source a `fingerprint` that changes with its data and code; to write a cache again, "
    "delete its folder"
)
