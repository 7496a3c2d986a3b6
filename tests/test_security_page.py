"""What SECURITY.md names as a test is one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "SECURITY.md"


def quoted() -> list[str]:
    """Everything in backticks, in the table of what is not trusted."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| " in line]
    cells = [line.split(" | ")[-1] for line in lines if line.count(" | ") == 2]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def guards() -> list[tuple[str, str]]:
    """Function and file of each guard in the table of guards."""
    return re.findall(r"\| `(\w+)` in `([^`]+)` \| `", PAGE.read_text(encoding="utf-8"))


def test_named_guards_are_there() -> None:
    named = guards()
    assert len(named) > 30
    for function, path in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"\bfn {function}\b", source), (function, path)


def test_named_tests_are_there() -> None:
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "crates").rglob("*.rs")]
    known: set[str] = set()
    for source in sources:
        known.update(re.findall(r"\b(?:def|fn) (\w+)", source.read_text(encoding="utf-8")))
    names = quoted()
    assert len(names) > 30
    folder = ""
    missing = []
    for name in names:
        if "/" in name:
            folder = name.rpartition("/")[0]
            if not list(ROOT.glob(name)):
                missing.append(name)
        elif "*" in name:
            # In the folder of the one named before it.
            if not list((ROOT / folder).glob(name)):
                missing.append(name)
        elif name not in known:
            missing.append(name)
    assert missing == []
