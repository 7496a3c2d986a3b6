"""What is wrong with a cache, what that costs, and a new cache made of what is whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataset_rt import _native
from dataset_rt._arguments import absolute_path, flag

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["CacheProblem", "RepairReport", "VerifyReport", "repair", "verify"]


@dataclass(frozen=True)
class CacheProblem:
    """One thing that is wrong with a cache."""

    path: Path
    """The file concerned."""
    file: str
    """The same, below the folder of the cache, with `/` between names."""
    code: str
    """The error code of the specification."""
    message: str
    """What was found and what was expected."""
    offset: int | None
    """Where in the file, as far as known."""
    lost: tuple[range, ...]
    """Ids of the samples that can't be read because of this, ascending."""

    @property
    def samples_lost(self) -> int:
        """How many samples can't be read because of this."""
        return sum(len(samples) for samples in self.lost)


@dataclass(frozen=True)
class VerifyReport:
    """What is known about a cache after every byte of it was looked at."""

    path: Path
    """Folder of the cache."""
    samples: int | None
    """Samples it should have; None if its manifest can't be read."""
    samples_readable: int
    """Samples that a dataset gives, payload and metadata; 0 if the cache can't be opened."""
    problems: tuple[CacheProblem, ...]
    """All that is wrong, 10,000 problems at most."""
    problems_omitted: int
    """Problems beyond these."""
    repairable: bool
    """Whether `repair` can make a whole cache of it."""

    @property
    def ok(self) -> bool:
        """Whether every byte is right."""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            return f"{self.path}: whole, {self.samples} samples"
        of = "an unknown number of" if self.samples is None else self.samples
        can = "can be repaired" if self.repairable else "can't be repaired"
        head = f"{self.path}: damaged, {self.samples_readable} of {of} samples readable, {can}"
        return "\n".join([head, *_lines(self.problems, self.problems_omitted)])


@dataclass(frozen=True)
class RepairReport:
    """What became of a repair."""

    path: Path
    """Folder of the new cache; there is none unless `ok`."""
    samples: int | None
    """Samples of the new cache; None if there is none."""
    problems: tuple[CacheProblem, ...]
    """Why there is no new cache: what is not whole in shards and metadata, 10,000 at most."""
    problems_omitted: int
    """Problems beyond these."""
    remade: tuple[str, ...]
    """Files that the damaged cache doesn't have like this: "index.bin", "manifest.json"."""
    lost: tuple[str, ...]
    """What could not be made again, in words."""
    proven: bool
    """Whether a sound manifest or index vouches for every byte of the metadata. Otherwise only its
    form is known to be right; payloads are checked in either case."""

    @property
    def ok(self) -> bool:
        """Whether the new cache stands."""
        return self.samples is not None

    def __str__(self) -> str:
        if not self.ok:
            return "\n".join(["not repaired", *_lines(self.problems, self.problems_omitted)])
        made = ", ".join(self.remade) or "nothing"
        head = f"{self.path}: {self.samples} samples, made again: {made}"
        return "\n".join([head, *(f"  lost: {what}" for what in self.lost)])


def _lines(problems: Iterable[CacheProblem], omitted: int) -> list[str]:
    lines = []
    for problem in problems:
        lost = ", ".join(
            f"{samples[0]}" if len(samples) == 1 else f"{samples[0]} to {samples[-1]}"
            for samples in problem.lost[:5]
        )
        more = ", ..." if len(problem.lost) > 5 else ""  # noqa: PLR2004 - as many as are shown
        end = f"; samples lost: {lost}{more}" if lost else ""
        lines.append(f"  {problem.code}: {problem.message}{end}")
    if omitted:
        lines.append(f"  and {omitted} more")
    return lines


def _problems(found: list[dict[str, Any]], cache: Path) -> tuple[CacheProblem, ...]:
    return tuple(
        CacheProblem(
            path=problem["path"],
            file=problem["path"].relative_to(cache).as_posix(),
            code=problem["code"],
            message=problem["message"],
            offset=problem["offset"],
            lost=tuple(range(first, end) for first, end in problem["lost"]),
        )
        for problem in found
    )


def verify(path: str | os.PathLike[str], *, follow_links: bool = False) -> VerifyReport:
    """Looks at every byte of a cache and lists all that is wrong, with what it costs.

    Args:
        path: Folder of the cache.
        follow_links: Whether its files may be links out of the folder, as for `ReaderConfig`.

    Returns:
        The report. Damage is in the report and raises nothing.

    Raises:
        CacheNotFoundError: If the folder has no file of a cache.
        CacheVersionError: If the cache is of a later version.
        CacheFeatureError: If the cache requires features that this release doesn't know.
        StorageError: If the system refuses to read.
    """
    cache = absolute_path(path, "path")
    found = _native.verify(cache, flag(follow_links, "follow_links"))
    return VerifyReport(
        path=found["path"],
        samples=found["samples"],
        samples_readable=found["readable"],
        problems=_problems(found["problems"], cache),
        problems_omitted=found["omitted"],
        repairable=found["repairable"],
    )


def repair(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> RepairReport:
    """Writes a cache anew, with an index and a manifest made from its shards and metadata.

    All shards and the metadata must be whole. The damaged cache is only read. The new one is
    checked as a whole before it gets its name, which must be free.

    Args:
        path: Folder of the damaged cache.
        output: Folder of the new cache.

    Returns:
        The report. If shards or metadata are not whole, it has the reasons, and nothing is written.

    Raises:
        InvalidArgumentError: If `output` can't be the folder of a cache, or lies in `path`.
        CacheExistsError: If something stands at `output`.
        CacheNotFoundError: If `path` has no file of a cache.
        CacheVersionError: If the cache is of a later version.
        CacheFeatureError: If the cache requires features that this release doesn't know.
        StorageError: If the system refuses to read or write.
    """
    cache = absolute_path(path, "path")
    found = _native.repair(cache, absolute_path(output, "output"))
    return RepairReport(
        path=found["path"],
        samples=found["samples"],
        problems=_problems(found["problems"], cache),
        problems_omitted=found["omitted"],
        remade=tuple(found["remade"]),
        lost=tuple(found["lost"]),
        proven=found["proven"],
    )
