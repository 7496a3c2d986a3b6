"""What processes of a pool do: functions that another process can import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

_kept: list[CachedDataset] = []


def keep(dataset: CachedDataset) -> None:
    """Keeps a dataset for the jobs of this process."""
    _kept[:] = [dataset]


def work(_: int) -> list[int]:
    """Rows of the first window; the table is updated, which starts the stream again."""
    [dataset] = _kept
    table = dataset.get_metadata()
    dataset.update_metadata(table)
    assert dataset.get_metadata().height == table.height
    return support.rows(dataset)


def same(value: Any) -> Any:
    """Gives back what arrived."""
    return value
