"""The adapter for PyTorch. Importing this module imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataset_rt._native import CachedSample
from dataset_rt.errors import ArgumentTypeError, WorkerProcessError

try:
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise ImportError(
        "the torch adapter needs PyTorch, which is not installed: see https://pytorch.org, or "
        "iterate the dataset itself"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dataset_rt.dataset import CachedDataset

__all__ = ["SizedTorchIterableDataset"]


class SizedTorchIterableDataset(IterableDataset[CachedSample]):
    """A live view of a `CachedDataset` for `torch.utils.data.DataLoader`.

    Each `iter` takes the dataset's next window, and `len` is the dataset's. Samples collate like
    named tuples and are nodes of torch's pytree. Use the loader with `num_workers=0`: the
    runtime's own threads read in parallel, and worker processes would each read everything.

    Args:
        dataset: The dataset to view.
    """

    def __init__(self, dataset: CachedDataset) -> None:
        from dataset_rt.dataset import CachedDataset as Dataset  # noqa: PLC0415 - it imports us

        if not isinstance(dataset, Dataset):
            raise ArgumentTypeError(
                f"a torch view needs a CachedDataset, found {type(dataset).__name__}",
                argument="dataset",
            )
        super().__init__()
        self.dataset = dataset

    def __iter__(self) -> Iterator[CachedSample]:
        """Takes the next window of the dataset.

        Raises:
            WorkerProcessError: In a worker process of a DataLoader, before anything is read.
        """
        if get_worker_info() is not None:
            raise WorkerProcessError(
                "DatasetRT's torch view can't be read in worker processes: each would read every "
                "sample. Use DataLoader(..., num_workers=0) and give the threads to "
                "DatasetRuntime(num_workers=N), or load dataset.rows as a map-style dataset"
            )
        return iter(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"SizedTorchIterableDataset({self.dataset!r})"


def _collate_samples(
    batch: Sequence[CachedSample],
    *,
    collate_fn_map: dict[Any, Callable[..., Any]] | None = None,
) -> CachedSample:
    """Collates field by field, as torch does for a named tuple."""
    from torch.utils.data._utils.collate import collate  # noqa: PLC0415 - torch is there

    columns = zip(*batch, strict=True)
    return CachedSample(*(collate(column, collate_fn_map=collate_fn_map) for column in columns))


def _flatten(sample: CachedSample) -> tuple[list[Any], None]:
    return list(sample), None


def _unflatten(fields: Any, _context: None) -> CachedSample:  # noqa: ANN401 - any iterable
    return CachedSample(*fields)


def _register() -> None:
    from torch.utils import _pytree  # noqa: PLC0415 - torch is there
    from torch.utils.data._utils.collate import default_collate_fn_map  # noqa: PLC0415 - same

    default_collate_fn_map[CachedSample] = _collate_samples
    if CachedSample not in _pytree.SUPPORTED_NODES:
        _pytree.register_pytree_node(
            CachedSample,
            _flatten,
            _unflatten,
            serialized_type_name="dataset_rt.CachedSample",
        )


_register()
