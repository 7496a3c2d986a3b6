"""The configuration models: defaults, strictness, immutability."""

from __future__ import annotations

import copy
import math
import pickle
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from dataset_rt import (
    DEFAULT_WRITER_CONFIG,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
    WriterProfilerConfig,
)
from pydantic import BaseModel, ValidationError

np = pytest.importorskip("numpy")


class Number(IntEnum):
    THREE = 3


CONFIGS: list[BaseModel] = [
    ReaderConfig(seed=7, shuffle=False),
    WriterConfig(prefetch_size=3, shard_compression=ShardCompression(algo="lz4", ratio=2.5)),
    ShardCompression(),
    WriterProfilerConfig(enabled=True, path=Path("x.json")),
]


def test_reader_defaults() -> None:
    assert ReaderConfig(seed=0).model_dump() == {
        "seed": 0,
        "prefetch_size": 64,
        "shuffle": True,
        "validate_cache": False,
        "verify_payloads": True,
        "use_mmap": True,
        "replacement": True,
        "follow_links": False,
    }
    with pytest.raises(ValidationError, match="seed"):
        ReaderConfig()  # type: ignore[call-arg]


def test_writer_defaults() -> None:
    assert WriterConfig() == DEFAULT_WRITER_CONFIG
    assert DEFAULT_WRITER_CONFIG.model_dump() == {
        "prefetch_size": 64,
        "max_shard_bytes": 64 * 1024 * 1024,
        "shard_compression": {"algo": "none", "ratio": 1.0},
        "show_progress": True,
        "validate_cache": False,
        "profiler": {"enabled": False, "path": Path("dataset_rt_profile.json")},
        "on_mismatch": "error",
    }


@pytest.mark.parametrize(
    "seed", [0, 1, 2**63, 2**64 - 1, np.uint64(2**64 - 1), np.int8(5), Number.THREE]
)
def test_seeds_accepted(seed: Any) -> None:
    config = ReaderConfig(seed=seed)
    assert type(config.seed) is int
    assert config.seed == int(seed)


@pytest.mark.parametrize(
    "seed",
    [-1, 2**64, True, False, np.True_, 1.0, np.float64(1), "1", None, b"1", math.nan, [1]],
)
def test_seeds_refused(seed: Any) -> None:
    with pytest.raises(ValidationError, match="seed"):
        ReaderConfig(seed=seed)


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (ReaderConfig, "prefetch_size"),
        (WriterConfig, "prefetch_size"),
        (WriterConfig, "max_shard_bytes"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "64", None, 2**80])
def test_sizes_refused(model: type[BaseModel], field: str, value: Any) -> None:
    needed = {"seed": 1} if model is ReaderConfig else {}
    with pytest.raises(ValidationError, match=field):
        model(**needed, **{field: value})
    assert getattr(model(**needed, **{field: np.int64(9)}), field) == 9


@pytest.mark.parametrize("value", [1, 0, "yes", None, "true", 1.0])
def test_flags_are_strict(value: Any) -> None:
    for field in ("shuffle", "validate_cache", "verify_payloads", "use_mmap", "replacement"):
        with pytest.raises(ValidationError, match=field):
            ReaderConfig(seed=1, **{field: value})
    with pytest.raises(ValidationError, match="show_progress"):
        WriterConfig(show_progress=value)
    with pytest.raises(ValidationError, match="enabled"):
        WriterProfilerConfig(enabled=value)


def test_numpy_flag() -> None:
    flag: Any = np.False_
    assert ReaderConfig(seed=1, shuffle=flag).shuffle is False


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
def test_frozen_strict_and_copied(config: BaseModel) -> None:
    name = next(iter(type(config).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(config, name, getattr(config, name))
    with pytest.raises(ValidationError, match="not permitted"):
        type(config)(**config.model_dump(), surprise=1)
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.copy(config) == config
    assert copy.deepcopy(config) == config
    assert hash(config) == hash(copy.deepcopy(config))


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan])
def test_ratio_is_positive_and_finite(ratio: float) -> None:
    with pytest.raises(ValidationError, match="ratio"):
        ShardCompression(algo="lz4", ratio=ratio)


def test_ratio_of_none_is_one() -> None:
    with pytest.raises(ValidationError, match=r"ratio must be 1\.0"):
        ShardCompression(algo="none", ratio=2.0)
    assert ShardCompression(algo="lz4", ratio=3).ratio == 3.0


@pytest.mark.parametrize("value", ["zstd", "LZ4", "", None, 1])
def test_unknown_codec(value: Any) -> None:
    with pytest.raises(ValidationError, match="algo"):
        ShardCompression(algo=value)


@pytest.mark.parametrize("value", ["overwrite", "", None, True])
def test_unknown_policy(value: Any) -> None:
    with pytest.raises(ValidationError, match="on_mismatch"):
        WriterConfig(on_mismatch=value)


@pytest.mark.parametrize("value", [b"x", 1, None])
def test_profiler_path(value: Any) -> None:
    with pytest.raises(ValidationError, match="path"):
        WriterProfilerConfig(path=value)
    text: Any = "x.json"
    assert WriterProfilerConfig(path=text).path == Path("x.json")
