"""TFRecord through the `tfrecord` package: one file of `Example` messages, read in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tfrecord.iterator_utils import shuffle_iterator
from tfrecord.reader import tfrecord_loader
from tfrecord.writer import TFRecordWriter

from benches.tally import Tally

from .peer import Peer, Shuffle, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benches.workloads import Fields

KINDS = {"data": "byte", "label": "int", "score": "float", "split": "byte", "flag": "int"}
BUFFER = 5_000


def _example(data: bytes, fields: Fields) -> dict[str, tuple[Any, str]]:
    values = {**fields, "data": data, "split": str(fields["split"]).encode()}
    values["flag"] = int(fields["flag"])
    return {name: (values[name], kind) for name, kind in KINDS.items()}


class TfRecord(Peer["Mapping[str, Any]"]):
    """Shuffled through its queue of 5,000. Its floats have 32 bits."""

    shuffle: ClassVar[Shuffle] = "buffer"

    @property
    def _path(self) -> str:
        return str(self.folder / "data.tfrecord")

    def write(self) -> None:
        writer = TFRecordWriter(self._path)
        for example in self.workload.made(_example):
            writer.write(example)
        writer.close()

    def open(self) -> None:
        """Nothing is kept open: each pass opens the file."""

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return iter(tfrecord_loader(self._path, None, KINDS))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        return iter(shuffle_iterator(self.ordered(), queue_size=BUFFER))

    def weighted(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        raise UnsupportedError("no access by row")

    @staticmethod
    def count(records: Iterable[Mapping[str, Any]]) -> Tally:
        count = size = labels = 0
        for record in records:
            count += 1
            size += len(record["data"])
            labels += int(record["label"][0])
        return Tally(count, size, labels)

    @staticmethod
    def plain(record: Mapping[str, Any]) -> tuple[bytes, Fields]:
        return bytes(record["data"]), {
            "label": int(record["label"][0]),
            "score": float(record["score"][0]),
            "split": bytes(record["split"]).decode(),
            "flag": bool(record["flag"][0]),
        }
