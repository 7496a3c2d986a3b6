"""A PyTorch training loop over cached digits, on the CPU.

python examples/torch_loop.py [folder]
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import dataset_rt
import numpy as np
import polars as pl
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

EPOCHS = 8


class Digits:
    """Scikit-learn's handwritten digits: 64 bytes an image, and its label."""

    name = "digits"
    fingerprint = "sklearn-digits, labels"

    def __iter__(self) -> Iterator[dataset_rt.CacheInput]:
        digits = load_digits()
        for image, label in zip(digits.images.astype(np.uint8), digits.target, strict=True):
            yield dataset_rt.CacheInput(image.tobytes(), {"label": int(label)})


def collate(samples: Sequence[dataset_rt.CachedSample]) -> tuple[torch.Tensor, torch.Tensor]:
    """Decodes a batch: payload bytes to images, labels from the metadata."""
    pixels = np.frombuffer(b"".join(sample.data for sample in samples), dtype=np.uint8)
    images = torch.from_numpy(pixels.reshape(-1, 1, 8, 8) / np.float32(16))
    return images, torch.tensor([sample.metadata["label"] for sample in samples])


def accuracy(model: nn.Module, samples: Sequence[dataset_rt.CachedSample]) -> float:
    """Share of the samples whose label the model finds."""
    images, labels = collate(samples)
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def main(folder: Path) -> None:
    """Runs the example with its cache in `folder`."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # more only get in each other's way with a model this small
    runtime = dataset_rt.DatasetRuntime(num_workers=2)
    # Permutations: each active row once a pass.
    config = dataset_rt.ReaderConfig(seed=7, replacement=False)
    made = runtime.from_cache_sources(Digits(), folder, reader_config=config)
    if isinstance(made, dataset_rt.CacheSourcesDatasetError):
        raise SystemExit(made.message)
    dataset = made.dataset

    table = dataset.get_metadata()
    held_out = list(dataset.rows.take(table["sample_id"].filter(table["sample_id"] % 10 == 0)))
    dataset.update_metadata(table.filter(pl.col("sample_id") % 10 != 0))

    # No worker processes: the runtime's threads read ahead.
    loader = DataLoader(
        dataset.to_torch_iterable_dataset(), batch_size=64, num_workers=0, collate_fn=collate
    )
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        shown = f"{accuracy(model, held_out):.3f}"
        print(f"epoch {epoch}: loss {total / len(dataset):.3f}, held-out accuracy {shown}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
