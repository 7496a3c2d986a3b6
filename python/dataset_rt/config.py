"""Frozen configuration models.

They refuse unknown keys and wrong types with pydantic's ValidationError, which is a ValueError;
the native core checks the values again.
"""

from __future__ import annotations

import math
import numbers
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from dataset_rt._arguments import MAX_I64, MAX_U64, describe

__all__ = [
    "DEFAULT_WRITER_CONFIG",
    "CompressionAlgo",
    "MismatchPolicy",
    "ReaderConfig",
    "ShardCompression",
    "WriterConfig",
    "WriterProfilerConfig",
]

CompressionAlgo: TypeAlias = Literal["none", "lz4"]
"""How the payload of each record is stored."""

MismatchPolicy: TypeAlias = Literal["error", "rebuild", "reuse"]
"""What `from_cache_sources` does with a cache that its source no longer describes."""

_MAX_PREFETCH = 2**31 - 1


def _strict_integer(low: int, high: int) -> BeforeValidator:
    """An integer of Python or NumPy in a range; pydantic alone takes bools, floats and strings."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise ValueError(f"must be an integer, found {describe(value)}")
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"must be {low} to {high}, found {number}")
        return number

    return BeforeValidator(check)


def _strict_flag(value: object) -> bool:
    # numpy.bool_ has an item() that is a bool; nothing else passes.
    if type(value).__module__ == "numpy" and type(value).__name__ in {"bool", "bool_"}:
        return bool(value)
    if not isinstance(value, bool):
        raise ValueError(f"must be True or False, found {describe(value)}")
    return value


def _strict_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"must be a number, found {describe(value)}")
    return float(value)


_Flag: TypeAlias = Annotated[bool, BeforeValidator(_strict_flag)]
_Seed: TypeAlias = Annotated[int, _strict_integer(0, MAX_U64)]
_Prefetch: TypeAlias = Annotated[int, _strict_integer(1, _MAX_PREFETCH)]
_Size: TypeAlias = Annotated[int, _strict_integer(1, MAX_I64)]
_Number: TypeAlias = Annotated[float, BeforeValidator(_strict_number)]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class ShardCompression(_Config):
    """How payloads are compressed: each record by itself, so that random access stays direct.

    Attributes:
        algo: "none" or "lz4".
        ratio: Expected raw size over stored size; advice that changes no byte. 1.0 for "none",
            any positive finite number for "lz4".
    """

    algo: CompressionAlgo = "none"
    ratio: _Number = 1.0

    @model_validator(mode="after")
    def _check_ratio(self) -> ShardCompression:
        if not (math.isfinite(self.ratio) and self.ratio > 0):
            raise ValueError(f"ratio must be positive and finite, found {self.ratio}")
        if self.algo == "none" and self.ratio != 1.0:
            raise ValueError(f"ratio must be 1.0 for algo 'none', found {self.ratio}")
        return self


class WriterProfilerConfig(_Config):
    """Where the time of a write goes, as a JSON file.

    Attributes:
        enabled: Whether stages are timed and the file is written, also after failures and Ctrl-C.
        path: The file, replaced if it exists; relative to the working folder at the call.
    """

    enabled: _Flag = False
    path: Path = Path("dataset_rt_profile.json")


class WriterConfig(_Config):
    """How caches are written.

    Attributes:
        prefetch_size: Blocks of samples in flight between the source and the disk; at least 1. A
            block is at most 512 samples and 1 MiB.
        max_shard_bytes: A shard file is closed before it grows beyond this many bytes; a record
            that is larger has a shard of its own.
        shard_compression: Codec of the payloads.
        show_progress: Whether progress goes to stderr.
        validate_cache: Whether the checksums of every file are verified before an existing cache
            is reused.
        profiler: Optional timing summary.
        on_mismatch: What `from_cache_sources` does when the source's fingerprint is not the
            cache's, or the cache is damaged: "error" reports it for that source, "rebuild" writes
            the cache again and keeps the old one until the new one is whole, "reuse" takes the
            cache as it is (a damaged one stays an error).
    """

    prefetch_size: _Prefetch = 64
    max_shard_bytes: _Size = 64 * 1024 * 1024
    shard_compression: ShardCompression = ShardCompression()
    show_progress: _Flag = True
    validate_cache: _Flag = False
    profiler: WriterProfilerConfig = WriterProfilerConfig()
    on_mismatch: MismatchPolicy = "error"

    def _native_options(self, *, profile: Path | None) -> dict[str, Any]:
        return {
            "prefetch_size": self.prefetch_size,
            "max_shard_bytes": self.max_shard_bytes,
            "codec": self.shard_compression.algo,
            "validate_cache": self.validate_cache,
            "on_mismatch": self.on_mismatch,
            "profile": None if profile is None else str(profile),
        }


class ReaderConfig(_Config):
    """How a dataset is read and sampled.

    Attributes:
        seed: 0 to 2^64 - 1; every value gives another order.
        prefetch_size: Blocks of samples in flight between the disk and the consumer; at least 1.
        shuffle: True draws by weight, False follows the table cyclically.
        validate_cache: Whether every byte of every file is verified when the dataset is opened.
        verify_payloads: Whether each payload is verified against its own checksum when it is read.
        use_mmap: Whether files are mapped; False uses positioned reads alone.
        replacement: With `shuffle`: True draws each position by itself, False goes through
            permutations of the table, each active row once a pass.
        follow_links: Whether files of a cache may be symbolic links that lead out of it.
    """

    seed: _Seed
    prefetch_size: _Prefetch = 64
    shuffle: _Flag = True
    validate_cache: _Flag = False
    verify_payloads: _Flag = True
    use_mmap: _Flag = True
    replacement: _Flag = True
    follow_links: _Flag = False

    def _native_options(self) -> dict[str, Any]:
        return self.model_dump()


DEFAULT_WRITER_CONFIG: Final = WriterConfig()
"""The configuration of writes that name none."""
