"""What a write says on stderr, and when it says nothing."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from tests import support

if TYPE_CHECKING:
    from pathlib import Path

SLOW = """
import sys, time
from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
from tests import support
class Source(support.Source):
    def __iter__(self):
        for i in range(6):
            time.sleep(0.1)
            yield support.payload(i, 1000), {"i": i}
sources = [Source(f"part-{i}", None) for i in range(int(sys.argv[2]))]
results = DatasetRuntime(num_workers=1).write_cache(
    sources, sys.argv[1], writer_config=WriterConfig(show_progress=True))
assert all(result.status == "written" for result in results)
"""
QUIET = SLOW.replace("show_progress=True", "show_progress=False")


def on_terminal(
    code: str, *arguments: object, columns: int = 100, changes: dict[str, str] | None = None
) -> str:
    """Runs a script with a pseudo-terminal as stderr and returns what it wrote there."""
    import fcntl  # noqa: PLC0415
    import pty  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {"TERM": "xterm", **(changes or {})}
    env = {
        key: value
        for key, value in support.environment().items()
        if key not in {"NO_COLOR", "COLUMNS"}
    }
    process = subprocess.Popen(  # noqa: S603
        [*support.script(code), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**env, **variables},
    )
    os.close(theirs)
    written = b""
    deadline = time.monotonic() + support.PATIENCE
    while time.monotonic() < deadline:
        readable, _, _ = select.select([ours], [], [], 0.1)
        if readable:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            written += piece
    os.close(ours)
    out, _ = process.communicate(timeout=support.PATIENCE)
    assert (process.returncode, out) == (0, b""), written
    return written.decode()


def screen_lines(text: str) -> list[str]:
    """All states of all lines, whatever redrew them."""
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.mark.rule("Progress goes to stderr")
def test_one_source_on_a_terminal(tmp_path: Path) -> None:
    text = on_terminal(SLOW, tmp_path, 1)
    assert "samples/s" in text
    assert "MB/s" in text
    assert "part-0" in text
    assert text.endswith("\n")
    assert max(map(len, screen_lines(text))) <= 100
    assert text.count("\r") > 1


@pytest.mark.rule("Progress goes to stderr")
def test_many_sources_on_a_narrow_terminal(tmp_path: Path) -> None:
    text = on_terminal(SLOW, tmp_path, 4, columns=60)
    assert "ETA" in text
    assert re.search(r"\b[123]/4\b", text)
    assert text.endswith("\n")
    assert max(map(len, screen_lines(text))) <= 60
    # A few lines for many sources: most states overwrite the one before.
    assert text.count("\n") <= 3


@pytest.mark.rule("Terminals that want no escapes get none")
@pytest.mark.parametrize("changes", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=str)
def test_no_escape_sequences(tmp_path: Path, changes: dict[str, str]) -> None:
    text = on_terminal(SLOW, tmp_path, 2, changes=changes)
    assert "samples/s" in text
    assert "\x1b" not in text
    assert text.endswith("\n")


@pytest.mark.rule("Off a terminal progress is plain lines")
def test_plain_lines_in_a_file(tmp_path: Path) -> None:
    done = support.run(SLOW, tmp_path / "base", 3)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    # It takes two seconds: at most the first line and the last.
    assert 1 <= len(lines) <= 2
    assert done.stderr.endswith("\n")
    assert "samples/s" in lines[-1]
    for character in ("\r", "\x1b", "\b"):
        assert character not in done.stderr


@pytest.mark.rule("A notebook gets a bar")
def test_a_bar_in_a_notebook(tmp_path: Path) -> None:
    prologue = """
import sys, types, warnings
# A kernel without widgets: tqdm warns of that and draws its bar as text.
warnings.simplefilter("ignore")
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: shell
"""
    done = support.run(prologue + SLOW, tmp_path / "base", 2)
    assert done.stdout == ""
    assert "2/2" in done.stderr
    assert "100%" in done.stderr
    assert "samples/s" in done.stderr


@pytest.mark.rule("Progress can be turned off")
def test_silence(tmp_path: Path) -> None:
    done = support.run(QUIET, tmp_path / "base", 2)
    assert (done.stdout, done.stderr) == ("", "")
    assert on_terminal(QUIET, tmp_path / "terminal", 2) == ""


@pytest.mark.rule("A closed stderr is no error")
@pytest.mark.parametrize("how", ["close", "none", "descriptor", "full"])
def test_no_stderr(tmp_path: Path, how: str) -> None:
    prologue = {
        "close": "sys.stderr.close()",
        "none": "sys.stderr = None",
        "descriptor": "os.close(2)",
        "full": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
    }[how]
    # The interpreter itself fails to flush a broken stderr at its end; that is not what we test.
    code = f"import os, sys\n{prologue}\n{SLOW}\nprint('written', flush=True)\nos._exit(0)\n"
    done = support.run(code, tmp_path / "base", 1)
    assert done.stdout == "written\n"


@pytest.mark.rule("Progress goes to stderr")
def test_a_stopped_write_ends_its_line(tmp_path: Path) -> None:
    code = SLOW.replace(
        "for i in range(6):", "for i in range(6):\n            if i == 5: raise KeyboardInterrupt"
    )
    code = (
        code.replace("results = ", "try:\n  results = ").replace("assert all", "  assert all")
        + "\nexcept KeyboardInterrupt:\n  pass\n"
    )
    text = on_terminal(code, tmp_path, 1)
    assert "samples/s" in text
    assert text.endswith("\n")


IMPORTS = """
import sys
before = set(sys.modules)
import dataset_rt
from dataset_rt import expr
optional = ["tqdm", "numpy", "pandas", "pyarrow", "torch", "IPython"]
print([name for name in optional if name in sys.modules and name not in before])
"""


@pytest.mark.rule("Imports stay small")
def test_imports(tmp_path: Path) -> None:
    alone = support.run("import sys, polars, pydantic\nprint('numpy' in sys.modules)").stdout
    loaded = support.run(IMPORTS).stdout.strip()
    assert loaded == ("['numpy']" if alone == "True\n" else "[]")
    code = QUIET + "\nprint('tqdm' in sys.modules)"
    assert support.run(code, tmp_path / "quiet", 1).stdout == "False\n"


@pytest.mark.rule("Imports stay small")
def test_needed_packages() -> None:
    needed = [line for line in metadata.requires("dataset-rt") or [] if "extra ==" not in line]
    assert sorted(re.split(r"[^a-z]", line)[0] for line in needed) == ["polars", "pydantic", "tqdm"]


@pytest.mark.rule("Imports stay small", "Progress goes to stderr")
def test_no_monitor_thread(tmp_path: Path) -> None:
    code = (
        SLOW
        + """
import threading, tqdm
assert threading.active_count() == 1, threading.enumerate()
assert tqdm.tqdm.monitor is None
assert tqdm.tqdm.monitor_interval == 10
"""
    )
    assert "samples/s" in on_terminal(code, tmp_path, 1)


@pytest.mark.rule("The library logs and doesn't print")
def test_loggers() -> None:
    import logging  # noqa: PLC0415

    handlers = logging.getLogger("dataset_rt").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)


@pytest.mark.rule("The library logs and doesn't print")
def test_nothing_is_printed(tmp_path: Path) -> None:
    done = support.run(
        """
        import sys
        from dataset_rt import DatasetRuntime, ReaderConfig
        from tests import support
        runtime = DatasetRuntime(num_workers=2)
        source = support.PrintedSource("s", support.numbered(100), "v1")
        for _ in range(2):
            outcome = runtime.from_cache_sources(
                source, sys.argv[1], reader_config=ReaderConfig(seed=0),
                writer_config=support.QUIET)
        dataset = outcome.dataset
        dataset.update_metadata(dataset.get_metadata().head(10))
        list(dataset), list(dataset.iter_batches(3)), dataset.rows[3], repr(dataset)
        """,
        tmp_path / "base",
    )
    assert (done.stdout, done.stderr) == ("", "")


if sys.platform == "win32":
    pytest.skip("needs pseudo-terminals", allow_module_level=True)
