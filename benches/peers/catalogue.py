"""Which libraries are measured, in which environment, and how each is used."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "dataset_rt"
OWN = "own"
EVERY = ("W1", "W2", "W3", "W1T")
TEXT = ("W1T",)


@dataclass(frozen=True)
class Entry:
    """One line of the tables."""

    name: str
    environment: str
    """A key of `ENVIRONMENTS`, or `OWN`: the environment that runs the benchmark."""
    adapter: str
    """`module:class` in this package."""
    distribution: str
    note: str
    workloads: tuple[str, ...] = EVERY


ENVIRONMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    # Each step is one call of pip, so that what does not install takes nothing else with it.
    "light": (
        ("numpy", "pyarrow", "polars"),
        ("lmdb",),
        ("bagz",),
        ("pylance",),
        ("vortex-data",),
        ("datasets",),
        ("array-record", "grain"),
        ("tfrecord",),
    ),
    "torch": (
        ("torch", "torchvision", "numpy"),
        ("mosaicml-streaming",),
        ("litdata",),
        ("webdataset",),
        ("zephon[parquet,streaming]==0.2.0",),
    ),
    # The name of the package on PyPI is that of the earlier implementation: it stays alone.
    "reference": (("numpy", "dataset-rt==0.4.8"),),
}
DISK = "12 GB: 8 GB for the environments, most of it PyTorch, and 4 GB for the largest workload"

CATALOGUE = (
    Entry(OURS, OWN, "with_dataset_rt:Ours", "dataset-rt", "2 workers, checksums on"),
    Entry(
        "dataset_rt, LZ4",
        OWN,
        "with_dataset_rt:OursLz4",
        "dataset-rt",
        "each payload by itself",
        TEXT,
    ),
    Entry(
        "dataset-rt 0.4.8",
        "reference",
        "with_dataset_rt:Earlier",
        "dataset-rt",
        "the reference implementation, 2 workers; shuffles with replacement",
    ),
    Entry("bagz", "light", "with_bagz:Bagz", "bagz", "`reader[i]`; fields packed in front"),
    Entry(
        "bagz, many", "light", "with_bagz:BagzMany", "bagz", "`read_indices`, 512 records a call"
    ),
    Entry("bagz, zstd", "light", "with_bagz:BagzZstd", "bagz", "each record by itself", TEXT),
    Entry(
        "LMDB", "light", "with_lmdb:Lmdb", "lmdb", "one read transaction; fields packed in front"
    ),
    Entry(
        "Parquet, pyarrow", "light", "with_parquet:PyArrow", "pyarrow", "row groups of 8 MB, mapped"
    ),
    Entry(
        "Parquet, pyarrow, zstd", "light", "with_parquet:PyArrowZstd", "pyarrow", "as above", TEXT
    ),
    Entry("Parquet, Polars", "light", "with_parquet:Polars", "polars", "whole file in memory"),
    Entry("Lance", "light", "with_lance:Lance", "pylance", "`take` of 1,024 rows"),
    Entry("Vortex", "light", "with_vortex:Vortex", "vortex-data", "scans of 4,096 sorted rows"),
    Entry("HF datasets", "light", "with_hf:Rows", "datasets", "row by row"),
    Entry("HF datasets, many", "light", "with_hf:Batches", "datasets", "256 rows a call"),
    Entry(
        "ArrayRecord",
        "light",
        "with_array_record:ArrayRecord",
        "array-record",
        "one record a group",
    ),
    Entry("Grain", "light", "with_array_record:Grain", "grain", "over ArrayRecord, calling thread"),
    Entry(
        "MosaicML Streaming",
        "torch",
        "with_streaming:Streaming",
        "mosaicml-streaming",
        "`StreamingDataset`, local",
    ),
    Entry(
        "MosaicML Streaming, local",
        "torch",
        "with_streaming:Local",
        "mosaicml-streaming",
        "`LocalDataset`",
    ),
    Entry("LitData", "torch", "with_litdata:LitData", "litdata", "local chunks of 64 MB"),
    Entry("WebDataset", "torch", "with_webdataset:WebDataset", "webdataset", "tar files of 64 MB"),
    Entry("TFRecord", "light", "with_tfrecord:TfRecord", "tfrecord", "package `tfrecord`"),
    Entry("zephon", "torch", "with_zephon:Zephon", "zephon", "over Parquet, 2 threads"),
)
