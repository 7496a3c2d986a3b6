"""Runs the Python examples of these pages, each page in a folder and a process of its own.

    python docs/run_snippets.py [page ...]

Pages that need a package that is not installed are named and left out.
"""

# ruff: noqa: INP001, T201 - a script that prints

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = Path(__file__).parent
OPTIONAL = ("numpy", "torch")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program(page: Path) -> str:
    """The page's examples as one program; blank lines keep the page's line numbers."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def missing(code: str) -> list[str]:
    """Optional packages that the examples import and that are not there."""
    wanted = [
        name for name in OPTIONAL if re.search(rf"^(import|from) {name}\b", code, re.MULTILINE)
    ]
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
    return [
        name
        for name in wanted
        if subprocess.run([sys.executable, "-c", probe, name], check=False).returncode  # noqa: S603
    ]


def main(pages: list[Path]) -> int:
    """Runs them all and returns the number of pages that failed."""
    failed = 0
    for page in pages:
        code = program(page)
        if not code.strip():
            continue
        shown = page.relative_to(PAGES) if page.is_relative_to(PAGES) else page
        absent = missing(code)
        if absent:
            print(f"skipped {shown}: needs {', '.join(absent)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "example.py")
            script.write_text(code, encoding="utf-8")
            command = [sys.executable, str(script)]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            failed += 1
            print(f"FAILED  {shown}\n{done.stdout}{done.stderr}")
        else:
            print(f"passed  {shown}")
    return failed


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or sorted(PAGES.rglob("*.md"))
    sys.exit(main(chosen))
