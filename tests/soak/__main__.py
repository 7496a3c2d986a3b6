"""Runs the scenarios in this process: `python -m tests.soak short|long [folder]`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.soak.scenarios import LONG, SCENARIOS, SHORT, World, measure, run


def main(arguments: list[str]) -> None:
    scale = {"short": SHORT, "long": LONG}[arguments[0]]
    with tempfile.TemporaryDirectory(dir=arguments[1] if len(arguments) > 1 else None) as folder:
        world = World(scale, Path(folder))
        print(f"{'start':18} {measure()}", flush=True)  # noqa: T201 - its output
        for scenario in SCENARIOS:
            start = time.monotonic()
            warm, end = run(world, scenario)
            seconds = time.monotonic() - start
            print(f"{scenario.__name__:18} {warm} -> {end}, {seconds:.1f} s", flush=True)  # noqa: T201


main(sys.argv[1:])
