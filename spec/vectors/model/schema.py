"""Fields, columns and the values that stand in the slots of nulls."""

from dataclasses import dataclass

TYPES = {"bool": 1, "int64": 2, "float64": 3, "utf8": 4}
EMPTY = {"bool": False, "int64": 0, "float64": 0.0, "utf8": ""}


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    nullable: bool = False
    description: str | None = None


@dataclass(frozen=True)
class Bits:
    """A binary64 by its pattern, for NaNs whose payload must not pass through a float."""

    bits: int
