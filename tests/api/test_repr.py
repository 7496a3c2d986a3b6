"""What objects look like when they are printed."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest
from dataset_rt import CacheInput, ReaderConfig, WriterConfig

from tests import support
from tests.support import QUIET, Source

if TYPE_CHECKING:
    from pathlib import Path

    from dataset_rt import CachedDataset, DatasetRuntime

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


@pytest.fixture
def dataset(make_cache: CacheFactory, make_dataset: DatasetFactory) -> CachedDataset:
    return make_dataset(
        [make_cache(support.numbered(1234), "<a&b>".replace("<", "(").replace(">", ")"))]
    )


@pytest.mark.rule("Every repr is short")
def test_reprs_fit_on_a_line(runtime: DatasetRuntime, dataset: CachedDataset) -> None:
    sample = next(iter(dataset))
    batch = dataset.rows[:700]
    objects: list[tuple[object, list[str]]] = [
        (runtime, ["DatasetRuntime", "2"]),
        (dataset, ["CachedDataset", "1,234", "weighted"]),
        (dataset.rows, ["1,234"]),
        (batch, ["SampleBatch", "700", "label"]),
        (iter(dataset), ["1234"]),
        (dataset.iter_batches(100), ["13"]),
        (sample, ["CachedSample", "sample_id=", "metadata="]),
        (ReaderConfig(seed=5), ["ReaderConfig", "seed=5"]),
        (WriterConfig(), ["WriterConfig", "prefetch_size=64"]),
        (CacheInput(b"x" * 10_000, {"a": 1}), ["CacheInput", "10000"]),
    ]
    for value, parts in objects:
        text = repr(value)
        assert "\n" not in text
        assert len(text) < 400, text
        for part in parts:
            assert part in text.replace("10,000", "10000").replace("1,234", "1,234"), (part, text)


@pytest.mark.rule("Every repr is short")
def test_long_payloads_are_cut(make_dataset: DatasetFactory) -> None:
    [sample] = make_dataset([CacheInput(b"y" * 100_000, {"a": 1})])
    text = repr(sample)
    assert len(text) < 300
    assert "100000" in text.replace(",", "")
    [short] = make_dataset([CacheInput(b"short", {"a": 1})])
    assert repr(short) == "CachedSample(data=b'short', metadata={'a': 1}, cache_id=0, sample_id=0)"


@pytest.mark.rule("Every repr is short", "Every result says why")
def test_reprs_of_results(runtime: DatasetRuntime, base: Path) -> None:
    outcome = runtime.from_cache_sources(
        [Source("a", support.plain(3)), Source("b", [])],
        base,
        reader_config=ReaderConfig(seed=0),
        writer_config=QUIET,
    )
    for value in (outcome, *outcome.results):
        assert "\n" not in repr(value)
    assert "written" in repr(outcome.results[0])
    assert "no samples" in repr(outcome.results[1])
    assert "CacheSourcesDatasetSuccess" in repr(outcome)
    assert "1 failed" in repr(outcome)
    nothing = runtime.from_cache_sources(
        [Source("c", [])], base, reader_config=ReaderConfig(seed=0), writer_config=QUIET
    )
    assert "CacheSourcesDatasetError" in repr(nothing)


@pytest.mark.rule("Every repr is short")
def test_html_of_a_dataset(dataset: CachedDataset) -> None:
    text = dataset._repr_html_()
    assert html.escape("(a&b)") in text
    assert "(a&b)" not in text
    for part in ("<table", "1,234", "label"):
        assert part in text


@pytest.mark.rule("Every repr is short")
def test_html_of_a_batch(make_dataset: DatasetFactory) -> None:
    samples = [CacheInput(b"xyz", {"<b>": "<script>"})]
    text = make_dataset(samples).rows[:]._repr_html_()
    assert "<table" in text
    assert "<script>" not in text
    assert "3" in text
