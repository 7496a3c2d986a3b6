"""Processes that wait for a word and answer with a line, so that many start something at once."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from tests import support

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self


def is_long() -> bool:
    """Whether the long forms were asked for."""
    return "DATASET_RT_LONG" in os.environ


class Group:
    """Processes of one program, each with its number as last argument."""

    def __init__(
        self, code: str, numbers: Sequence[int], *arguments: object, changes: Mapping[str, str] = {}
    ) -> None:
        self.processes = [
            subprocess.Popen(  # noqa: S603 - our own interpreter
                [*support.script(code), *map(str, arguments), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=support.environment(**changes),
            )
            for number in numbers
        ]

    def __enter__(self) -> Self:
        assert self.hear() == ["ready"] * len(self.processes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.processes:
            if kind is not None:
                process.kill()
            process.communicate()
        assert kind is not None or [process.returncode for process in self.processes] == [0] * len(
            self.processes
        )

    def say(self, word: object) -> None:
        """Tells all of them the same."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{word}\n")
            process.stdin.flush()

    def hear(self) -> list[Any]:
        """The next answer of each."""
        answers = []
        for process in self.processes:
            assert process.stdout is not None
            answers.append(json.loads(process.stdout.readline()))
        return answers

    def ask(self, word: object) -> list[Any]:
        """Tells all of them the same at once, and waits for the answers."""
        self.say(word)
        return self.hear()
