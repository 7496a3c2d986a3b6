"""The timed inner loops. They count what they touch: a wrong read must not pass for a fast one."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Readable(Protocol):
    """What the loops touch of a sample: all measured classes have it."""

    @property
    def data(self) -> bytes: ...
    @property
    def metadata(self) -> Mapping[str, bool | int | float | str]: ...


class Tally(NamedTuple):
    """What one pass delivered. `labels` is the sum of the label fields, -1 where none was read."""

    samples: int
    payload_bytes: int
    labels: int = -1


def both(samples: Iterable[Readable]) -> Tally:
    """Touches payload and metadata of every sample."""
    count = size = labels = 0
    for sample in samples:
        count += 1
        size += len(sample.data)
        labels += sample.metadata["label"]  # type: ignore[assignment, operator]
    return Tally(count, size, labels)


def payload_only(samples: Iterable[Readable]) -> Tally:
    """Touches the payload of every sample, and no metadata."""
    count = size = 0
    for sample in samples:
        count += 1
        size += len(sample.data)
    return Tally(count, size)


def bare_payloads(payloads: Iterable[bytes]) -> Tally:
    """Touches payloads that come without a sample around them."""
    count = size = 0
    for payload in payloads:
        count += 1
        size += len(payload)
    return Tally(count, size)


def samples_per_second(run: Callable[[], Tally], expected: Tally) -> float:
    """Times one pass. What it delivered must be what was expected; -1 matches any."""
    gc.collect()
    start = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    fits = (-1 in pair or pair[0] == pair[1] for pair in zip(found, expected, strict=True))
    if not all(fits):
        message = f"a pass delivered {found}, expected {expected}"
        raise RuntimeError(message)
    return found.samples / seconds


def milliseconds(run: Callable[[], object]) -> float:
    """Times one call. What it returns is dropped after the clock has stopped."""
    gc.collect()
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    del result
    return seconds * 1e3


def median_microseconds(get: Callable[[int], Readable], rows: list[int]) -> float:
    """The median time of getting one sample and touching payload and metadata."""
    gc.collect()
    clock = time.perf_counter_ns
    times: list[int] = []
    for row in rows:
        start = clock()
        sample = get(row)
        _ = sample.data, sample.metadata["label"]
        times.append(clock() - start)
    times.sort()
    return times[len(times) // 2] / 1e3
