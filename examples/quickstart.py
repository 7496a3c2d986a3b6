"""Cache handwritten digits, choose and weight them as a table, train on the cached bytes.

    python examples/quickstart.py [folder]

The digits come with scikit-learn. A second run with the same folder reuses the cache.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dataset_rt
import numpy as np
import numpy.typing as npt
import polars as pl
from dataset_rt import expr as drt
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

EPOCHS = 5
RARE = [3, 8]
"""Two classes that are made rare below, so that weights have something to mend."""


class Digits:
    """Each image as 64 bytes, with its label and what the pixels tell about it."""

    name = "digits"
    # Change this when the code below changes, and the cache is no longer taken for its result.
    fingerprint = "sklearn-digits, attributes 1"

    def __iter__(self) -> Iterator[dataset_rt.CacheInput]:
        digits = load_digits()
        for image, label in zip(digits.images.astype(np.uint8), digits.target, strict=True):
            ink = image.sum(dtype=np.int64)
            rows, columns = np.indices(image.shape)
            yield dataset_rt.CacheInput(
                image.tobytes(),
                {
                    "label": int(label),
                    "ink": float(image.mean() / 16),
                    "rows_used": int(image.any(axis=1).sum()),
                    "centre_row": float((rows * image).sum() / ink),
                    "centre_column": float((columns * image).sum() / ink),
                },
            )


def classes(table: pl.DataFrame) -> pl.DataFrame:
    """How many rows each class has, and its share of the draws."""
    share = pl.col("weight").sum() / table["weight"].sum()
    return table.group_by("label").agg(pl.len().alias("rows"), share.alias("share of draws"))


def pixels(payloads: list[bytes]) -> npt.NDArray[np.float64]:
    """Payloads back to numbers: one image a row, 0.0 to 1.0."""
    return np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(-1, 64) / 16


def main(folder: Path) -> None:
    """Runs the example with its cache in `folder`."""
    runtime = dataset_rt.DatasetRuntime(num_workers=2)

    # Written on the first run, reused afterwards.
    made = runtime.from_cache_sources(
        Digits(), folder, reader_config=dataset_rt.ReaderConfig(seed=42)
    )
    if isinstance(made, dataset_rt.CacheSourcesDatasetError):
        raise SystemExit(made.message)
    dataset, [result] = made
    print(f"{result.status}, because {result.reason}: {dataset!r}")

    # The samples as a table. Every tenth row of it is held out, whatever else happens to the rest.
    table = dataset.get_metadata()
    print(table.head(3))
    held_out = table.filter(pl.col("sample_id") % 10 == 0)
    train = table.filter(pl.col("sample_id") % 10 != 0)

    # Drop faint images, and most of two classes; then draw all classes equally often.
    rare = pl.col("label").is_in(RARE) & (pl.col("sample_id") % 8 != 1)
    train = train.filter(pl.col("ink") > 0.25, ~rare)
    print(f"{train.height} of {table.height} rows to train on", classes(train).sort("label"))
    train = train.with_columns(drt.balanced_weight("label").alias("weight"))
    print("reweighted", classes(train).sort("label"))

    # Train on the bytes. Each pass of the loop is the next part of one shuffled stream.
    dataset.update_metadata(train)
    dataset.set_epoch_len(table.height)
    model = SGDClassifier(loss="log_loss", average=True, random_state=0)
    for _ in range(EPOCHS):
        for batch in dataset.iter_batches(64):
            labels = batch.metadata["label"].to_numpy()
            model.partial_fit(pixels(batch.data), labels, classes=np.arange(10))

    # Held-out rows are read by identity; they need not be active.
    samples = [dataset.get_item(*row) for row in held_out.select("cache_id", "sample_id").rows()]
    found = model.predict(pixels([sample.data for sample in samples]))
    right = [
        sample.metadata["label"] == label for sample, label in zip(samples, found, strict=True)
    ]
    print(f"held-out accuracy: {np.mean(right):.3f} on {len(right)} images")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
