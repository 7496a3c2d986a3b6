"""What the import costs: fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
import tempfile

PROGRAM = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def import_milliseconds(module: str) -> float:
    """The time of an import in a fresh interpreter that is already running."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM.format(module=module)],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout) * 1e3
