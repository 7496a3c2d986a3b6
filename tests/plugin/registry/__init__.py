"""One row a public expression: what the contract tests run, and what it must give.

A new family is one module here with its `ROWS`, named in `FAMILIES`.
"""

from __future__ import annotations

from tests.plugin.registry import draws, duplicates, labels, payloads, splits, values, weights
from tests.plugin.registry.row import Example, Row

__all__ = ["FAMILIES", "ROWS", "Example", "Row"]

FAMILIES = [weights, labels, values, splits, draws, duplicates, payloads]

ROWS: list[Row] = [row for family in FAMILIES for row in family.ROWS]
