"""A lock that a forked child can take."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class ForkLock:
    """A mutual exclusion lock that is free in a forked child.

    Another thread of the parent may hold the lock at the fork. That thread doesn't exist in the
    child, so nobody would ever release an ordinary lock there.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Takes the lock; without `blocking` returns False when another thread has it."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
        return self._lock.acquire(blocking=blocking)

    def release(self) -> None:
        """Gives the lock back."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
