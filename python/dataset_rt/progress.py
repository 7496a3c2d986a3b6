"""Progress of a write on stderr, drawn from the counters of the core.

A terminal gets one line that tqdm redraws, a notebook tqdm's own bar, anything else plain lines:
at most one in ten seconds. Nothing is written when there is no stderr, and nothing here can make a
write fail.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataset_rt._locks import ForkLock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

PLAIN_INTERVAL: Final = 10.0
"""Seconds between two plain lines of a process."""

_NAME_LIMIT: Final = 24

# Two bars at once would draw over each other: the second write of a process has none.
_bar_lock = ForkLock()
_last_plain = float("-inf")


class WriteProgress:
    """Draws the progress of one call.

    Args:
        total: Number of sources.
    """

    def __init__(self, total: int) -> None:
        self._state = _State(total)
        self._owner = _bar_lock.own().acquire(blocking=False)
        self._display: _Display | None = _display() if self._owner else None

    def update(self, snapshot: Mapping[str, Any]) -> None:
        """Takes a snapshot of the counters and draws it."""
        self._state.take(snapshot)
        self._draw(last=False)

    def close(self, *, finished: bool) -> None:
        """Draws the last state and ends the line."""
        try:
            self._state.finished = finished
            self._draw(last=True)
            if self._display is not None:
                self._display.close()
        except _BROKEN:
            self._display = None
        finally:
            if self._owner:
                self._owner = False
                _bar_lock.own().release()

    def _draw(self, *, last: bool) -> None:
        if self._display is None:
            return
        try:
            self._display.draw(self._state, last=last)
        except _BROKEN:
            # stderr went away, or can't take the text: the write matters more.
            self._display = None


_BROKEN = (OSError, ValueError, AttributeError, ImportError)


class _State:
    """The counters, and the rates of the active source."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.finished: bool | None = None
        self.started = time.monotonic()
        self.elapsed = 0.0
        self.name = ""
        self.samples = 0
        self.payload_bytes = 0
        self._source = -1
        # What was committed, and when, as the active source began.
        self._base = (0, 0, 0.0)

    def take(self, snapshot: Mapping[str, Any]) -> None:
        source = int(snapshot["source"])
        if source != self._source:
            # It began somewhere between the last snapshot and this one.
            self._base = (self.samples, self.payload_bytes, self.elapsed)
            self._source = source
        self.name = str(snapshot["name"])
        self.samples = int(snapshot["samples"])
        self.payload_bytes = int(snapshot["payload_bytes"])
        self.done = int(snapshot["sources_done"])
        self.total = int(snapshot["sources_total"])
        self.elapsed = float(snapshot["elapsed"])

    def active(self) -> str:
        """Committed samples of the active source, and its rates."""
        samples, size, start = self._base
        seconds = max(self.elapsed - start, 1e-3)
        samples = self.samples - samples
        size = self.payload_bytes - size
        return (
            f"{samples:,} samples, {samples / seconds:,.0f} samples/s, "
            f"{size / seconds / 1e6:,.1f} MB/s"
        )

    def eta(self) -> str:
        """Time left for the sources to come, from wall time and completed sources."""
        if not self.done or self.done >= self.total:
            return "ETA ?"
        return f"ETA {_clock(self.elapsed / self.done * (self.total - self.done))}"

    def line(self) -> str:
        """The state as one line, the important parts first."""
        if self.finished is not None:
            return self.summary()
        if self.total <= 1:
            return f"{_short(self.name)}: {self.active()}, {_clock(self.elapsed)}"
        sources = f"[{self.done}/{self.total} sources, {self.eta()}]"
        return f"{sources} {_short(self.name)}: {self.active()}"

    def summary(self) -> str:
        seconds = time.monotonic() - self.started
        if self.finished:
            what = _short(self.name) if self.total == 1 and self.name else _sources(self.total)
            word = "done"
        else:
            what, word = f"{self.done}/{self.total} sources", "stopped"
        if not self.samples:
            # All of them were reused, or failed: a rate of nothing says nothing.
            return f"{what} {word}: nothing written, {_clock(seconds)}"
        rate = max(seconds, 1e-3)
        return (
            f"{what} {word}: {self.samples:,} samples, {self.samples / rate:,.0f} samples/s, "
            f"{self.payload_bytes / rate / 1e6:,.1f} MB/s, {_clock(seconds)}"
        )


class _Display(Protocol):
    def draw(self, state: _State, *, last: bool) -> None: ...
    def close(self) -> None: ...


class _Line:
    """One line of a terminal, redrawn by tqdm."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Any = None

    def draw(self, state: _State, *, last: bool) -> None:
        if self._bar is None:
            # NO_COLOR: a bar below another one moves the cursor by escape sequences.
            position = 0 if os.environ.get("NO_COLOR") else None
            self._bar = _bar_class()(
                file=self._stream, bar_format="{desc}", leave=True, position=position
            )
        self._bar.set_description_str(_fit(state.line(), self._stream), refresh=not last)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Notebook:
    """The bar of tqdm in a notebook: one step a source."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Any = None

    def draw(self, state: _State, *, last: bool) -> None:
        if self._bar is None:
            self._bar = _bar_class()(total=state.total, unit="source", file=self._stream)
        self._bar.n = state.done
        self._bar.set_description_str(_short(state.name), refresh=False)
        self._bar.set_postfix_str(state.active(), refresh=not last)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Plain:
    """Whole lines for log files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def draw(self, state: _State, *, last: bool) -> None:
        global _last_plain  # noqa: PLW0603 - the limit holds for the process
        now = time.monotonic()
        if now - _last_plain < PLAIN_INTERVAL:
            return
        # A short write says one line, at its end.
        if not last and now - state.started < PLAIN_INTERVAL:
            return
        _last_plain = now
        text = f"dataset_rt: {state.line()}"
        fits = _fit if _is_terminal(self._stream) else _encodable
        self._stream.write(fits(text, self._stream) + "\n")
        self._stream.flush()

    def close(self) -> None:
        pass


def _display() -> _Display | None:
    stream = sys.stderr
    if stream is None or getattr(stream, "closed", False):
        return None
    if _in_notebook():
        return _Notebook(stream)
    if _is_terminal(stream) and os.environ.get("TERM") != "dumb":
        return _Line(stream)
    return _Plain(stream)


def _bar_class() -> Any:  # noqa: ANN401 - tqdm is untyped
    from tqdm.auto import tqdm  # noqa: PLC0415 - costs time, and few processes draw

    # The subclass keeps tqdm from starting its monitor thread and leaves the user's bars alone.
    return type("_Bar", (tqdm,), {"monitor_interval": 0})


def _in_notebook() -> bool:
    """Whether an IPython kernel runs us; it has no terminal and draws widgets."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False


def _columns(stream: TextIO) -> int:
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, ValueError, OSError):
        columns = 0
    return columns or shutil.get_terminal_size().columns or 80


def _fit(text: str, stream: TextIO) -> str:
    """Cuts a text to the width of the terminal; wide characters count twice."""
    from tqdm.utils import disp_trim  # noqa: PLC0415 - imported with the first bar

    trimmed: str = disp_trim(_encodable(text, stream), _columns(stream) - 1)
    return trimmed


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _short(name: str) -> str:
    """A long name must not push the figures out of the line."""
    return name if len(name) <= _NAME_LIMIT else f"{name[: _NAME_LIMIT - 3]}..."


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _sources(count: int) -> str:
    return "1 source" if count == 1 else f"{count} sources"
