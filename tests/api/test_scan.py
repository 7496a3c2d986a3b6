"""Lazy scans: what they give, and how little they read for it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import pytest
from dataset_rt import (
    CacheDamagedError,
    CacheInput,
    CacheNotFoundError,
    DatasetRuntime,
    ReaderConfig,
    SchemaConflictError,
    ShardCompression,
    WriterConfig,
    expr,
    scan_cache,
)
from dataset_rt import scan as scan_module
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError
from polars.testing import assert_frame_equal

from tests import support

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import CacheFactory

pytestmark = pytest.mark.core

Engine = Literal["in-memory", "streaming"]
ENGINES: list[Engine] = ["in-memory", "streaming"]
LZ4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))

Way = Literal["reader", "io source"]


@pytest.fixture(params=["reader", "io source"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Both interfaces of Polars, where it has both."""
    chosen: Way = request.param
    if chosen == "reader" and not hasattr(pl, "scan_external_reader"):
        pytest.skip("this Polars has no external readers")
    if chosen == "io source":
        monkeypatch.delattr(pl, "scan_external_reader", raising=False)
    return chosen


@pytest.fixture
def paths(make_cache: CacheFactory) -> list[Path]:
    """Three caches: 50 rows, 30 of other fields and compressed, 1."""
    other = [
        CacheInput(support.payload(i, 200) * 3, {"label": i % 3, "extra": f"x{i}"})
        for i in range(100, 130)
    ]
    return [
        make_cache(support.numbered(50, size=40), "a"),
        make_cache(other, "b", LZ4),
        make_cache(support.numbered(1, start=7), "c"),
    ]


@pytest.fixture
def table(paths: list[Path], runtime: DatasetRuntime) -> pl.DataFrame:
    """The whole scan, by way of a dataset."""
    dataset = runtime.cached_dataset(paths, reader_config=ReaderConfig(seed=0))
    payloads = [sample.data for sample in dataset.rows]
    frame = dataset.get_metadata().drop("weight")
    return frame.with_columns(pl.Series("payload", payloads, dtype=pl.Binary))


QUERIES: dict[str, Any] = {
    "all": lambda f: f,
    "one column": lambda f: f.select("text"),
    "another order": lambda f: f.select("payload", "label", "cache_id"),
    "filter": lambda f: f.filter(pl.col("label") == 1),
    "filter on null": lambda f: f.filter(pl.col("extra").is_null(), pl.col("score") > 3),
    "filter on payload": lambda f: f.filter(pl.col("payload").bin.size() == 40).select("score"),
    "filter on both": lambda f: f.filter(
        pl.col("label") > 0, pl.col("payload").bin.starts_with(support.payload(4, 1))
    ),
    "filter on ids": lambda f: f.filter(pl.col("cache_id") == 1, pl.col("sample_id") < 3),
    "nothing is left": lambda f: f.filter(pl.col("label") == 99),
    "head": lambda f: f.head(7),
    "head over a border": lambda f: f.head(60).select("sample_id", "payload"),
    "head of a filter": lambda f: f.filter(pl.col("label") == 2).head(3),
    "filter of a head": lambda f: f.head(60).filter(pl.col("label") == 2),
    "tail": lambda f: f.tail(5),
    "tail over a border": lambda f: f.tail(40).select("text", "extra"),
    "slice": lambda f: f.slice(45, 20),
    "slice from the end": lambda f: f.slice(-33, 4),
    "slice before the start": lambda f: f.slice(-100, 30),
    "slice past the end": lambda f: f.slice(79, 30),
    "row index": lambda f: f.with_row_index("i", 5).filter(pl.col("label") == 0),
    "filter on row index": lambda f: f.with_row_index().filter(pl.col("index") % 20 == 3),
    "row index of a slice": lambda f: f.slice(48, 6).with_row_index(),
    "count": lambda f: f.select(pl.len()),
    "count of a filter": lambda f: f.filter(pl.col("even")).select(pl.len()),
    "aggregate": lambda f: f.group_by("label").agg(pl.len(), pl.col("score").sum()).sort("label"),
    "own expression": lambda f: f.filter(expr.focal_weight("score") < 0.5),
    "whole column in a filter": lambda f: f.filter(expr.cap_per_class("label", n=2)),
    "mean in a filter": lambda f: f.filter(pl.col("score") > pl.col("score").mean()),
    "joined with itself": lambda f: f.join(f.filter(pl.col("label") == 1), on="payload").sort(
        "cache_id", "sample_id", "cache_id_right", "sample_id_right"
    ),
    "largest": lambda f: (
        f.filter(pl.col("label") > 0).sort("score", descending=True, nulls_last=True).head(2)
    ),
    "largest of all": lambda f: f.sort("score", descending=True, nulls_last=True).head(3),
    "Python function": lambda f: f.filter(
        pl.col("text").map_elements(lambda t: t == "n7", return_dtype=pl.Boolean)
    ),
}


@pytest.mark.rule("Scans give what the caches hold", "Scans work on both engines")
@pytest.mark.filterwarnings("ignore::polars.exceptions.PolarsInefficientMapWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("payload", [True, False])
@pytest.mark.parametrize("query", QUERIES)
def test_queries(
    paths: list[Path], table: pl.DataFrame, way: Way, query: str, payload: bool, engine: Engine
) -> None:
    if query == "Python function":
        # Polars sends the function to a source of the older kind as a pickle.
        pytest.importorskip("cloudpickle")
    expected = table if payload else table.drop("payload")
    frame = scan_cache(paths, payload=payload)
    try:
        wanted = QUERIES[query](expected.lazy()).collect()
    except pl.exceptions.ColumnNotFoundError:
        with pytest.raises(pl.exceptions.ColumnNotFoundError):
            QUERIES[query](frame).collect(engine=engine)
    else:
        assert_frame_equal(QUERIES[query](frame).collect(engine=engine), wanted)


@pytest.mark.rule("Scans give what the caches hold")
def test_schema(paths: list[Path], table: pl.DataFrame, way: Way) -> None:
    assert scan_cache(paths, payload=True).collect_schema() == table.schema
    plain = scan_cache([str(path) for path in paths])
    assert plain.collect_schema() == table.drop("payload").schema
    assert_frame_equal(plain.collect(), table.drop("payload"))


@pytest.mark.rule("Scans give what the caches hold")
def test_cache_without_fields_and_a_path_twice(make_cache: CacheFactory, way: Way) -> None:
    path = make_cache([CacheInput(b"a", {}), CacheInput(b"", {})])
    found = scan_cache([path, path], payload=True).collect()
    assert found.rows() == [(0, 0, b"a"), (0, 1, b""), (1, 0, b"a"), (1, 1, b"")]
    assert scan_cache([path]).select(pl.len()).collect().item() == 2


@pytest.mark.rule("Scans go in bounded batches")
@pytest.mark.parametrize("engine", ENGINES)
def test_small_batches(
    paths: list[Path],
    table: pl.DataFrame,
    way: Way,
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
) -> None:
    monkeypatch.setattr(scan_module, "BATCH_ROWS", 7)
    monkeypatch.setattr(scan_module, "BATCH_BYTES", 100)
    frame = scan_cache(paths, payload=True).with_row_index()
    assert_frame_equal(frame.collect(engine=engine), table.with_row_index())
    source = scan_module.Source(paths, with_payload=True)
    batches = list(source.batches(0, range(50), ["sample_id", "payload"]))
    # Two payloads of 40 bytes a batch, and a seventh row by itself.
    assert [batch.height for batch in batches] == [2, 2, 2, 1] * 7 + [1]
    long = list(source.batches(1, range(3), ["payload"]))
    assert [batch.height for batch in long] == [1, 1, 1]
    # Without payloads, but cut so that theirs fit.
    ids = source.batches(0, range(50), ["sample_id"], for_payloads=True)
    assert [batch.height for batch in ids] == [2] * 25
    long = list(source.batches(1, range(3), ["sample_id"], for_payloads=True))
    assert [batch.height for batch in long] == [1, 1, 1]


@pytest.mark.rule("Scans go in bounded batches")
def test_batches_of_an_index_that_is_damaged(make_cache: CacheFactory, way: Way) -> None:
    cache = make_cache(support.plain(20, size=64), "damaged")
    index = cache / "index.bin"
    support.flip(index, index.stat().st_size // 2)
    frame = scan_cache([cache], payload=True)
    # What needs no payload needs no index.
    assert frame.select("sample_id", "cache_id", "label").collect().height == 20
    with pytest.raises((CacheDamagedError, pl.exceptions.ComputeError)):
        frame.collect()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Samples whose payloads were asked for; Polars may ask for several parts at once."""
    asked: list[int] = []
    whole = scan_module.Source.payloads

    def noted(self: Any, ids: pl.DataFrame) -> Iterator[pl.DataFrame]:
        asked.extend(ids["sample_id"])
        return whole(self, ids)

    monkeypatch.setattr(scan_module.Source, "payloads", noted)
    return asked


@pytest.mark.rule("Scans read the payloads of survivors alone")
@pytest.mark.parametrize("engine", ENGINES)
def test_payloads_that_a_filter_costs(
    make_cache: CacheFactory, way: Way, engine: Engine, asked: list[int]
) -> None:
    size, rows = 100, 500
    cache = make_cache(
        [CacheInput(support.payload(i, size), {"n": i}) for i in range(rows)], "large"
    )
    kept = scan_cache([cache], payload=True).filter(pl.col("n") % 100 == 3)
    found = kept.collect(engine=engine)
    assert found["payload"].to_list() == [support.payload(i, size) for i in range(3, rows, 100)]
    assert sorted(asked) == list(range(3, rows, 100))
    asked.clear()
    both = kept.filter(pl.col("payload").bin.size() == size, pl.col("n") < 250)
    assert both.collect(engine=engine)["n"].to_list() == [3, 103, 203]
    assert sorted(asked) == [3, 103, 203]
    asked.clear()
    scan_cache([cache], payload=True).filter(pl.col("n") == 3).select("n").collect(engine=engine)
    assert asked == []


SLICES: dict[str, tuple[Any, list[int]]] = {
    "head": (lambda f: f.head(3), [0, 1, 2]),
    "tail": (lambda f: f.tail(3), [497, 498, 499]),
    "slice": (lambda f: f.slice(250, 2), [250, 251]),
    "slice from the end": (lambda f: f.slice(-100, 2), [400, 401]),
    "filter of a tail": (lambda f: f.tail(200).filter(pl.col("n") % 100 == 3), [303, 403]),
    "tail of a filter": (lambda f: f.filter(pl.col("n") % 100 == 3).tail(1), [403]),
    "head of a filter": (lambda f: f.filter(pl.col("n") % 100 == 3).head(1), [3]),
    "column beside": (lambda f: f.tail(1).with_columns(twice=pl.col("n") * 2), [499]),
}


@pytest.mark.rule("Scans read the payloads of survivors alone")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("query", SLICES)
def test_payloads_that_a_slice_costs(
    make_cache: CacheFactory, way: Way, query: str, engine: Engine, asked: list[int]
) -> None:
    if way == "io source" and query != "head":
        pytest.skip("Polars tells such a source of heads alone")
    samples = [CacheInput(support.payload(i, 50), {"n": i}) for i in range(500)]
    cut, rows = SLICES[query]
    found = cut(scan_cache([make_cache(samples)], payload=True)).collect(engine=engine)
    assert found["payload"].to_list() == [support.payload(i, 50) for i in rows]
    assert sorted(asked) == rows


MAPPED = """
import re, sys
import polars as pl
from dataset_rt import scan_cache

def resident():
    # Pages of the shards that this process has touched through its maps.
    pages, shard = 0, False
    for line in open("/proc/self/smaps"):
        if re.match(r"[0-9a-f]+-", line):
            shard = "/shards/" in line
        elif shard and line.startswith("Rss:"):
            pages += int(line.split()[1]) * 1024
    return pages

frame = scan_cache([sys.argv[1]], payload=True)
frame.filter(pl.col("n") < 0).collect()
before = resident()
found = frame.filter(pl.col("n") % 100 == 3).collect()
print(before, resident(), sum(len(data) for data in found["payload"]))
"""


@pytest.mark.rule("Scans read the payloads of survivors alone")
def test_pages_that_a_filter_costs(make_cache: CacheFactory) -> None:
    size, rows = 100_000, 400
    samples = [CacheInput(support.payload(i, size), {"n": i}) for i in range(rows)]
    cache = make_cache(samples, "large")
    before, after, wanted = map(int, support.run(MAPPED, cache).stdout.split())
    assert before == 0
    assert wanted == size * rows // 100
    # What the kernel maps around a fault (64 KiB at most on each side) is not read by us.
    assert after - before <= wanted + 4 * 4 * 65_536
    assert after - before < size * rows // 10


@pytest.mark.rule("Scans go in bounded batches")
def test_a_head_reads_little(make_cache: CacheFactory) -> None:
    source = scan_module.Source([make_cache(support.plain(100), "a")], with_payload=False)
    batches = source.batches(0, range(10, 20), ["sample_id", "label"])
    assert pl.concat(batches)["sample_id"].to_list() == list(range(10, 20))


@pytest.mark.rule("Scans fail with typed errors")
def test_arguments(tmp_path: Path, make_cache: CacheFactory) -> None:
    wrong: Any
    for wrong in ("cache", Path("cache"), 5, None, [5]):
        with pytest.raises(ArgumentTypeError):
            scan_cache(wrong)
    with pytest.raises(InvalidArgumentError):
        scan_cache([])
    good = make_cache(support.plain(3), "good")
    with pytest.raises(ArgumentTypeError):
        scan_cache([good], payload=1)  # type: ignore[arg-type]
    with pytest.raises(CacheNotFoundError):
        scan_cache([good, tmp_path / "nothing"])
    floats = make_cache([CacheInput(b"", {"label": 1.5})], "floats")
    with pytest.raises(SchemaConflictError):
        scan_cache([good, floats])
    named = make_cache([CacheInput(b"", {"payload": 1})], "named")
    with pytest.raises(InvalidArgumentError, match="payload"):
        scan_cache([named], payload=True)
    assert scan_cache([named]).collect()["payload"].to_list() == [1]


@pytest.mark.rule("Scans fail with typed errors")
@pytest.mark.parametrize("engine", ENGINES)
def test_damage_under_way(make_cache: CacheFactory, way: Way, engine: Engine) -> None:
    cache = make_cache(support.plain(20, size=64), "damaged")
    [shard] = support.shards(cache)
    content = shard.read_bytes()
    support.flip(shard, content.index(support.payload(11, 64)) + 5)
    frame = scan_cache([cache], payload=True)
    with pytest.raises((CacheDamagedError, pl.exceptions.ComputeError)) as error:
        frame.collect(engine=engine)
    if isinstance(error.value, CacheDamagedError):
        again = pickle.loads(pickle.dumps(error.value))
        assert type(again) is CacheDamagedError
        for found in (error.value, again):
            assert (found.cache_id, found.sample_id) == (0, 11)
            assert found.code == "record_damaged"
            assert found.path == shard
            assert "CRC" in str(found)
    else:
        # What a source raises reached nobody as it was before Polars 2.0.
        assert int(pl.__version__.split(".")[0]) < 2
        assert "CacheDamagedError" in str(error.value)
    # What doesn't need the payload is not in its way.
    assert frame.select(pl.len()).collect(engine=engine).item() == 20
    assert frame.filter(pl.col("sample_id") != 11).collect(engine=engine).height == 19


@pytest.mark.rule("Scans need no worker threads")
def test_threads(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(20))
    code = """
        import sys
        from tests import support
        from dataset_rt import scan_cache
        frame = scan_cache([sys.argv[1]], payload=True)
        assert frame.collect().height == 20
        names = support.thread_names()
        assert not [name for name in names if name.startswith("dataset_rt")], names
    """
    support.run(code, cache)


@pytest.mark.rule("A scan keeps its caches open")
def test_a_cache_that_goes_away(make_cache: CacheFactory, way: Way) -> None:
    cache = make_cache(support.plain(30), "a")
    frame = scan_cache([cache])
    whole = frame.collect()
    for path in sorted(cache.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert_frame_equal(frame.collect(), whole)
