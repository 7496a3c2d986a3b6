"""Runs the conformance command of each independent reader in `spec/readers`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ["python", "go", "typescript"]


def command(language: str) -> list[str] | None:
    """The command of a reader, None where `make cross` hasn't built it."""
    if language == "python":
        return [sys.executable, "-m", "dataset_rt_reader"]
    argv = shlex.split(os.environ.get(f"READER_{language.upper()}", ""))
    return argv if argv and Path(argv[-1]).exists() else None


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "spec/readers/python")}


class Reader:
    """One process that answers folders by documents, one after the other."""

    def __init__(self, command: list[str], *, all_rows: bool = False) -> None:
        self.command = command
        arguments = [*command, "--batch", *(["--all-rows"] if all_rows else [])]
        self._process = subprocess.Popen(  # noqa: S603  (a command of our own)
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        code = self._process.wait(timeout=30)
        assert code == 0 or kind is not None, self.command

    def ask(self, folder: Path) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(os.fsencode(folder) + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self.command} ended"
        return json.loads(line)

    def document(self, folder: Path) -> Any:
        self.ask(folder)
        return self.answer()


def order(command: list[str], folder: Path, request: dict[str, str]) -> list[int]:
    """The rows of a window, by the command of a reader."""
    arguments = [*command, str(folder), "--order", json.dumps(request)]
    done = subprocess.run(  # noqa: S603  (a command of our own)
        arguments, env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    document = json.loads(done.stdout)
    assert document["type"] == "uint64"
    return [int(text) for text in document["values"]]


def commands(languages: Iterable[str] = LANGUAGES) -> dict[str, list[str]]:
    """The commands that there are."""
    found = {language: command(language) for language in languages}
    return {language: argv for language, argv in found.items() if argv is not None}
