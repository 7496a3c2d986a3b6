"""DatasetRT: immutable caches of training data, read at memory speed and weighted with Polars.

Write samples once (`DatasetRuntime.write_cache`), open them (`DatasetRuntime.cached_dataset`),
choose and weight them as a Polars table (`CachedDataset.update_metadata`), iterate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataset_rt import errors as errors
from dataset_rt._native import CachedSample, __version__
from dataset_rt.batch import SampleBatch
from dataset_rt.config import (
    DEFAULT_WRITER_CONFIG,
    CompressionAlgo,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
    WriterProfilerConfig,
)
from dataset_rt.damage import CacheProblem, RepairReport, VerifyReport, repair, verify
from dataset_rt.dataset import CachedDataset
from dataset_rt.errors import (
    ArgumentTypeError,
    CacheDamagedError,
    CacheExistsError,
    CacheFeatureError,
    CacheMismatchError,
    CacheNotFoundError,
    CacheReuseWarning,
    CacheVersionError,
    DatasetRTError,
    DatasetRTWarning,
    EmptySourceError,
    InternalError,
    InvalidArgumentError,
    MetadataTableError,
    MetadataTableTypeError,
    PolarsVersionError,
    SampleIndexError,
    SampleTypeError,
    SampleValueError,
    SchemaConflictError,
    SourceNameError,
    StorageError,
    UnknownSampleError,
    WorkerProcessError,
)
from dataset_rt.results import (
    CacheSourcesDatasetError,
    CacheSourcesDatasetResult,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteResult,
    CacheWriteSuccess,
)
from dataset_rt.rows import Rows
from dataset_rt.runtime import DatasetRuntime
from dataset_rt.scan import scan_cache
from dataset_rt.sources import BytesLike, CacheInput, CacheSource, Metadata, MetadataValue

if TYPE_CHECKING:
    from dataset_rt.torch import SizedTorchIterableDataset as SizedTorchIterableDataset

# SizedTorchIterableDataset is public too; it is left out because a star import would import torch.
__all__ = [
    "DEFAULT_WRITER_CONFIG",
    "ArgumentTypeError",
    "BytesLike",
    "CacheDamagedError",
    "CacheExistsError",
    "CacheFeatureError",
    "CacheInput",
    "CacheMismatchError",
    "CacheNotFoundError",
    "CacheProblem",
    "CacheReuseWarning",
    "CacheSource",
    "CacheSourcesDatasetError",
    "CacheSourcesDatasetResult",
    "CacheSourcesDatasetSuccess",
    "CacheVersionError",
    "CacheWriteError",
    "CacheWriteResult",
    "CacheWriteSuccess",
    "CachedDataset",
    "CachedSample",
    "CompressionAlgo",
    "DatasetRTError",
    "DatasetRTWarning",
    "DatasetRuntime",
    "EmptySourceError",
    "InternalError",
    "InvalidArgumentError",
    "Metadata",
    "MetadataTableError",
    "MetadataTableTypeError",
    "MetadataValue",
    "PolarsVersionError",
    "ReaderConfig",
    "RepairReport",
    "Rows",
    "SampleBatch",
    "SampleIndexError",
    "SampleTypeError",
    "SampleValueError",
    "SchemaConflictError",
    "ShardCompression",
    "SourceNameError",
    "StorageError",
    "UnknownSampleError",
    "VerifyReport",
    "WorkerProcessError",
    "WriterConfig",
    "WriterProfilerConfig",
    "__version__",
    "repair",
    "scan_cache",
    "verify",
]

# Applications decide what becomes of log records.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:  # noqa: ANN401 - module protocol
    if name == "SizedTorchIterableDataset":
        from dataset_rt.torch import SizedTorchIterableDataset  # noqa: PLC0415 - torch is optional

        return SizedTorchIterableDataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "SizedTorchIterableDataset"])
