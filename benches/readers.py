"""The Go reader beside the core on one thread, in one run: `make bench-readers`.

Both iterate over the same cache in order, check each payload's CRC and touch each metadata
value. They take turns, and the best epoch of each counts.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_rt import CacheInput, CacheWriteSuccess, DatasetRuntime, WriterConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE = re.compile(r"([0-9]+) records/s")


class Records:
    """Records of 1 KiB that don't compress, with one field of each type."""

    def __init__(self, count: int) -> None:
        self.name = "records"
        self.count = count

    def __iter__(self) -> Iterator[CacheInput]:
        block = os.urandom(1 << 20)
        for i in range(self.count):
            at = i * 40503 % (len(block) - 1024)
            fields: dict[str, bool | int | float | str] = {
                "label": i % 10,
                "score": i / 7,
                "flag": i % 2 == 0,
                "text": f"sample {i}",
            }
            yield CacheInput(block[at : at + 1024], fields)


def best(command: list[str]) -> int:
    """Records a second of the fastest epoch."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return max(int(rate) for rate in RATE.findall(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", required=True, help="the built example `iterate`")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--epochs", default="5")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        config = WriterConfig(show_progress=False)
        [result] = DatasetRuntime(num_workers=1).write_cache(
            Records(options.records), folder, writer_config=config
        )
        assert isinstance(result, CacheWriteSuccess), result
        cache = str(result.path)
        go = shlex.split(os.environ["READER_GO"])
        commands = {
            "core": [options.core, cache, options.epochs],
            "go": [*go, "--bench", cache, "--epochs", options.epochs],
        }
        rates = dict.fromkeys(commands, 0)
        for _ in range(3):
            for name, command in commands.items():
                rates[name] = max(rates[name], best(command))
    finally:
        shutil.rmtree(folder)
    for name, rate in rates.items():
        print(f"{name:<5} {rate:>10,} records/s")
    print(f"go / core {rates['go'] / rates['core']:.2f} (at least 0.5 is asked for)")
    return 0 if rates["go"] * 2 >= rates["core"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
