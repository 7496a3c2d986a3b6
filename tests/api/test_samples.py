"""CachedSample: like a named tuple of four fields."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CachedSample

from tests import support

if TYPE_CHECKING:
    from dataset_rt import CachedDataset

    from tests.conftest import DatasetFactory

pytestmark = pytest.mark.core

RULE = "A sample behaves like a named tuple"


@pytest.fixture
def dataset(make_dataset: DatasetFactory) -> CachedDataset:
    return make_dataset(support.numbered(3), shuffle=False)


@pytest.fixture
def sample(dataset: CachedDataset) -> CachedSample:
    return dataset.rows[1]


EXPECTED: tuple[Any, ...] = (support.payload(1), support.metadata(1), 0, 1)


@pytest.mark.rule("A sample behaves like a named tuple")
def test_unpacking_and_indexing(sample: CachedSample) -> None:
    data, metadata, cache_id, sample_id = sample
    assert (data, metadata, cache_id, sample_id) == EXPECTED
    assert (len(sample), tuple(sample), list(sample)) == (4, EXPECTED, list(EXPECTED))
    assert (sample[0], sample[-1], sample[1:3]) == (EXPECTED[0], 1, EXPECTED[1:3])
    with pytest.raises(IndexError):
        sample[4]
    assert [type(value) for value in sample] == [bytes, dict, int, int]
    assert sample._fields == CachedSample.__match_args__ == (
        "data", "metadata", "cache_id", "sample_id",
    )  # fmt: skip
    match sample:
        case CachedSample(data, metadata, cache_id, sample_id):
            assert (data, metadata, cache_id, sample_id) == EXPECTED
        case _:
            pytest.fail("a sample matches its class")


@pytest.mark.rule("A sample behaves like a named tuple")
def test_named_tuple_methods(sample: CachedSample) -> None:
    assert sample._asdict() == dict(zip(sample._fields, EXPECTED, strict=True))
    other = sample._replace(data=b"new", sample_id=9)
    assert tuple(other) == (b"new", EXPECTED[1], 0, 9)
    assert tuple(sample) == EXPECTED
    with pytest.raises((TypeError, ValueError)):
        sample._replace(nothing=1)
    assert CachedSample._make(EXPECTED) == sample
    with pytest.raises(TypeError):
        CachedSample._make(EXPECTED[:3])
    assert (sample.count(0), sample.index(0)) == (1, 2)
    assert EXPECTED[0] in sample
    assert b"else" not in sample


@pytest.mark.rule("A sample behaves like a named tuple")
def test_comparison(dataset: CachedDataset, sample: CachedSample) -> None:
    same, other = dataset.get_item(0, 1), dataset.get_item(0, 2)
    assert sample == same
    assert sample == EXPECTED
    assert sample == EXPECTED
    assert sample != other
    assert sample != EXPECTED[:3]
    assert sample != "else"
    assert (sample < other) == (tuple(other) > EXPECTED)
    assert sample <= same
    with pytest.raises(TypeError):
        hash(sample)
    made = CachedSample(b"a", (), 0, 1)
    assert hash(made) == hash((b"a", (), 0, 1))


@pytest.mark.rule("A sample behaves like a named tuple")
def test_samples_are_frozen(sample: CachedSample) -> None:
    changed: Any = sample
    for name in ("data", "metadata", "cache_id", "sample_id", "new"):
        with pytest.raises(AttributeError):
            setattr(changed, name, 1)
    assert sample.metadata is sample.metadata


@pytest.mark.rule("A sample behaves like a named tuple")
def test_samples_pickle_and_copy(sample: CachedSample) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(sample, protocol))
        assert type(again) is CachedSample
        assert again == sample
    assert copy.copy(sample) == sample
    deep = copy.deepcopy(sample)
    assert deep == sample
    deep.metadata["label"] = 5
    assert sample.metadata == EXPECTED[1]


@pytest.mark.rule("A sample behaves like a named tuple", "Edited values stay in the table")
def test_metadata_of_a_sample_is_its_own(dataset: CachedDataset, sample: CachedSample) -> None:
    sample.metadata["label"] = 99
    assert dataset.rows[1].metadata == EXPECTED[1]
    assert list(dataset)[1].metadata == EXPECTED[1]
