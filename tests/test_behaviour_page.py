"""Each heading of the page is proven by a test, and no test names a rule that isn't there."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "behaviour.md"


def headings() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("### ") for line in lines if line.startswith("### ")]


def is_rule(call: ast.Call) -> bool:
    """Whether a call is `pytest.mark.rule(...)`."""
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "rule"
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )


def rules_named_in(file: Path) -> list[str]:
    """Headings in markers of tests; read as text, so that nothing is skipped."""
    named = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if not node.name.startswith(("test", "Test")):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and is_rule(decorator):
                for argument in decorator.args:
                    assert isinstance(argument, ast.Constant), f"{file}: {ast.unparse(decorator)}"
                    named.append(str(argument.value))
    return named


def all_named() -> dict[str, list[str]]:
    files = sorted(TESTS.rglob("test_*.py"))
    return {str(file.relative_to(TESTS)): rules_named_in(file) for file in files}


def test_headings_are_unique() -> None:
    assert [heading for heading, count in Counter(headings()).items() if count > 1] == []


def test_every_rule_has_a_test() -> None:
    named = {heading for rules in all_named().values() for heading in rules}
    assert [heading for heading in headings() if heading not in named] == []


def test_every_marker_names_a_rule() -> None:
    known = set(headings())
    unknown = {
        file: [rule for rule in rules if rule not in known] for file, rules in all_named().items()
    }
    assert {file: rules for file, rules in unknown.items() if rules} == {}
