"""Files that change under a dataset that is half read.

It gives the old bytes or a typed error, never others, and the process lives on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests import support

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import faulthandler, gc, json, os, shutil, sys
from pathlib import Path
from dataset_rt import CacheInput, DatasetRuntime, ReaderConfig, WriterConfig
from dataset_rt.errors import CacheDamagedError, CacheNotFoundError, DatasetRTError, StorageError
from tests import support

root, mapped, handler = Path(sys.argv[1]), sys.argv[2] == "True", sys.argv[3]
if handler == "before":
    faulthandler.enable()
COUNT, SIZE = 400, 1000
runtime = DatasetRuntime(num_workers=2)
writer = WriterConfig(show_progress=False, max_shard_bytes=60_000)
reader = ReaderConfig(seed=0, shuffle=False, use_mmap=mapped, prefetch_size=1)

def samples(start):
    # Texts of one length, so that the files of two caches have the same sizes.
    return [
        CacheInput(support.payload(start + i, SIZE), {"i": start + i, "t": f"{start + i:090d}"})
        for i in range(COUNT)
    ]

def expected(i):
    return support.payload(i, SIZE), {"i": i, "t": f"{i:090d}"}

old = support.write(runtime, root / "old", samples(0), config=writer)
new = support.write(runtime, root / "new", samples(1000), config=writer)
INDEX, METADATA, MANIFEST = "index.bin", "metadata.arrow", "manifest.json"
FIRST, LATER, LAST = ("shards/" + support.shards(old)[i].name for i in (0, 4, -1))
FILES = [MANIFEST, METADATA, INDEX, FIRST, LATER, LAST]
for name in FILES[1:]:
    assert (old / name).stat().st_size == (new / name).stat().st_size, name

def cut(part):
    return lambda file: os.truncate(file, int(file.stat().st_size * part))

def cut_last(file):
    # Within the last page: nothing faults, and zeros follow.
    size = file.stat().st_size
    os.truncate(file, max(size - 2000, size // 4096 * 4096 + 1))

def grow(file):
    os.truncate(file, file.stat().st_size + 5000)

def at(file):
    return max(i for i, part in enumerate(file.parts) if part.startswith("cache-"))

def inside(file):
    return Path(*file.parts[at(file) + 1:])

def replace(file):
    copy = file.with_name("copy")
    shutil.copy(new / inside(file), copy)
    copy.replace(file)

def replace_by_noise(file):
    copy = file.with_name("copy")
    copy.write_bytes(support.payload(7, file.stat().st_size))
    copy.replace(file)

def overwrite(file):
    # In place: the map shows the bytes of the other cache.
    with file.open("r+b") as out:
        out.write((new / inside(file)).read_bytes())

def delete(file):
    file.unlink()

def place_folder(file):
    file.unlink()
    file.mkdir()

def place_fifo(file):
    file.unlink()
    os.mkfifo(file)

def place_link(file):
    file.unlink()
    file.symlink_to(new / inside(file))

def swap(one, other):
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)

changes = {}
for name in FILES:
    for what in (cut(0), cut(0.5), cut_last, grow, replace, replace_by_noise, delete, place_folder,
                 place_fifo, place_link):
        key = f"{name} {getattr(what, '__name__', what)} {len(changes)}"
        changes[key] = lambda cache, name=name, what=what: what(cache / name)
for name in (INDEX, FIRST, LATER, LAST):
    changes[f"{name} overwrite"] = lambda cache, name=name: overwrite(cache / name)
changes["swap shards"] = lambda cache: swap(cache / FIRST, cache / LATER)
changes["swap files"] = lambda cache: swap(cache / INDEX, cache / METADATA)
changes["all shards replaced"] = lambda cache: [
    replace(file) for file in support.shards(cache)]
changes["all replaced"] = lambda cache: [
    replace(cache / name) for name in (INDEX, METADATA, MANIFEST)
] + [replace(file) for file in support.shards(cache)]
changes["folder replaced"] = lambda cache: (
    shutil.rmtree(cache), shutil.copytree(new, cache))
changes["folder swapped"] = lambda cache: (
    shutil.copytree(new, root / "copy"), swap(cache, root / "copy"), shutil.rmtree(root / "copy"))
changes["folder deleted"] = lambda cache: shutil.rmtree(cache)
changes["shards deleted"] = lambda cache: shutil.rmtree(cache / "shards")

ALLOWED = (CacheDamagedError, CacheNotFoundError, StorageError)
totals = {"right": 0, "error": 0}

def attempt(read):
    try:
        found = read()
    except StopIteration:
        raise
    except DatasetRTError as error:
        assert isinstance(error, ALLOWED), repr(error)
        assert "cache-" in str(error), error
        totals["error"] += 1
        return None
    totals["right"] += 1
    return found

def check(sample, i):
    if sample is not None:
        assert (sample.sample_id, sample.data) == (i, expected(i)[0])
        # Read when it is first asked for.
        metadata = attempt(lambda: sample.metadata)
        assert metadata is None or metadata == expected(i)[1], (i, metadata)

for number, (what, change) in enumerate(changes.items()):
    print(what, file=sys.stderr, flush=True)
    cache = root / f"cache-{number}"
    shutil.copytree(old, cache)
    dataset = runtime.cached_dataset([cache], reader_config=reader)
    untouched = runtime.cached_dataset([cache], reader_config=reader)
    iterator = iter(dataset)
    for i in range(COUNT // 2):
        check(next(iterator), i)
    if handler == "after" and number == 0:
        faulthandler.enable()
    change(cache)
    for i in range(COUNT // 2, COUNT):
        check(attempt(lambda: next(iterator)), i)
    assert next(iterator, None) is None
    for each in (dataset, untouched):
        iterator = iter(each)
        for i in range(COUNT):
            check(attempt(lambda: next(iterator)), i)
        assert next(iterator, None) is None
        for i in (0, 199, 399):
            check(attempt(lambda: each.get_item(0, i)), i)
        batch = attempt(lambda: each.rows[100:300])
        if batch is not None:
            for i, sample in zip(range(100, 300), batch):
                check(sample, i)
        batches = iter(each.iter_batches(150))
        for start in (0, 150, 300):
            batch = attempt(lambda: next(batches))
            if batch is not None:
                assert batch.data == [expected(i)[0] for i in range(start, min(start + 150, 400))]
        table = attempt(each.get_metadata)
        if table is not None:
            assert table["i"].to_list() == list(range(COUNT))
            assert table["t"].to_list() == [f"{i:090d}" for i in range(COUNT)]
    shutil.rmtree(cache, ignore_errors=True)
print(json.dumps([len(changes), totals]))
"""


@pytest.mark.rule("Old files or an error", "A truncated file is an error")
@pytest.mark.parametrize(
    ("mapped", "handler"),
    [(False, "never"), (True, "never"), (True, "before"), (True, "after")],
)
def test_every_change_under_a_dataset_that_is_half_read(
    base: Path, mapped: bool, handler: str
) -> None:
    done = support.run(PROGRAM, base, mapped, handler, timeout=2 * support.PATIENCE)
    changes, totals = json.loads(done.stdout)
    assert changes > 60
    assert totals["right"] > 10_000
    assert totals["error"] > 5_000
