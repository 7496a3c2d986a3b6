"""Payloads: what counts as bytes, and that every byte comes back."""

from __future__ import annotations

import array
import itertools
import mmap
import pickle
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CacheInput, ShardCompression, WriterConfig
from dataset_rt.errors import SampleTypeError

from tests import support
from tests.support import QUIET, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dataset_rt import CachedDataset, DatasetRuntime

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core

LZ4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))


def payloads(dataset: CachedDataset) -> list[bytes]:
    """All payloads in the order of the table."""
    return [sample.data for sample in dataset]


def of(values: list[Any]) -> list[CacheInput]:
    return [CacheInput(value, {"i": i}) for i, value in enumerate(values)]


@pytest.mark.rule("Payloads are bytes")
def test_all_kinds_of_buffers(make_dataset: DatasetFactory) -> None:
    content = bytes(range(64))
    square = memoryview(content).cast("B", (8, 8))

    class Bytes(bytes):
        pass

    values = [
        content,
        bytearray(content),
        memoryview(content),
        memoryview(content)[::2],
        memoryview(content)[::-1],
        square,
        memoryview(bytearray(content)).toreadonly(),
        array.array("B", content),
        array.array("b", content),
        memoryview(content).cast("c"),
        Bytes(content),
    ]
    dataset = make_dataset(of(values), shuffle=False)
    expected = [content] * len(values)
    expected[3], expected[4] = content[::2], content[::-1]
    read = payloads(dataset)
    assert read == expected
    assert {type(data) for data in read} == {bytes}


@pytest.mark.rule("Payloads are bytes")
def test_a_map_of_a_file(make_dataset: DatasetFactory, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"mapped bytes")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        dataset = make_dataset(of([mapped]))
    assert payloads(dataset) == [b"mapped bytes"]


@pytest.mark.rule("Payloads are bytes")
def test_numpy_arrays_by_their_bytes_in_c_order(make_dataset: DatasetFactory) -> None:
    np = pytest.importorskip("numpy")
    grid = np.arange(12, dtype="<i4").reshape(3, 4)
    values = [
        grid,
        grid.T,
        np.asfortranarray(grid),
        grid[:, ::2],
        np.float64(1.5) * np.ones(3),
        np.array(7, dtype=np.uint8),
        np.zeros((0, 3)),
        np.array([True, False]),
    ]
    dataset = make_dataset(of(values), shuffle=False)
    assert payloads(dataset) == [value.tobytes() for value in values]


@pytest.mark.rule("What is no buffer of bytes is no payload", "Errors say which sample")
@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("text", "encode"),
        (5, "serialise"),
        ([1, 2], "serialise"),
        (None, "serialise"),
        ({"a": 1}, "serialise"),
        (array.array("i", [1, 2]), "tobytes"),
        (memoryview(array.array("d", [1.0])), "tobytes"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("before", [0, 700])
def test_other_payloads_are_refused(
    runtime: DatasetRuntime, base: Path, value: Any, hint: str, before: int
) -> None:
    samples = [CacheInput(b"p", {}) for _ in range(before)] + [CacheInput(value, {})]
    result = support.fail(runtime.write_cache(Source("s", samples), base, writer_config=QUIET))
    error = support.cause_of(result)
    assert isinstance(error, SampleTypeError)
    assert (error.source, error.sample, error.field) == ("s", before, "data")
    assert hint in str(error)
    assert support.leftovers(base) == []


@pytest.mark.rule("What is no buffer of bytes is no payload")
def test_arrays_of_objects_are_refused(runtime: DatasetRuntime, base: Path) -> None:
    np = pytest.importorskip("numpy")
    samples = of([np.array([{}, []], dtype=object)])
    result = support.fail(runtime.write_cache(Source("s", samples), base, writer_config=QUIET))
    assert isinstance(support.cause_of(result), SampleTypeError)


@pytest.mark.rule("Mutable payloads are copied")
@pytest.mark.parametrize("kind", ["bytearray", "memoryview"])
def test_one_buffer_again_and_again(
    make_cache: CacheFactory, make_dataset: DatasetFactory, kind: str
) -> None:
    def reusing() -> Iterator[CacheInput]:
        buffer = bytearray(32)
        for i in range(2000):
            buffer[:] = i.to_bytes(32, "little")
            yield CacheInput(buffer if kind == "bytearray" else memoryview(buffer), {})

    dataset = make_dataset(make_cache(reusing()), shuffle=False)
    assert payloads(dataset) == [i.to_bytes(32, "little") for i in range(2000)]


@pytest.mark.rule("Empty payloads are samples")
@pytest.mark.parametrize("config", [QUIET, LZ4], ids=["none", "lz4"])
@pytest.mark.parametrize("pattern", ["only", "first", "last", "second", "many", "shards"])
def test_empty_payloads(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: WriterConfig, pattern: str
) -> None:
    contents = {
        "only": [b""],
        "first": [b"", b"x", b"y"],
        "last": [b"x", b""],
        "second": [b"", b"x"] * 500,
        "many": [b""] * 10_000,
        "shards": [b"", b"x" * 500, b"", b"", b"y" * 500, b""],
    }[pattern]
    kinds: list[Any] = [bytes, bytearray, memoryview]
    samples = [CacheInput(kinds[i % 3](data), {"i": i}) for i, data in enumerate(contents)]
    config = config.model_copy(update={"max_shard_bytes": 300 if pattern == "shards" else 2**20})
    cache = make_cache(samples, "s", config)
    for mapped in (True, False):
        dataset = make_dataset(cache, shuffle=False, validate_cache=True, use_mmap=mapped)
        assert [(sample.data, sample.metadata["i"]) for sample in dataset] == [
            (data, i) for i, data in enumerate(contents)
        ]
    table = dataset.get_metadata()
    empty = [i for i, data in enumerate(contents) if not data]
    shuffled = make_dataset(cache, seed=3)
    shuffled.update_metadata(table[empty])
    assert {sample.data for sample in shuffled} == {b""}
    batch = next(shuffled.iter_batches(len(empty)))
    assert batch.data == [b""] * len(empty)


@pytest.mark.rule("Empty payloads are samples", "A batch in four forms")
@pytest.mark.parametrize("config", [QUIET, LZ4], ids=["none", "lz4"])
@pytest.mark.parametrize("replacement", [True, False])
def test_empty_payloads_in_every_form(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: WriterConfig, replacement: bool
) -> None:
    np, pa = pytest.importorskip("numpy"), pytest.importorskip("pyarrow")
    empty = [np.zeros((0, 3)), np.array([], np.uint8), memoryview(b"abc")[:0], memoryview(b"")[::2]]
    contents = [b"", b"x", *[b""] * len(empty), b"yy", b""]
    samples = of([b"", b"x", *empty, b"yy", bytearray()])
    cache = make_cache(samples, "s", config.model_copy(update={"max_shard_bytes": 240}))
    assert len(support.shards(cache)) > 1
    for mapped in (True, False):
        dataset = make_dataset(cache, seed=1, use_mmap=mapped, replacement=replacement)
        for batch in dataset.iter_batches(3):
            expected = [contents[i] for i in batch.sample_id]
            assert batch.data == expected
            assert pa.array(batch.data_arrow).to_pylist() == expected
            buffer, offsets = batch.data_numpy()
            assert [bytes(buffer[a:b]) for a, b in itertools.pairwise(offsets)] == expected
        assert dataset.rows[:].data == contents
        assert dataset.rows.take([0, 2, 7]).data == [b""] * 3
        assert dataset.get_item(0, 7).data == b""
        assert pickle.loads(pickle.dumps(dataset.rows[2:4])).data == [b""] * 2


@pytest.mark.rule("Payloads are bytes")
@pytest.mark.parametrize("config", [QUIET, LZ4], ids=["none", "lz4"])
def test_sizes_around_block_limits(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: WriterConfig
) -> None:
    sizes = [0, 1, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 65535, 65536, 65537, (1 << 20) - 1,
             1 << 20, (1 << 20) + 1, 3_000_001]  # fmt: skip
    contents = [support.payload(i, size) for i, size in enumerate(sizes)]
    contents += [b"\0" * size for size in sizes]
    dataset = make_dataset(
        make_cache(of(contents), "s", config), shuffle=False, validate_cache=True
    )
    assert payloads(dataset) == contents
    assert [dataset.get_item(0, i).data for i in range(len(contents))] == contents


@pytest.mark.rule("Payloads are bytes")
@pytest.mark.parametrize("config", [support.QUIET, LZ4], ids=["none", "lz4"])
def test_short_and_long_payloads_in_one_source(
    make_cache: CacheFactory, make_dataset: DatasetFactory, config: WriterConfig
) -> None:
    lengths = [0, 1, 7, 8, 9, 8_191, 8_192, 8_193, 70_000, 300_000]
    order = [*lengths, *lengths[::-1], *([5] * 1_200), *([9_000] * 150), *lengths]
    contents = [bytes([i % 251]) * length for i, length in enumerate(order)]
    # One kind after the other too, so that there are blocks of short and of long ones alone.
    contents += sorted(contents, key=len)
    cache = make_cache(of(contents), "s", config)
    assert payloads(make_dataset(cache, shuffle=False, validate_cache=True)) == contents


@pytest.mark.rule("Memory of a read is bounded")
@pytest.mark.parametrize(("prefetch", "limit"), [(2, 20), (4096, 100)])
def test_little_is_read_ahead(
    make_cache: CacheFactory, make_dataset: DatasetFactory, prefetch: int, limit: int
) -> None:
    mebibyte = 1 << 20
    cache = make_cache(CacheInput(bytes([i]) * mebibyte, {}) for i in range(200))
    dataset = make_dataset(cache, shuffle=False, prefetch_size=prefetch)
    tracemalloc.start()
    try:
        for i, sample in enumerate(dataset):
            assert sample.data[0] == i
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert mebibyte <= peak < limit * mebibyte


@pytest.mark.rule("A payload outlives its dataset")
def test_payloads_outlive_everything(tmp_path: Path) -> None:
    from dataset_rt import DatasetRuntime, ReaderConfig  # noqa: PLC0415

    runtime = DatasetRuntime(num_workers=1)
    cache = support.write(runtime, tmp_path, support.numbered(50))
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, shuffle=False))
    iterator = iter(dataset)
    kept = [next(iterator) for _ in range(20)]
    batch = next(dataset.iter_batches(20))
    del runtime, dataset, iterator
    assert [sample.data for sample in kept] == [support.payload(i) for i in range(20)]
    assert [sample.metadata for sample in kept] == [support.metadata(i) for i in range(20)]
    assert batch.data == [support.payload((i + 50) % 50) for i in range(20)]
    assert batch.metadata["label"].to_list() == [i % 3 for i in range(20)]
