"""Caches of this package in other hands: independent readers, and libraries that read Arrow."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataset_rt
import polars as pl
import pytest
from dataset_rt import CacheInput, ReaderConfig, ShardCompression, WriterConfig

from tests import support
from tests.spec.readers import LANGUAGES, Reader, commands, order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataset_rt import CachedDataset, DatasetRuntime

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

pytestmark = [pytest.mark.cross, pytest.mark.timeout(600)]

LONG = os.environ.get("DATASET_RT_LONG") == "1"
CACHES = 200 if LONG else 20
KINDS: list[Callable[[random.Random], Any]] = [
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.choice([0, -1, 2**63 - 1, -(2**63), 2**53 + 1, rng.randrange(-999, 999)]),
    lambda rng: rng.choice([0.0, -0.0, 5e-324, 1.7e308, float("inf"), -float("inf"), rng.random()]),
    lambda rng: rng.choice(
        ["", "a", "\0", "\ufeffx", "e\u0301", "日本語", "\U0001f600" * 5, "x" * 40]
    ),
]
NANS = [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8DEADBEEF0000]
NAMES = ["a", "A", "", "é", "e\u0301", "__proto__", "constructor", "a.b", '"q"', "\n", "length"]


@pytest.fixture(scope="module")
def readers() -> dict[str, list[str]]:
    found = commands()
    if set(found) != set(LANGUAGES):
        pytest.skip("the readers are built by make cross")
    return found


def made(seed: int) -> tuple[list[CacheInput], WriterConfig]:
    """Random samples and how they are packed."""
    rng = random.Random(seed)
    names = rng.sample(NAMES, rng.randrange(len(NAMES)))
    kinds = [rng.randrange(4) for _ in names]
    samples = []
    for _ in range(rng.choice([1, 2, 31, 32, 33, 60])):
        size = rng.choice([0, 1, 7, 100, 256, 257, 3000])
        payload = rng.choice([rng.randbytes(size), bytes(size), b"abcd" * (size // 4)])
        values = [KINDS[kind](rng) for kind in kinds]
        for i, kind in enumerate(kinds):
            if kind == 2 and rng.random() < 0.2:
                values[i] = struct.unpack("<d", struct.pack("<Q", rng.choice(NANS)))[0]
        samples.append(CacheInput(payload, dict(zip(names, values, strict=True))))
    algo: Any = rng.choice(["none", "lz4"])
    config = WriterConfig(
        show_progress=False,
        max_shard_bytes=rng.choice([1, 500, 10_000, 2**26]),
        shard_compression=ShardCompression(algo=algo),
    )
    return samples, config


def tagged(value: object) -> dict[str, str]:
    """A value in the notation of the specification's vectors."""
    if isinstance(value, bool):
        return {"type": "bool", "value": str(value).lower()}
    if isinstance(value, int):
        return {"type": "int64", "value": str(value)}
    if isinstance(value, float):
        return {"type": "float64", "value": f"{bits(value):016x}"}
    assert isinstance(value, str)
    return {"type": "utf8", "value": value}


def bits(value: float) -> int:
    [number] = struct.unpack("<Q", struct.pack("<d", value))
    return int(number)


def shown(payload: bytes) -> dict[str, str]:
    if len(payload) <= 256:
        return {"type": "bytes", "value": payload.hex()}
    digest = hashlib.sha256(payload).hexdigest()
    return {"type": "bytes_digest", "value": f"{len(payload)}:{digest}"}


def assert_document(document: Any, samples: list[CacheInput]) -> None:
    """A reader's answer has these samples, value by value."""
    assert document["outcome"] == "valid", document
    assert document["samples"] == {"type": "uint64", "value": str(len(samples))}
    names = [field["name"]["value"] for field in document["fields"]]
    assert names == list(samples[0].metadata)
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(struct.pack("<Q", len(sample.data)) + sample.data)
    assert document["payloads_sha256"]["value"] == digest.hexdigest()
    rows = document["rows"]
    assert len(rows) == len(samples)
    for number, (row, sample) in enumerate(zip(rows, samples, strict=True)):
        assert row["index"]["value"] == str(number)
        assert row["payload"] == shown(bytes(sample.data))
        assert row["values"] == [tagged(value) for value in sample.metadata.values()]


def comparable(value: object) -> object:
    return ("float", bits(value)) if isinstance(value, float) else value


def rows_of(samples: list[CacheInput]) -> list[tuple[object, ...]]:
    return [tuple(map(comparable, sample.metadata.values())) for sample in samples]


def assert_libraries(path: Path, samples: list[CacheInput]) -> None:
    """PyArrow, Polars and DuckDB read the metadata, whose types are plain."""
    with pa.memory_map(str(path / "metadata.arrow")) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
        table.validate(full=True)
        plain = {pa.bool_(), pa.int64(), pa.float64(), pa.string()}
        assert set(table.schema.types) <= plain
        assert table.schema.names == list(samples[0].metadata)
        assert table.num_rows == len(samples)
        if not table.schema.names:
            return
        expected = rows_of(samples)
        columns = [column.to_pylist() for column in table.columns]
        assert [tuple(map(comparable, row)) for row in zip(*columns, strict=True)] == expected
        # DuckDB takes names that differ in case alone for one, so the columns get other ones.
        renamed = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
        found = duckdb.connect().from_arrow(renamed).fetchall()
        assert [tuple(map(comparable, row)) for row in found] == expected
    file = path / "metadata.arrow"
    for frame in [pl.read_ipc(file), pl.read_ipc(file.read_bytes())]:
        assert set(frame.dtypes) <= {pl.Boolean, pl.Int64, pl.Float64, pl.String}
        assert [tuple(map(comparable, row)) for row in frame.rows()] == expected


@pytest.mark.rule("Caches are read without this package")
def test_written_caches_are_read_alike(
    runtime: DatasetRuntime, tmp_path: Path, readers: dict[str, list[str]]
) -> None:
    with contextlib.ExitStack() as stack:
        open_readers = [
            stack.enter_context(Reader(argv, all_rows=True)) for argv in readers.values()
        ]
        for seed in range(CACHES):
            samples, config = made(seed)
            path = support.write(runtime, tmp_path, samples, f"cache-{seed}", config)
            assert dataset_rt.verify(path).ok
            for reader in open_readers:
                reader.ask(path)
            assert_libraries(path, samples)
            for reader in open_readers:
                assert_document(reader.answer(), samples)


@pytest.mark.rule("Caches are read without this package")
@pytest.mark.parametrize("algo", ["none", "lz4"] if LONG else ["lz4"])
def test_many_batches_categories_and_long_texts(
    runtime: DatasetRuntime, tmp_path: Path, readers: dict[str, list[str]], algo: Any
) -> None:
    """Three batches, texts of 0 to 40 bytes on both sides of 12, values of a Categorical column."""
    colours = pl.Series(
        ["red", "", "blau\u00e9", "a colour that has a long name"], dtype=pl.Categorical
    )
    categories = colours.to_list()
    count = 65_536 * 2 + 3 if LONG else 65_539
    samples = [
        CacheInput(
            b"" if i % 3 else b"%d" % i,
            {"text": "\u00e9x"[: i % 3] * (i % 14), "category": categories[i % 4]},
        )
        for i in range(count)
    ]
    config = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo=algo))
    path = support.write(runtime, tmp_path, samples, "many", config)
    with pa.memory_map(str(path / "metadata.arrow")) as source:
        assert pa.ipc.open_file(source).num_record_batches == -(-count // 65_536)
    assert_libraries(path, samples)
    with contextlib.ExitStack() as stack:
        open_readers = [
            stack.enter_context(Reader(argv, all_rows=True)) for argv in readers.values()
        ]
        for reader in open_readers:
            reader.ask(path)
        for reader in open_readers:
            assert_document(reader.answer(), samples)


def window(dataset: CachedDataset, start: int, count: int) -> list[int]:
    """The samples of the positions from start on, taken as windows of the dataset."""
    if start:
        dataset.set_epoch_len(start)
        iter(dataset)  # takes its window at once
    dataset.set_epoch_len(count)
    return [sample.sample_id for sample in dataset]


@pytest.mark.rule("Caches are read without this package")
@pytest.mark.parametrize("count", [1, 20, 21] if not LONG else [1, 2, 20, 21, 60, 1000])
@pytest.mark.parametrize("mode", ["ordered", "weighted", "permutation", "weighted_order"])
def test_orders_are_equal(
    runtime: DatasetRuntime,
    tmp_path: Path,
    readers: dict[str, list[str]],
    mode: str,
    count: int,
) -> None:
    path = support.write(runtime, tmp_path, support.plain(count))
    if count == 1 and mode == "weighted_order":
        return  # one weight is equal to itself: the mode of the package is another
    for seed, stream, start in [(0, 0, 0), (42, 1, 7), (2**64 - 1, 2**32 - 1, 3 * count + 1)]:
        config = ReaderConfig(
            seed=seed,
            shuffle=mode != "ordered",
            replacement=mode == "weighted",
        )
        dataset = runtime.cached_dataset([path], reader_config=config)
        table = dataset.get_metadata()
        if mode.startswith("weighted"):
            weights = (pl.int_range(pl.len()) + 1).cast(pl.Float64)
            table = table.with_columns(weight=weights)
        dataset.update_metadata(table, stream=stream)
        length = 2 * count + 5
        expected = window(dataset, start, length)
        request = {"mode": mode, "seed": str(seed), "stream": str(stream)}
        request |= {"start": str(start), "count": str(length)}
        for language, argv in readers.items():
            assert order(argv, path, request) == expected, language


def variants(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Each byte with one bit changed (all eight in the long form), and each other length."""
    for at in range(len(raw)):
        for bit in range(8) if LONG else [at * 5 % 8]:
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            yield f"bit {bit} of byte {at}", bytes(changed)
    for length in range(len(raw)):
        yield f"{length} bytes", raw[:length]
    yield "a byte more", raw + b"\0"


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where the system has one."""
    room = Path("/dev/shm")  # noqa: S108  (a folder of our own is made in it)
    with tempfile.TemporaryDirectory(dir=room if os.access(room, os.W_OK) else None) as folder:
        yield Path(folder)


def refused(path: Path) -> bool:
    """Whether this package finds something wrong."""
    try:
        return not dataset_rt.verify(path).ok
    except dataset_rt.DatasetRTError:
        return True


@pytest.mark.rule("Caches are read without this package", "validate_cache finds every changed byte")
@pytest.mark.parametrize("algo", ["none", "lz4"] if LONG else ["none"])
def test_every_changed_byte_and_every_length(
    runtime: DatasetRuntime, memory: Path, readers: dict[str, list[str]], algo: Any
) -> None:
    """No change of one byte and no other length passes the package or one of three readers."""
    config = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo=algo))
    samples = [CacheInput(b"hello" * 9, {"t": "x"})] if LONG else [CacheInput(b"hello", {})]
    path = support.write(runtime, memory, samples, "s", config)
    files = [found for found in sorted(path.rglob("*")) if found.is_file()]
    assert len(files) == 4
    passed, tried = [], 0
    with contextlib.ExitStack() as stack:
        open_readers = {
            language: stack.enter_context(Reader(argv)) for language, argv in readers.items()
        }
        for reader in open_readers.values():
            assert reader.document(path)["outcome"] == "valid"
        for file in files:
            raw = file.read_bytes()
            for what, changed in variants(raw):
                # A new file each time: a reader may still map the one before.
                other = file.with_name("other")
                other.write_bytes(changed)
                other.replace(file)
                for reader in open_readers.values():
                    reader.ask(path)
                found = {"package": refused(path)}
                for language, reader in open_readers.items():
                    found[language] = reader.answer()["outcome"] == "invalid"
                tried += 1
                passed += [(file.name, what, who) for who, seen in found.items() if not seen]
            file.write_bytes(raw)
        for reader in open_readers.values():
            assert reader.document(path)["outcome"] == "valid"
    assert tried > 3000
    assert passed == []
