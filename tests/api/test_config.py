"""Configuration models: defaults, refusals, frozenness."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest
from dataset_rt import (
    DEFAULT_WRITER_CONFIG,
    DatasetRuntime,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
    WriterProfilerConfig,
)
from pydantic import BaseModel, ValidationError

pytestmark = pytest.mark.core


@pytest.mark.rule("The defaults")
def test_defaults() -> None:
    assert WriterConfig().model_dump() == {
        "prefetch_size": 64,
        "max_shard_bytes": 64 * 1024 * 1024,
        "shard_compression": {"algo": "none", "ratio": 1.0},
        "show_progress": True,
        "validate_cache": False,
        "profiler": {"enabled": False, "path": Path("dataset_rt_profile.json")},
        "on_mismatch": "error",
    }
    assert ReaderConfig(seed=7).model_dump() == {
        "seed": 7,
        "prefetch_size": 64,
        "shuffle": True,
        "validate_cache": False,
        "verify_payloads": True,
        "use_mmap": True,
        "replacement": True,
        "follow_links": False,
    }
    assert WriterConfig() == DEFAULT_WRITER_CONFIG
    with pytest.raises(ValidationError):
        ReaderConfig()  # type: ignore[call-arg]


@pytest.mark.rule("The defaults")
def test_signatures() -> None:
    def keyword_only(method: Any) -> dict[str, Any]:
        parameters = inspect.signature(method).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    none = inspect.Parameter.empty
    assert keyword_only(DatasetRuntime.write_cache) == {"writer_config": DEFAULT_WRITER_CONFIG}
    assert keyword_only(DatasetRuntime.cached_dataset) == {"reader_config": none}
    assert keyword_only(DatasetRuntime.from_cache_sources) == {
        "reader_config": none,
        "writer_config": DEFAULT_WRITER_CONFIG,
    }
    assert keyword_only(DatasetRuntime.__init__) == {"num_workers": none}


CONFIGS: list[BaseModel] = [
    WriterConfig(prefetch_size=3, shard_compression=ShardCompression(algo="lz4", ratio=2.5)),
    ReaderConfig(seed=2**64 - 1, shuffle=False),
    ShardCompression(),
    WriterProfilerConfig(enabled=True, path=Path("x.json")),
]


@pytest.mark.rule("Configurations are frozen")
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
def test_frozen_and_closed(config: BaseModel) -> None:
    for name in type(config).model_fields:
        with pytest.raises(ValidationError):
            setattr(config, name, getattr(config, name))
    with pytest.raises(ValidationError) as caught:
        type(config).model_validate({**config.model_dump(), "num_worker": 4})
    assert isinstance(caught.value, ValueError)
    assert "num_worker" in str(caught.value)
    for again in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert again == config
    assert type(config).model_validate_json(config.model_dump_json()) == config
    assert hash(config) == hash(type(config).model_validate(config.model_dump()))


@pytest.mark.rule("Seeds are integers of 64 bits")
@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63, 2**64 - 1])
def test_seeds(seed: int) -> None:
    assert ReaderConfig(seed=seed).seed == seed


@pytest.mark.rule("Seeds are integers of 64 bits")
@pytest.mark.parametrize("seed", [-1, 2**64, True, False, 1.0, 1.5, "1", b"1", None, [1]], ids=repr)
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ValidationError, match="seed"):
        ReaderConfig(seed=seed)


@pytest.mark.rule("Seeds are integers of 64 bits")
def test_numpy_seeds() -> None:
    np = pytest.importorskip("numpy")
    for seed in (np.int64(5), np.uint8(5), np.uint64(2**64 - 1)):
        config = ReaderConfig(seed=seed)
        assert config.seed == int(seed)
        assert type(config.seed) is int
    for seed in (np.float64(5), np.bool_(True), np.int64(-1), np.array([1])):
        with pytest.raises(ValidationError):
            ReaderConfig(seed=seed)


@pytest.mark.rule("prefetch_size is at least one")
@pytest.mark.parametrize("size", [0, -1, 1.5, True, "4", None], ids=repr)
def test_prefetch_sizes(size: Any) -> None:
    with pytest.raises(ValidationError):
        WriterConfig(prefetch_size=size)
    with pytest.raises(ValidationError):
        ReaderConfig(seed=0, prefetch_size=size)
    assert WriterConfig(prefetch_size=1).prefetch_size == 1
    assert ReaderConfig(seed=0, prefetch_size=1).prefetch_size == 1


@pytest.mark.rule("Compression is none or lz4")
def test_compression() -> None:
    for ratio in (0.1, 1.0, 3, 1e300):
        assert ShardCompression(algo="lz4", ratio=ratio).ratio == float(ratio)
    refused: list[dict[str, Any]] = [
        {"algo": "zstd"},
        {"algo": "LZ4"},
        {"algo": None},
        {"algo": "none", "ratio": 2.0},
        {"ratio": 0.5},
        {"algo": "lz4", "ratio": 0.0},
        {"algo": "lz4", "ratio": -1.0},
        {"algo": "lz4", "ratio": float("nan")},
        {"algo": "lz4", "ratio": float("inf")},
        {"algo": "lz4", "ratio": "2"},
    ]
    for options in refused:
        with pytest.raises(ValidationError):
            ShardCompression(**options)


@pytest.mark.rule("Configurations are frozen")
@pytest.mark.parametrize(
    "options",
    [
        {"max_shard_bytes": 0},
        {"max_shard_bytes": -5},
        {"max_shard_bytes": "1"},
        {"show_progress": 1},
        {"show_progress": "yes"},
        {"validate_cache": None},
        {"on_mismatch": "ignore"},
        {"on_mismatch": True},
        {"shard_compression": "lz4"},
        {"profiler": True},
    ],
    ids=str,
)
def test_wrong_values_of_a_writer(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WriterConfig(**options)


@pytest.mark.rule("Configurations are frozen")
@pytest.mark.parametrize(
    "name",
    ["shuffle", "validate_cache", "verify_payloads", "use_mmap", "replacement", "follow_links"],
)
@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_flags_are_bools(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        ReaderConfig.model_validate({"seed": 0, name: value})
