"""Small sources, caches and helpers that the tests share."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_rt import CacheInput, CacheWriteError, CacheWriteSuccess, WriterConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dataset_rt import CachedSample, CacheWriteResult, DatasetRuntime

QUIET = WriterConfig(show_progress=False)
"""No progress: most tests are not about it."""

TAIL = 78
"""Bytes of the fixed end of a manifest."""

# Hang limits, not expectations: about ten times what the slowest machine needs.
PATIENCE = 30.0
INTERRUPT_LIMIT = 10.0


class Source:
    """A source without a fingerprint."""

    def __init__(self, name: str, samples: Iterable[Any]) -> None:
        self.name = name
        self.samples = samples
        self.started = 0

    def __iter__(self) -> Iterator[CacheInput]:
        self.started += 1
        return iter(self.samples)


class PrintedSource(Source):
    """A source with a fingerprint."""

    def __init__(self, name: str, samples: Iterable[Any], fingerprint: str | None) -> None:
        super().__init__(name, samples)
        self.fingerprint = fingerprint


def payload(number: int, size: int = 16) -> bytes:
    """Bytes that are the same everywhere and differ from sample to sample."""
    return hashlib.shake_128(number.to_bytes(8, "little")).digest(size)


def metadata(number: int) -> dict[str, bool | int | float | str]:
    """One value of each type."""
    return {
        "label": number % 3,
        "score": number / 7,
        "text": f"n{number}",
        "even": number % 2 == 0,
    }


def numbered(count: int, size: int = 16, start: int = 0) -> list[CacheInput]:
    """Samples start, start + 1, ... with one field of each type."""
    return [CacheInput(payload(i, size), metadata(i)) for i in range(start, start + count)]


def plain(count: int, size: int = 8) -> list[CacheInput]:
    """Samples with one integer field."""
    return [CacheInput(payload(i, size), {"label": i % 3}) for i in range(count)]


def write(
    runtime: DatasetRuntime,
    base: Path,
    samples: Iterable[Any],
    name: str = "s",
    config: WriterConfig = QUIET,
) -> Path:
    """Writes one source and returns its folder."""
    return succeed(runtime.write_cache(Source(name, samples), base, writer_config=config)).path


def succeed(results: list[CacheWriteResult]) -> CacheWriteSuccess:
    """The one result, which must be a success."""
    [result] = results
    assert isinstance(result, CacheWriteSuccess), result
    return result


def fail(results: list[CacheWriteResult]) -> CacheWriteError:
    """The one result, which must be an error."""
    [result] = results
    assert isinstance(result, CacheWriteError), result
    return result


def message_of(result: CacheWriteResult) -> str:
    """The message of a failed source."""
    assert isinstance(result, CacheWriteError), result
    return result.message


def cause_of(result: CacheWriteError) -> BaseException:
    """The exception behind a failed source."""
    assert result.cause is not None, result
    return result.cause


def ids(samples: Iterable[CachedSample]) -> list[tuple[int, int]]:
    """Identities in the order of delivery."""
    return [(sample.cache_id, sample.sample_id) for sample in samples]


def rows(samples: Iterable[CachedSample]) -> list[int]:
    """Sample ids in the order of delivery."""
    return [sample.sample_id for sample in samples]


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Every file below a folder with its bytes, every link with its target; None for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def listing(folder: Path) -> list[str]:
    """Names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def leftovers(base: Path) -> list[str]:
    """What a write has left behind: anything in the staging folder."""
    staging = base / "tmp"
    return listing(staging) if staging.exists() else []


def shards(cache: Path) -> list[Path]:
    """Shard files in order."""
    return sorted((cache / "shards").iterdir())


def read_manifest(cache: Path) -> dict[str, Any]:
    """The manifest as an object, without its tail."""
    content = (cache / "manifest.json").read_bytes()
    manifest: dict[str, Any] = json.loads(content[:-TAIL] + b"}")
    return manifest


def write_manifest(cache: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Changes a manifest and gives it a tail that fits."""
    manifest = read_manifest(cache)
    edit(manifest)
    head = '{{"format":"{}","version":{},'.format(manifest.pop("format"), manifest.pop("version"))
    body = (head + json.dumps(manifest, separators=(",", ":"))[1:-1]).encode()
    digest = hashlib.sha256(body).hexdigest()
    (cache / "manifest.json").write_bytes(body + b',"sha256":"' + digest.encode() + b'"}\n')


def flip(path: Path, offset: int) -> None:
    """Changes one bit of a file in place; a negative offset counts from the end."""
    with path.open("r+b") as file:
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        at = file.tell()
        [byte] = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def thread_names() -> list[str]:
    """The names of this process's threads, but for those that end while we look."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        # The file is gone by then, or is there and can't be read (ESRCH).
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text().removesuffix("\n"))
    return names


def native_threads(expected: int, patience: float = 10.0) -> int:
    """The threads of this process that are workers of ours or have no name of their own.

    Polars and its allocator name their threads, and start them when they like. A thread takes its
    name after it has started and ends after it was told to, so this waits for the number expected.
    """
    process = Path(f"/proc/self/task/{os.getpid()}/comm").read_text().removesuffix("\n")
    deadline = time.monotonic() + patience
    while True:
        names = thread_names()
        ours = sum(name.startswith("dataset_rt") for name in names)
        number = ours + names.count(process) - 1
        if number == expected or time.monotonic() > deadline:
            return number
        time.sleep(0.01)


def script(code: str) -> list[str]:
    """The command that runs a script with warnings as errors."""
    return [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a script: ours, able to import the tests."""
    root = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1", **changes}


def run(
    code: str,
    *arguments: object,
    timeout: float = PATIENCE,
    check: bool = True,
    changes: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end; shows what it wrote if it fails."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [*script(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment(**(changes or {})),
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def run_file(
    program: Path, *arguments: object, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """Runs a program out of a file to its end; shows what it wrote if it fails."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error", str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
