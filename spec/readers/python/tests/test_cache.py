from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from dataset_rt_reader import Cache, CacheError, ErrorCode, Mode, read_manifest, verify

from .sealing import change, copy_of, vectors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return copy_of("many-shards", tmp_path)


def test_samples_are_a_sequence_with_payload_and_metadata() -> None:
    with Cache(vectors() / "v1/valid/minimal/cache") as cache:
        assert len(cache) == 1
        assert cache[0].payload == cache[-1].payload == b"hello"
        assert cache[0].metadata == {}
        with pytest.raises(IndexError):
            cache[1]
        with pytest.raises(IndexError):
            cache[-2]


def test_iteration_and_columns_agree_with_single_reads() -> None:
    with Cache(vectors() / "v1/valid/many-batches/cache") as cache:
        samples = list(cache)
        assert [sample.index for sample in samples] == list(range(len(cache)))
        for field in cache.fields:
            assert cache.column(field.name) == [s.metadata[field.name] for s in samples]
        with pytest.raises(KeyError):
            cache.column("none such")


def test_special_floats_keep_their_sign_and_kind() -> None:
    with Cache(vectors() / "v1/valid/all-types/cache") as cache:
        floats = [v for s in cache for v in s.metadata.values() if isinstance(v, float)]
    assert any(math.isnan(v) for v in floats)
    assert any(v == 0 and math.copysign(1, v) < 0 for v in floats)


def test_ordered_windows_wrap_around_and_permuted_ones_hold_each_sample_once_a_pass(
    many: Path,
) -> None:
    with Cache(many) as cache:
        n = len(cache)
        ordered = [sample.index for sample in cache.window(Mode.ORDERED, n + 2)]
        assert ordered == [*range(n), 0, 1]
        permuted = [sample.index for sample in cache.window("permutation", 2 * n, seed=42)]
        assert sorted(permuted[:n]) == sorted(permuted[n:]) == list(range(n))
        assert permuted[:n] != permuted[n:]
        later = [s.index for s in cache.window("permutation", n, start=3, seed=42)]
        assert later == permuted[3 : n + 3]


def test_weighted_windows_follow_the_weights(many: Path) -> None:
    with Cache(many) as cache:
        weights = [1e-300] * len(cache)
        weights[5] = 1.0
        drawn = cache.window("weighted", 50, seed=1, weights=weights)
        assert {sample.index for sample in drawn} == {5}
        order = [s.index for s in cache.window("weighted_order", seed=1, weights=weights)]
        assert order[0] == 5
        assert sorted(order) == list(range(len(cache)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "weighted", "weights": [1.0]}, "weights for"),
        ({"mode": "weighted", "weights": [0.0] * 13}, "above zero"),
        ({"mode": "permutation", "weights": list(range(1, 14))}, "equal weights"),
        ({"mode": "ordered", "start": 2**63 - 1, "count": 2}, "leaves"),
        ({"mode": "ordered", "seed": 2**64}, "seed"),
        ({"mode": "ordered", "stream": 2**32}, "stream"),
        ({"mode": "permuted"}, "permuted"),
    ],
)
def test_wrong_windows_are_refused_before_the_first_sample(
    many: Path, arguments: dict[str, object], message: str
) -> None:
    with Cache(many) as cache, pytest.raises(ValueError, match=message):
        cache.window(**arguments)  # type: ignore[arg-type]


def test_damage_is_met_where_it_is_used_and_by_verification(many: Path) -> None:
    manifest = read_manifest(many)
    change(many / manifest.shards[1].path, 64, b"\xff\xff")
    with Cache(many) as cache:
        cache.check()
        first = manifest.shards[0].samples
        assert cache.payload(first - 1) is not None
        with pytest.raises(CacheError) as caught:
            cache.payload(first)
    assert caught.value.code is ErrorCode.RECORD_DAMAGED
    assert caught.value.file == manifest.shards[1].path
    assert f"sample {first}" in caught.value.place
    with pytest.raises(CacheError) as verified:
        verify(many)
    assert verified.value.check == "S14"


def test_a_missing_shard_is_found_by_check_and_not_by_opening(many: Path) -> None:
    path = read_manifest(many).shards[2].path
    (many / path).unlink()
    with Cache(many) as cache:
        assert cache.payload(0) is not None
        with pytest.raises(CacheError, match="file_missing"):
            cache.check()


def test_links_out_of_the_folder_are_followed_only_on_demand(tmp_path: Path) -> None:
    root = copy_of("minimal", tmp_path)
    shard = root / "shards/000000.bin"
    outside = tmp_path / "outside.bin"
    shard.rename(outside)
    shard.symlink_to(outside)
    with pytest.raises(CacheError, match="leads out"):
        verify(root)
    assert verify(root, follow_links=True).samples == 1


def test_errors_survive_pickling() -> None:
    error = CacheError(ErrorCode.FILE_SIZE, "F2", "index.bin", "too short", place="byte 3")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made one line above
    assert isinstance(again, CacheError)
    assert (again.code, again.check, again.place) == (error.code, "F2", "byte 3")
    assert str(again) == str(error) == "index.bin, byte 3: too short (file_size, F2)"


def test_threads_may_share_a_cache() -> None:
    with Cache(vectors() / "v1/valid/many-samples/cache") as cache:
        numbers = range(0, len(cache), 7)
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(cache.__getitem__, numbers))
        assert together == [cache[i] for i in numbers]


def test_metadata_as_an_arrow_table_is_what_the_library_reads_itself() -> None:
    ipc = pytest.importorskip("pyarrow.ipc")
    for name in ("all-types", "nullable", "pyarrow-metadata", "many-batches"):
        root = vectors() / "v1/valid" / name / "cache"
        with Cache(root) as cache:
            table = cache.arrow_table()
        own = ipc.open_file(str(root / "metadata.arrow")).read_all()
        table.validate(full=True)
        assert table.schema.equals(own.schema)
        # By text: NaN doesn't equal itself.
        assert repr(table.to_pylist()) == repr(own.to_pylist())
