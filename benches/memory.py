"""Private memory of readers and writers, each in a process of its own that is watched from outside.

`python -m benches.memory KIND FOLDER SAMPLES` is that process. It says "ready" once the package is
imported and goes on when it is sent a line, so that what the import takes is not counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import dataset_rt as drt

from .product import QUIET, Product, read_both
from .workloads import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["read", "write"]
REPOSITORY = Path(__file__).resolve().parents[1]
INTERVAL = 0.01
COLUMNS = 5


class FiveColumns:
    """Samples of 64 bytes with five columns, made one by one so that the source holds nothing."""

    name = "five-columns"

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[drt.CacheInput]:
        payload = bytes(64)
        for row in range(self.samples):
            metadata: dict[str, bool | int | float | str] = dict.fromkeys(FIELDS, row)
            metadata["score"], metadata["flag"] = row / 7, row % 3 == 0
            metadata["text"], metadata["split"] = f"row {row}", "train"
            yield drt.CacheInput(payload, metadata)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("read", "write"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("samples", type=int, help="how many; 0 reads all")
    options = parser.parse_args()
    print("ready", flush=True)
    sys.stdin.readline()
    if options.kind == "read":
        product = Product(2, options.folder.parent)
        dataset = product.open(options.folder, "shuffled")
        if options.samples:
            dataset.set_epoch_len(options.samples)
        read_both(dataset)
    else:
        runtime = drt.DatasetRuntime(num_workers=2)
        [result] = runtime.write_cache(
            FiveColumns(options.samples), options.folder, writer_config=QUIET
        )
        if isinstance(result, drt.CacheWriteError):
            sys.exit(result.message)


def peak(kind: Kind, folder: Path, samples: int = 0) -> float:
    """The most private memory beyond that after the import, in MiB.

    Anonymous pages: pages of mapped files can be taken back at any time, and are not counted.
    """
    command = [sys.executable, "-m", "benches.memory", kind, str(folder), str(samples)]
    with subprocess.Popen(  # noqa: S603
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the process did not start")
        before = most = _anonymous(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        while process.poll() is None:
            most = max(most, _anonymous(process.pid))
            time.sleep(INTERVAL)
        if process.returncode:
            message = f"{' '.join(command)} ended with {process.returncode}"
            raise RuntimeError(message)
    return (most - before) / 2**20


def _anonymous(pid: int) -> int:
    """Bytes of anonymous memory; 0 if the process has just ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines())
    return sum(int(fields[1]) * 1024 for fields in lines if fields[0] == "Anonymous:")


if __name__ == "__main__":
    main()
