"""Ways to break a small cache: a changed model whose checksums fit, or damage to finished files."""

from collections.abc import Callable

from model.arrow import ArrowFile
from model.cache import Cache, Index, Section, Shard
from model.schema import Field

Files = dict[str, bytes]
S0, S1 = "shards/000000.bin", "shards/000001.bin"
FIELDS = [
    Field("n", "int64"),
    Field("t", "utf8", True),
    Field("b", "bool"),
    Field("f", "float64", True),
]
COLUMNS = [[1, 2, 3, 4], ["aä", None, "", "ccc"], [True, False, True, True], [0.5, 1.5, None, 2.5]]


def base(**hooks) -> Cache:
    """Four samples in two shards of equal size; buffers: n 0 1, t 2 3 4, b 5 6, f 7 8."""
    return Cache(
        [b"alpha", b"beta", b"gamma", b"beto"], FIELDS, COLUMNS, parts=[(0, [2, 2])], hooks=hooks
    )


def packed(**hooks) -> Cache:
    return Cache([b"a" * 100, b"b" * 100, bytes(range(50))], codec="lz4", hooks=hooks)


# --- ways to break -----------------------------------------------------------------------------


def damaged(edit: Callable[[Files], None], make=base) -> Files:
    return make(files=edit).build()


def poked(name: str, at: int, make=base) -> Files:
    """One bit of one byte of a finished file."""

    def edit(files: Files) -> None:
        raw = bytearray(files[name])
        raw[at] ^= 0x10
        files[name] = bytes(raw)

    return damaged(edit, make)


def on_index(edit: Callable[[Index], None], make=base) -> Files:
    return make(index=edit).build()


def on_sections(edit: Callable[[list[Section]], None], make=base) -> Files:
    return on_index(lambda index: setattr(index, "edit", edit), make)


def on_shard(edit: Callable[[Shard], None], number: int = 1, make=base) -> Files:
    return make(shards=lambda shards: edit(shards[number])).build()


def on_arrow(edit: Callable[[ArrowFile], None]) -> Files:
    return base(arrow=edit).build()


def on_batch(**changes) -> Files:
    return on_arrow(lambda a: [setattr(a.batches[0], k, v) for k, v in changes.items()])


def on_member(edit: Callable[[dict], None], make=base) -> Files:
    return make(manifest=edit).build()


def on_entry(number: int, **changes) -> Files:
    def edit(index: Index) -> None:
        position, stored, crc = index.entries[number]
        position = changes.get("shard", position >> 40) << 40 | changes.get(
            "offset", position & (1 << 40) - 1
        )
        index.entries[number] = (position, changes.get("stored", stored), crc)

    return on_index(edit)


def put(name: str, value):
    """A setter for on_index, on_shard and the like."""
    return lambda model: setattr(model, name, value)
