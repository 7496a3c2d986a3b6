"""The view for PyTorch. Runs where torch is installed."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from dataset_rt import CachedSample
from dataset_rt.errors import WorkerProcessError

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

    from tests.conftest import DatasetFactory

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.torch


class SampleTuple(NamedTuple):
    """What torch collates by itself."""

    data: bytes
    metadata: dict[str, Any]
    cache_id: int
    sample_id: int


@pytest.fixture
def dataset(make_dataset: DatasetFactory) -> CachedDataset:
    return make_dataset(support.numbered(40), shuffle=False)


@pytest.mark.rule("The torch view is sized and live")
def test_the_view(dataset: CachedDataset) -> None:
    view = dataset.to_torch_iterable_dataset()
    assert isinstance(view, data.IterableDataset)
    assert len(view) == len(dataset) == 40
    dataset.set_epoch_len(15)
    assert len(view) == 15
    assert support.rows(view) == list(range(15))
    assert support.rows(dataset) == list(range(15, 30))
    assert support.rows(view) == [i % 40 for i in range(30, 45)]
    dataset.update_metadata(dataset.get_metadata().tail(2))
    assert support.rows(view)[:3] == [38, 39, 38]


@pytest.mark.rule("The torch view is sized and live")
def test_loaders(dataset: CachedDataset) -> None:
    view = dataset.to_torch_iterable_dataset()
    single = data.DataLoader(view, batch_size=None, num_workers=0)
    assert len(single) == 40
    samples = list(single)
    assert [type(sample) for sample in samples] == [CachedSample] * 40
    assert support.rows(samples) == list(range(40))
    batched = data.DataLoader(view, batch_size=16, num_workers=0)
    assert len(batched) == 3
    assert [len(batch.data) for batch in batched] == [16, 16, 8]


@pytest.mark.rule("Samples collate like named tuples")
def test_collation(dataset: CachedDataset) -> None:
    view = dataset.to_torch_iterable_dataset()
    batch: Any = next(iter(data.DataLoader(view, batch_size=4)))
    # Not `type(batch) is`: its fields are now what collation made of them, not what the class says.
    assert [type(batch)] == [CachedSample]
    named = [SampleTuple(*dataset.rows[i]) for i in range(4)]
    expected = data.default_collate(named)
    assert batch.data == expected.data == tuple(support.payload(i) for i in range(4))
    assert torch.equal(batch.sample_id, torch.arange(4))
    assert torch.equal(batch.cache_id, torch.zeros(4, dtype=torch.int64))
    assert batch.metadata["text"] == ["n0", "n1", "n2", "n3"]
    assert torch.equal(batch.metadata["label"], torch.tensor([0, 1, 2, 0]))
    assert batch.metadata["score"].dtype == torch.float64
    nested = data.default_collate([{"sample": dataset.rows[i]} for i in (1, 2)])
    assert torch.equal(nested["sample"].sample_id, torch.tensor([1, 2]))


@pytest.mark.rule("Samples collate like named tuples")
def test_trees(dataset: CachedDataset) -> None:
    from torch.utils import _pytree as pytree  # noqa: PLC0415

    batch = data.default_collate([dataset.rows[1], dataset.rows[2]])
    moved = pytree.tree_map(lambda x: x + 1 if torch.is_tensor(x) else x, batch)
    assert type(moved) is CachedSample
    assert torch.equal(moved.sample_id, torch.tensor([2, 3]))
    assert moved.data == batch.data


@pytest.mark.rule("Loader workers are refused")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_are_refused(dataset: CachedDataset, method: str) -> None:
    view = dataset.to_torch_iterable_dataset()
    loader = data.DataLoader(view, batch_size=None, num_workers=1, multiprocessing_context=method)
    with pytest.raises(WorkerProcessError, match="num_workers=0"):
        next(iter(loader))
    assert len(list(view)) == 40


@pytest.mark.rule("dataset.rows is the map-style view")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_with_workers(dataset: CachedDataset, method: str) -> None:
    rows: Any = dataset.rows
    loader = data.DataLoader(
        rows, batch_size=7, num_workers=2, multiprocessing_context=method, shuffle=False
    )
    seen = torch.cat([batch.sample_id for batch in loader])
    assert torch.equal(seen, torch.arange(40))


@pytest.mark.rule("A dataset pickles with its state")
def test_views_pickle(dataset: CachedDataset) -> None:
    view = dataset.to_torch_iterable_dataset()
    list(view)
    again = pickle.loads(pickle.dumps(view))
    assert len(again) == 40
    assert support.rows(again) == support.rows(view)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        theirs = pool.apply(support.rows, (view,))
    assert theirs == support.rows(view)


@pytest.mark.rule("Torch is optional")
def test_the_name_in_the_package(dataset: CachedDataset) -> None:
    import dataset_rt  # noqa: PLC0415

    view = dataset.to_torch_iterable_dataset()
    assert isinstance(view, dataset_rt.SizedTorchIterableDataset)
    with pytest.raises(TypeError):
        dataset_rt.SizedTorchIterableDataset([1, 2])  # type: ignore[arg-type]
