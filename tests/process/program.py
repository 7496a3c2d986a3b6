"""A script in a process of its own that is talked to while it runs."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import support

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Program:
    """Runs a script; killed at the end if it still runs."""

    def __init__(self, code: str, *arguments: object, **changes: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [*support.script(code), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=support.environment(**changes),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def expect(self, line: str) -> None:
        """Reads one line, which must be this one."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        if found != line + "\n":
            _, err = self.end()
            pytest.fail(f"expected {line!r}, found {found!r}; stderr: {err}")

    def interrupt(self, after: float = 0.3) -> None:
        """Sends SIGINT, some seconds later: what a script does after a line is under way then."""
        time.sleep(after)
        self._process.send_signal(signal.SIGINT)

    def end(self, timeout: float = support.INTERRUPT_LIMIT) -> tuple[int, str]:
        """Waits for the end; gives the exit code and stderr."""
        try:
            _, err = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, err = self._process.communicate()
            pytest.fail(f"the process hangs; stderr: {err}")
        return self._process.returncode, err

    def succeed(self) -> None:
        """Waits for the end, which must be a good one in silence."""
        assert self.end(support.PATIENCE) == (0, "")


def stalling_library(folder: Path) -> str:
    """Compiles the library of calls that hang, and gives its path for LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/task").is_dir():
        pytest.skip("needs Linux and a C compiler")
    source = Path(__file__).with_name("stall.c")
    library = folder / "stall.so"
    subprocess.run(  # noqa: S603 - our own file
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True
    )
    return str(library)
