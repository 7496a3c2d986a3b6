"""The order of samples, against integers computed from its definition."""

from __future__ import annotations

import collections
import random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import DatasetRuntime, ReaderConfig, ShardCompression, WriterConfig

from tests import oracle, support

if TYPE_CHECKING:
    from pathlib import Path

    from dataset_rt import CachedDataset

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core

CONFIGS: dict[str, dict[str, bool]] = {
    "ordered": {"shuffle": False},
    "weighted": {"shuffle": True},
    "permutation": {"shuffle": True, "replacement": False},
    "weighted_order": {"shuffle": True, "replacement": False},
}
SIZES = [1, 2, 5, 20, 21, 50, 333]
SEEDS = [0, 1, 2**32, 2**64 - 1]


def weights_of(count: int, kind: str) -> list[float]:
    """Deterministic weights: equal, of everyday size, or of every size."""
    generator = random.Random(count)
    if kind == "equal":
        return [0.1] * count
    if kind == "everyday":
        return [generator.random() + 0.01 for _ in range(count)]
    return [max(10.0 ** generator.uniform(-330, 308), 5e-324) for _ in range(count)]


def use(dataset: CachedDataset, weights: list[float], stream: int = 0) -> None:
    table = dataset.get_metadata()
    dataset.update_metadata(table.with_columns(weight=pl.Series(weights)), stream=stream)


@pytest.mark.rule(
    "The order depends on nothing else",
    "Ordered reading follows the table in a circle",
    "Shuffled reading draws by weight",
    "Without replacement every row comes once a pass",
    "Weights without replacement decide when",
)
@pytest.mark.parametrize("kind", ["equal", "everyday", "extreme"])
@pytest.mark.parametrize("mode", CONFIGS)
@pytest.mark.parametrize("count", SIZES)
def test_the_stream_is_the_defined_one(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mode: str, kind: str, count: int
) -> None:
    cache = make_cache(support.plain(count))
    weights = weights_of(count, kind)
    used = mode
    if mode in {"permutation", "weighted_order"}:
        equal = len(set(weights)) == 1
        used = "permutation" if equal else "weighted_order"
    for number, seed in enumerate(SEEDS):
        stream = 0 if number % 2 else 77 * number
        dataset = make_dataset(cache, seed=seed, **CONFIGS[mode])
        use(dataset, weights, stream)
        dataset.set_epoch_len(count + 3)
        got = support.rows(dataset) + support.rows(dataset)
        positions = range(2 * (count + 3))
        assert got == oracle.rows(used, seed, stream, weights, positions)


@pytest.mark.rule("Shuffled reading draws by weight", "A table restarts the stream")
def test_a_fresh_dataset_has_weights_of_one(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(100), seed=11)
    assert support.rows(dataset) == oracle.rows("weighted", 11, 0, [1.0] * 100, range(100))
    assert support.rows(dataset) == oracle.rows("weighted", 11, 0, [1.0] * 100, range(100, 200))


@pytest.mark.rule("The order depends on nothing else", "The position of a path is its cache_id")
@pytest.mark.parametrize("mode", CONFIGS)
def test_rows_of_an_edited_table_of_several_caches(
    make_cache: CacheFactory, make_dataset: DatasetFactory, mode: str
) -> None:
    caches = [make_cache(support.plain(count), f"c{count}") for count in (7, 1, 12)]
    dataset = make_dataset(caches, seed=3, **CONFIGS[mode])
    table = dataset.get_metadata()
    table = pl.concat([table.reverse(), table.head(5)]).filter(pl.col("label") != 1)
    weights = [1.0 if mode == "permutation" else 1.0 + i % 4 for i in range(table.height)]
    table = table.with_columns(weight=pl.Series(weights))
    dataset.update_metadata(table)
    pairs = list(zip(table["cache_id"], table["sample_id"], strict=True))
    expected = oracle.rows(mode, 3, 0, weights, range(table.height))
    assert support.ids(dataset) == [pairs[row] for row in expected]


@pytest.mark.rule("The order depends on nothing else")
@pytest.mark.parametrize("mode", CONFIGS)
def test_workers_prefetch_and_storage_do_not_matter(
    make_cache: CacheFactory, tmp_path: Path, mode: str
) -> None:
    samples = support.numbered(700, 100)
    packed = WriterConfig(
        show_progress=False,
        max_shard_bytes=3000,
        shard_compression=ShardCompression(algo="lz4"),
    )
    caches = [make_cache(samples, "one"), make_cache(samples, "many", packed)]
    streams = set()
    for workers, prefetch, cache, mapped in [
        (1, 1, 0, True),
        (2, 64, 1, True),
        (7, 4096, 0, False),
        (3, 2, 1, False),
    ]:
        config = ReaderConfig(seed=5, prefetch_size=prefetch, use_mmap=mapped, **CONFIGS[mode])
        dataset = DatasetRuntime(num_workers=workers).cached_dataset(
            [caches[cache]], reader_config=config
        )
        weights = [1.0 if mode == "permutation" else 1.0 + i % 3 for i in range(700)]
        use(dataset, weights)
        dataset.set_epoch_len(2000)
        streams.add(tuple(support.rows(dataset)))
        use(dataset, weights)
        batches = [i for batch in dataset.iter_batches(33) for i in batch.sample_id]
        streams.add(tuple(batches))
    assert len(streams) == 1
    [stream] = streams
    assert list(stream) == oracle.rows(mode, 5, 0, weights, range(2000))


@pytest.mark.rule("Without replacement every row comes once a pass")
@pytest.mark.parametrize("count", [1, 13, 20, 21, 100, 1000])
def test_passes_are_permutations(make_dataset: DatasetFactory, count: int) -> None:
    dataset = make_dataset(support.plain(count), seed=1, replacement=False)
    passes = [support.rows(dataset) for _ in range(4)]
    for order in passes:
        assert sorted(order) == list(range(count))
    if count > 12:
        assert len({tuple(order) for order in passes}) == 4


@pytest.mark.rule("Without replacement every row comes once a pass")
def test_repeated_rows_come_as_often(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(support.plain(10), seed=1, replacement=False)
    table = dataset.get_metadata()
    dataset.update_metadata(pl.concat([table, table.filter(pl.col("sample_id") == 3)]))
    counts = collections.Counter(support.rows(dataset))
    assert counts == {i: 2 if i == 3 else 1 for i in range(10)}


@pytest.mark.rule("Weights without replacement decide when")
def test_heavy_rows_come_early(make_dataset: DatasetFactory) -> None:
    count = 200
    dataset = make_dataset(support.plain(count), seed=8, replacement=False)
    use(dataset, [1000.0 if i < 20 else 1.0 for i in range(count)])
    for _ in range(3):
        order = support.rows(dataset)
        assert sorted(order) == list(range(count))
        # The chance that a light row slips into this head so often is below 1e-6.
        assert sum(i < 20 for i in order[:30]) >= 15


@pytest.mark.rule("Shuffled reading draws by weight", "Extreme weights keep their ratios")
@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([1.0, 2.0, 5.0], [0.125, 0.25, 0.625]),
        ([1e308] * 3, [1 / 3] * 3),
        ([5e-324] * 3, [1 / 3] * 3),
        ([5e-324, 1e-323, 1.5e-323], [1 / 6, 1 / 3, 1 / 2]),
        ([1e308, 5e-324], [1.0, 0.0]),
        ([1e-300, 1.0, 1.0], [0.0, 0.5, 0.5]),
        ([2.0, 2.0, 4.0], [0.25, 0.25, 0.5]),
    ],
    ids=repr,
)
def test_frequencies_follow_weights(
    make_dataset: DatasetFactory, weights: list[float], shares: list[float]
) -> None:
    draws = 20_000
    dataset = make_dataset(support.plain(len(weights)), seed=6)
    use(dataset, weights)
    dataset.set_epoch_len(draws)
    counts = collections.Counter(support.rows(dataset))
    for row, share in enumerate(shares):
        # Five standard deviations; the draws are the same in every run.
        assert abs(counts[row] - share * draws) <= 5 * (draws * share * (1 - share)) ** 0.5


@pytest.mark.rule("Shuffled reading draws by weight", "Extreme weights keep their ratios")
@pytest.mark.parametrize("last", [0.1, 0.2])
def test_ten_million_equal_weights(make_dataset: DatasetFactory, last: float) -> None:
    # Summed one after the other these weights are off by more than one of them.
    rows, draws = 10_000_000, 20_000
    dataset = make_dataset(support.plain(10), seed=6)
    table = dataset.get_metadata()[pl.int_range(rows, eager=True) % 10]
    weight = pl.when(pl.int_range(rows) == rows - 1).then(last).otherwise(0.1)
    dataset.update_metadata(table.with_columns(weight=weight))
    dataset.set_epoch_len(draws)
    counts = collections.Counter(support.rows(dataset))
    assert sorted(counts) == list(range(10))
    for count in counts.values():
        assert abs(count - draws / 10) <= 5 * (draws * 0.1 * 0.9) ** 0.5


@pytest.mark.rule("Extreme weights keep their ratios")
@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Float32])
def test_types_of_weights_do_not_matter(make_dataset: DatasetFactory, dtype: Any) -> None:
    numbers = [1, 2, 3, 4, 100]
    dataset = make_dataset(support.plain(5), seed=6)
    table = dataset.get_metadata().with_columns(weight=pl.Series(numbers, dtype=dtype))
    dataset.update_metadata(table)
    dataset.set_epoch_len(300)
    expected = oracle.rows("weighted", 6, 0, [float(number) for number in numbers], range(300))
    assert support.rows(dataset) == expected


@pytest.mark.rule("Seeds are integers of 64 bits")
def test_seeds_give_different_orders(
    make_cache: CacheFactory, make_dataset: DatasetFactory
) -> None:
    cache = make_cache(support.plain(100))
    seeds = [0, 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    orders = {seed: tuple(support.rows(make_dataset(cache, seed=seed))) for seed in seeds}
    assert len(set(orders.values())) == len(seeds)
