"""zephon over Parquet: the file that the pyarrow adapter writes, through its pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from zephon import Pipeline
from zephon.io import Dataset
from zephon.work import MixtureSpec, StaticMixtureWorkSource

from benches.tally import Tally

from .peer import Peer, UnsupportedError
from .tables import SCHEMA, column_lists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benches.workloads import Fields


class Zephon(Peer[Any]):
    """Two fetching threads, batches of 256; shuffled over the whole dataset."""

    draws: ClassVar[str] = "none"

    def write(self) -> None:
        rows = self.rows_at_once(10_000, 8 << 20)
        path = self.folder / "data.parquet"
        with pq.ParquetWriter(path, SCHEMA, compression="NONE", use_dictionary=["split"]) as writer:
            for piece in column_lists(self.workload, rows):
                writer.write_table(pa.table(piece, schema=SCHEMA), row_group_size=rows)

    def open(self) -> None:
        self.dataset = Dataset.from_path("all", str(self.folder))

    def _pass(self, *, shuffle: bool, seed: int = 1) -> Iterator[Any]:
        kind: dict[str, Any] = {"shuffle_shards": shuffle}
        if shuffle:
            kind |= {"shuffle_within_shard": False, "shuffle_block_size": "global"}
        source = StaticMixtureWorkSource(
            datasets=[self.dataset],
            mixture=MixtureSpec({"all": 1.0}),
            seed=seed,
            chunk_size=min(16_384, self.workload.samples),
            exhausted_policy="redistribute",
            **kind,
        )
        batches = Pipeline(source).fetch_parallelism(2).batch(256, drop_last=False)
        return (record for batch in batches for record in batch.records)

    def ordered(self) -> Iterator[Any]:
        return self._pass(shuffle=False)

    def shuffled(self, seed: int) -> Iterator[Any]:
        return self._pass(shuffle=True, seed=seed)

    def weighted(self, seed: int) -> Iterator[Any]:  # noqa: ARG002
        raise UnsupportedError("weights choose between datasets, not between samples")

    @staticmethod
    def count(records: Iterable[Any]) -> Tally:
        count = size = labels = 0
        for record in records:
            fields = record.payload
            count += 1
            size += len(fields["data"])
            labels += fields["label"]
        return Tally(count, size, labels)

    @staticmethod
    def plain(record: Any) -> tuple[bytes, Fields]:  # noqa: ANN401
        fields = record.payload
        return bytes(fields["data"]), {
            "label": int(fields["label"]),
            "score": float(fields["score"]),
            "split": str(fields["split"]),
            "flag": bool(fields["flag"]),
        }
