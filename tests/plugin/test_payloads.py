"""Payloads by expression: limits, damage, and how little is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import pytest
from dataset_rt import CacheInput, ShardCompression, WriterConfig, expr, scan_cache
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

from tests import support

if TYPE_CHECKING:
    from dataset_rt import DatasetRuntime

    from tests.conftest import CacheFactory

pytestmark = pytest.mark.core

Engine = Literal["in-memory", "streaming"]
ENGINES: list[Engine] = ["in-memory", "streaming"]
LZ4 = WriterConfig(show_progress=False, shard_compression=ShardCompression(algo="lz4"))


def ids(*pairs: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"cache_id": pl.Int64, "sample_id": pl.Int64}, orient="row")


def bytes_read() -> int:
    """Bytes that read calls of this process gave."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


@pytest.mark.rule("payload keeps the order of the rows")
@pytest.mark.parametrize("config", [support.QUIET, LZ4], ids=["none", "lz4"])
def test_order_and_repeats(make_cache: CacheFactory, config: WriterConfig) -> None:
    samples = [CacheInput(support.payload(i, 10 + 997 * (i % 5)), {}) for i in range(300)]
    cache = make_cache(samples, "a", config)
    wanted = [(i * 7919 + i // 3) % 300 for i in range(9_000)]
    frame = ids(*((0, i) for i in wanted))
    found = frame.select(expr.payload([cache], max_bytes=2**26))["payload"].to_list()
    payloads = [bytes(sample.data) for sample in samples]
    assert found == [payloads[i] for i in wanted]


@pytest.mark.rule("payload refuses more than max_bytes")
@pytest.mark.parametrize("engine", ENGINES)
def test_limit(make_cache: CacheFactory, engine: Engine) -> None:
    cache = make_cache(support.plain(100, size=10))
    frame = ids(*((0, i) for i in range(100))).lazy()
    whole = frame.select(expr.payload([cache], max_bytes=1_000)).collect(engine=engine)
    assert whole.height == 100
    with pytest.raises(pl.exceptions.ComputeError, match=r"1000 bytes.*max_bytes = 999"):
        frame.select(expr.payload([cache], max_bytes=999)).collect(engine=engine)
    few = frame.filter(pl.col("sample_id") < 3).select(expr.payload([cache], max_bytes=30))
    assert few.collect(engine=engine).height == 3
    with pytest.raises(pl.exceptions.ComputeError, match="max_bytes"):
        frame.select(expr.payload([cache], max_bytes=0)).collect(engine=engine)


@pytest.mark.rule("Sizes and checksums cost no payload")
def test_facts_without_shards(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(5, size=9))
    frame = scan_cache([cache]).collect()
    assert frame.select(expr.payload_size([cache]))["payload_size"].to_list() == [9] * 5
    for shard in support.shards(cache):
        shard.chmod(0o600)
        shard.write_bytes(bytes(shard.stat().st_size))
    again = frame.select(expr.payload_size([cache]), expr.payload_crc([cache]))
    assert again["payload_size"].to_list() == [9] * 5
    assert again["payload_crc"].n_unique() == 5
    with pytest.raises(pl.exceptions.ComputeError):
        frame.select(expr.payload([cache]))


@pytest.mark.rule("payload_head reads no more than it gives")
def test_bytes_of_heads(make_cache: CacheFactory) -> None:
    cache = make_cache([CacheInput(support.payload(i, 200_000), {}) for i in range(20)])
    frame = scan_cache([cache]).collect()
    frame.select(expr.payload_head([cache], 1), expr.payload_mime([cache]))
    before = bytes_read()
    found = frame.select(expr.payload_head([cache], 100))["payload_head"]
    # Looking at the counter reads a few bytes too.
    assert bytes_read() - before < 20 * 100 + 2_000
    assert found.to_list() == [support.payload(i, 100) for i in range(20)]


@pytest.mark.rule("strict=False gives null for what can't be read")
@pytest.mark.parametrize("engine", ENGINES)
def test_damage(make_cache: CacheFactory, engine: Engine) -> None:
    cache = make_cache(support.plain(20, size=64))
    [shard] = support.shards(cache)
    content = shard.read_bytes()
    support.flip(shard, content.index(support.payload(11, 64)) + 5)
    frame = ids(*((0, i) for i in range(20))).lazy()
    with pytest.raises(pl.exceptions.ComputeError, match=r"CRC|checksum"):
        frame.select(expr.payload([cache])).collect(engine=engine)
    some = frame.select(expr.payload([cache], strict=False)).collect(engine=engine)["payload"]
    assert some.to_list() == [None if i == 11 else support.payload(i, 64) for i in range(20)]


@pytest.mark.rule("strict=False gives null for what can't be read")
def test_messages_name_the_sample(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(3))
    for function in (expr.payload, expr.payload_size, expr.payload_crc, expr.payload_mime):
        with pytest.raises(pl.exceptions.ComputeError, match="no sample 3; allowed: 0 to 2"):
            ids((0, 0), (0, 3)).select(function([cache]))
        with pytest.raises(pl.exceptions.ComputeError, match="no cache 1; allowed: 0 to 0"):
            ids((1, 0)).select(function([cache]))
        with pytest.raises(pl.exceptions.ComputeError, match=r"no sample \(0, -1\)"):
            ids((0, -1)).select(function([cache]))


@pytest.mark.rule("Payload expressions need their caches")
def test_caches_that_are_not_there(tmp_path: Path, make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(3))
    for strict in (True, False):
        absent = expr.payload_size([cache, tmp_path / "nothing"], strict=strict)
        with pytest.raises(pl.exceptions.ComputeError, match="there is no cache"):
            ids((0, 0)).select(absent)


@pytest.mark.rule("Payload expressions need their caches")
def test_a_cache_that_is_replaced(runtime: DatasetRuntime, base: Path) -> None:
    first = support.write(runtime, base, support.plain(3, size=5))
    size = expr.payload_size([first])
    assert ids((0, 2)).select(size).item() == 5
    shutil.rmtree(first)
    assert support.write(runtime, base, support.plain(3, size=6)) == first
    assert ids((0, 2)).select(size).item() == 6
    # More lists of caches than are kept open.
    copies = [support.write(runtime, base, support.plain(2, size=n), f"n{n}") for n in range(1, 9)]
    for _ in range(2):
        sizes = [ids((0, 1)).select(expr.payload_size([path])).item() for path in copies]
        assert sizes == list(range(1, 9))


@pytest.mark.rule("Arguments are checked")
def test_arguments(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(3))
    wrong: Any
    for wrong in ("cache", 5, None, [5]):
        with pytest.raises(ArgumentTypeError):
            expr.payload_size(wrong)
    with pytest.raises(InvalidArgumentError):
        expr.payload_size([])
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        expr.payload_size(["/tmp/\udcff"])  # noqa: S108 - nothing is written
    for wrong in (-1, 2**63):
        with pytest.raises(InvalidArgumentError):
            expr.payload([cache], max_bytes=wrong)
        with pytest.raises(InvalidArgumentError):
            expr.payload_head([cache], wrong)
    for wrong in (1.5, "1", None):
        with pytest.raises(ArgumentTypeError):
            expr.payload([cache], max_bytes=wrong)
        with pytest.raises(ArgumentTypeError):
            expr.payload_size([cache], strict=wrong)
        if not isinstance(wrong, str):
            with pytest.raises(ArgumentTypeError):
                expr.payload_size([cache], cache_id=wrong)
    with pytest.raises(pl.exceptions.ComputeError, match="integers"):
        pl.DataFrame({"cache_id": [0.0], "sample_id": [1]}).select(expr.payload_size([cache]))


@pytest.mark.rule("payload keeps the order of the rows")
def test_one_cache_by_a_literal(make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(10))
    frame = pl.DataFrame({"row": [4, 2, 9]})
    found = frame.select(expr.payload([cache], cache_id=pl.lit(0), sample_id="row"))
    assert found["payload"].to_list() == [support.payload(i, 8) for i in (4, 2, 9)]
