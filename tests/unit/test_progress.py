"""Progress lines: where they go, how wide, how often."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from typing import Any

import pytest
from dataset_rt import progress
from dataset_rt._locks import ForkLock
from dataset_rt.progress import WriteProgress

LONG = "very-long-source-name-" * 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_last_plain", float("-inf"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)


def snapshot(samples: int, *, source: int = 0, total: int = 1, elapsed: float = 1.0) -> Any:
    return {
        "source": source,
        "name": LONG if source == 0 else "b",
        "samples": samples,
        "payload_bytes": samples * 1000,
        "stored_bytes": samples * 1000,
        "sources_done": source,
        "sources_total": total,
        "elapsed": elapsed,
    }


def drawn(stream: Any, monkeypatch: pytest.MonkeyPatch, total: int = 1) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    bar = WriteProgress(total)
    for step in range(1, 6):
        source = min(step // 3, total - 1)
        bar.update(snapshot(step * 1000, source=source, total=total, elapsed=float(step)))
    bar.close(finished=True)
    text: str = stream.getvalue()
    return text


@pytest.mark.parametrize("total", [1, 2])
def test_terminal(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    text = drawn(Terminal(), monkeypatch, total)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert max(map(len, re.split(r"[\r\n]", text))) < 60
    assert "samples/s" in text
    if total > 1:
        # Four seconds for one of two sources: four more.
        assert "[1/2 sources, ETA 0:04]" in text


def test_rates_are_those_of_the_active_source() -> None:
    state = progress._State(2)
    state.take(snapshot(10_000, total=2, elapsed=10.0))
    state.take(snapshot(10_500, source=1, total=2, elapsed=10.5))
    assert state.active() == "500 samples, 1,000 samples/s, 1.0 MB/s"


@pytest.mark.parametrize("variable", ["TERM", "NO_COLOR"])
def test_no_escape_sequences(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "dumb")
    text = drawn(Terminal(), monkeypatch, 2)
    assert "\x1b" not in text
    assert text.endswith("\n")
    assert max(map(len, re.split(r"[\r\n]", text))) < 60


def test_log_file_gets_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("dataset_rt.progress.time.monotonic", lambda: now)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    bar = WriteProgress(1000)
    for step in range(1000):
        now = step * 0.1
        bar.update(snapshot(step, source=step, total=1000, elapsed=now))
    bar.close(finished=True)
    lines = stream.getvalue().splitlines()
    assert "\r" not in stream.getvalue()
    assert 8 <= len(lines) <= 10
    assert all(line.startswith("dataset_rt: ") for line in lines)


def test_short_write_says_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(io.StringIO(), monkeypatch)
    assert text.count("\n") == 1
    assert "done: 5,000 samples" in text
    # The limit holds for the process, not for one call.
    assert drawn(io.StringIO(), monkeypatch) == ""


def test_stopped_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    bar = WriteProgress(3)
    bar.update(snapshot(10, source=1, total=3))
    bar.close(finished=False)
    assert "1/3 sources stopped" in stream.getvalue()


def test_no_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Terminal()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        bar = WriteProgress(1)
        bar.update(snapshot(1))
        bar.close(finished=True)


def test_broken_stderr_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Terminal):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    for stream in (Broken(), io.TextIOWrapper(io.BytesIO(), encoding="ascii")):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "_last_plain", float("-inf"))
        bar = WriteProgress(1)
        bar.update({**snapshot(1), "name": "\u6f22"})
        bar.close(finished=True)


def test_one_bar_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    first, second = WriteProgress(1), WriteProgress(1)
    second.update(snapshot(1))
    second.close(finished=True)
    assert stream.getvalue() == ""
    first.update(snapshot(1))
    first.close(finished=True)
    assert stream.getvalue().endswith("\n")


def test_no_monitor_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    drawn(Terminal(), monkeypatch)
    assert set(threading.enumerate()) == before


# Python from 3.12 on warns of forks beside threads, and Polars has some.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_lock_is_free_in_a_forked_child() -> None:
    lock = ForkLock()
    mine = lock.own()
    mine.acquire()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.own().acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0
    mine.release()
