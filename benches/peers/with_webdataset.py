"""WebDataset: tar files of about 64 MB, two members a sample."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import webdataset

from benches.tally import Tally

from .peer import Peer, Shuffle, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benches.workloads import Fields

BUFFER = 5_000


def _members(data: bytes, fields: Fields) -> dict[str, Any]:
    return {"bin": data, "json": json.dumps(fields).encode()}


class WebDataset(Peer["Mapping[str, Any]"]):
    """Iterated in this process; shuffled: order of the files, then a buffer of 5,000 samples."""

    shuffle: ClassVar[Shuffle] = "buffer"

    def write(self) -> None:
        pattern = str(self.folder / "shard-%05d.tar")
        with webdataset.ShardWriter(pattern, maxsize=64 << 20, maxcount=1 << 40, verbose=0) as tar:
            for row, members in enumerate(self.workload.made(_members)):
                tar.write({"__key__": f"{row:08d}", **members})

    def open(self) -> None:
        self.files = sorted(map(str, self.folder.glob("*.tar")))

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return iter(webdataset.WebDataset(self.files, shardshuffle=False, empty_check=False))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        dataset = webdataset.WebDataset(
            self.files, shardshuffle=len(self.files), seed=seed, empty_check=False
        )
        return iter(dataset.shuffle(BUFFER))

    def weighted(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        raise UnsupportedError("no access by row")

    @staticmethod
    def count(records: Iterable[Mapping[str, Any]]) -> Tally:
        count = size = labels = 0
        for record in records:
            fields = json.loads(record["json"])
            count += 1
            size += len(record["bin"])
            labels += fields["label"]
        return Tally(count, size, labels)

    @staticmethod
    def plain(record: Mapping[str, Any]) -> tuple[bytes, Fields]:
        return record["bin"], json.loads(record["json"])
