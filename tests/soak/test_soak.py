"""A process that works for long stays as large as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import support


@pytest.mark.rule("Memory stays flat")
@pytest.mark.timeout(4000)
def test_memory_stays_flat(tmp_path: Path) -> None:
    if not Path("/proc/self/smaps_rollup").is_file():
        pytest.skip("needs the kernel's account of a process's memory")
    long = os.environ.get("DATASET_RT_LONG") == "1"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "tests.soak", "long" if long else "short", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=3900 if long else 120,
        check=False,
        env=support.environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
