"""A lock that a forked child can take."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """A mutual exclusion lock that is free in a forked child.

    Another thread of the parent may hold the lock at the fork. That thread doesn't exist in the
    child, so nobody would ever release an ordinary lock there.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def own(self) -> threading.Lock:
        """The lock of this process, for a `with` statement.

        That statement must take the interpreter's own lock: with an `__enter__` written in Python,
        an interrupt could come between taking the lock and entering the block.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
        return self._lock
