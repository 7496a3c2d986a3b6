"""Outputs of the unit vectors of format.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataset_rt_reader.cache import Cache
from dataset_rt_reader.checksums import block_sums, crc32c
from dataset_rt_reader.errors import CacheError
from dataset_rt_reader.identity import content_identity
from dataset_rt_reader.index import HEADER_SIZE, Entry, IndexHeader, Section
from dataset_rt_reader.lz4 import BlockError, decompress_block
from dataset_rt_reader.manifest import Codec, Field, FieldType, check_envelope, is_shard_name
from dataset_rt_reader.shard import Header, Records, Trailer
from dataset_rt_reader.writing import batch_rows, shard_samples

from .tagged import tag, tags

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dataset_rt_reader.metadata import Value

    from .tagged import Inputs, Json


def crc(case: Inputs, _folder: Path) -> Json:
    """``unit/crc32c``."""
    number = crc32c(case.data("data"))
    return {"number": tag("uint64", number), "hex": tag("utf8", f"{number:08x}")}


def sums(case: Inputs, _folder: Path) -> Json:
    """``unit/block-sums``."""
    return tags("uint64", block_sums(bytes(case.number("zero_bytes"))))


def lz4(case: Inputs, _folder: Path) -> Json:
    """``unit/lz4-blocks``."""
    try:
        return tag("bytes", decompress_block(case.data("stored"), case.number("raw_len")))
    except BlockError:
        return tag("null", None)


def shard_parts(case: Inputs, _folder: Path) -> Json:
    """``unit/shard-parts``."""
    header, trailer = Header.unpack(case.data("header")), Trailer.unpack(case.data("trailer"))
    codec = list(Codec)[header.codec]
    records = Records.unpack(case.data("footer"), trailer.count, codec, 1 << header.align)
    return {
        "header": {
            name: tag("uint64", getattr(header, name))
            for name in ("codec", "align", "part", "first", "ordinal")
        },
        "trailer": {
            "count": tag("uint64", trailer.count),
            "F": tag("uint64", trailer.footer),
            "size": tag("uint64", trailer.size),
            "id": tag("bytes", trailer.id),
            "last": tag("bool", trailer.last),
        },
        "records": {
            name: tags("uint64", getattr(records, name))
            for name in ("offsets", "stored_len", "raw_len", "crc")
        },
    }


def index_entry(case: Inputs, _folder: Path) -> Json:
    """``unit/index-entries``."""
    entry = Entry.unpack(case.data("entry"))
    names = ("shard", "offset", "stored_len", "crc")
    return {name: tag("uint64", getattr(entry, name)) for name in names}


def index_header(case: Inputs, _folder: Path) -> Json:
    """``unit/index-headers``."""
    head = case.data("head")
    header = IndexHeader.unpack(head[:HEADER_SIZE])
    rows = [Section.unpack(head[at : at + 32]) for at in range(HEADER_SIZE, len(head), 32)]
    parts: dict[str, Json] = {
        name: tag("uint64", getattr(header, name))
        for name in ("codec", "align", "samples", "shards", "size")
    }
    parts["identity"] = tag("bytes", header.identity)
    parts["sections"] = {
        name: tags("uint64", [getattr(row, name) for row in rows])
        for name in ("kind", "flags", "offset", "length", "crc")
    }
    return parts


def rotation(case: Inputs, _folder: Path) -> Json:
    """``unit/rotation``."""
    lengths, limit = case.numbers("stored_len"), case.number("max_shard_bytes")
    codec = Codec(case.text("codec"))
    return tags("uint64", shard_samples(lengths, limit, 1 << case.number("align"), codec))


def batches(case: Inputs, _folder: Path) -> Json:
    """``unit/batches``."""
    runs = zip(case.numbers("rows"), case.numbers("bytes"), strict=True)
    return tags("uint64", batch_rows(runs))


def identity(case: Inputs, folder: Path) -> Json:
    """``unit/identity``: the columns are those of a valid cache."""
    pairs = list(zip(case.numbers("raw_len"), case.numbers("crc"), strict=True))
    with Cache(folder / "v1" / "valid" / case.text("cache") / "cache") as cache:
        names = [field.name for field in cache.fields]

        def column(number: int, start: int, end: int) -> Sequence[Value]:
            return cache.column(names[number])[start:end]

        digest = content_identity(
            len(pairs), cache.fields, lambda start, end: pairs[start:end], column
        )
    return tag("bytes", digest)


def identity_by_rule(case: Inputs, _folder: Path) -> Json:
    """``unit/identity-by-rule``."""
    fields = (Field("n", FieldType.INT64, False), Field("t", FieldType.UTF8, True))  # noqa: FBT003

    def payloads(start: int, end: int) -> list[tuple[int, int]]:
        return [(i % 7, i * 2654435761 % 2**32) for i in range(start, end)]

    def column(number: int, start: int, end: int) -> Sequence[Value]:
        if number == 0:
            return range(start, end)
        return [None if i % 3 == 0 else str(i) for i in range(start, end)]

    return tag("bytes", content_identity(case.number("samples"), fields, payloads, column))


def shard_name(case: Inputs, _folder: Path) -> Json:
    """``unit/shard-names``."""
    return tag("bool", is_shard_name(case.text("name")))


def manifest_tail(case: Inputs, _folder: Path) -> Json:
    """``unit/manifest-tail``."""
    try:
        check_envelope(case.data("manifest"))
    except CacheError as error:
        return tag("utf8", error.code.value)
    return tag("utf8", "ok")
