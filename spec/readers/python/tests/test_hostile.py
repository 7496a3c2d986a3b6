"""Input made to mislead: every answer is a typed error, soon and without much memory."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from dataset_rt_reader import Cache, CacheError, ErrorCode, verify
from dataset_rt_reader.lz4 import BlockError, decompress_block

from .sealing import change, copy_of, edit_manifest, seal, seal_manifest

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = b'{"format":"dataset_rt.cache","version":1,'


def _code(root: Path) -> str:
    with pytest.raises(CacheError) as caught:
        verify(root)
    return caught.value.code.value


def test_sealing_an_unchanged_cache_leaves_it_valid(tmp_path: Path) -> None:
    root = copy_of("nullable", tmp_path)
    seal(root)
    assert verify(root).samples == 9


def test_every_changed_byte_of_a_named_file_is_noticed(tmp_path: Path) -> None:
    root = copy_of("minimal", tmp_path)
    for name in ("manifest.json", "metadata.arrow", "index.bin", "shards/000000.bin"):
        path = root / name
        original = path.read_bytes()
        for at in range(0, len(original), 5):
            change(path, at, bytes((original[at] ^ 0x20,)))
            _code(root)
            path.write_bytes(original)
    assert verify(root).samples == 1


@pytest.mark.parametrize("name", ["nullable", "pyarrow-metadata"])
def test_no_change_of_sealed_metadata_does_more_than_refuse(tmp_path: Path, name: str) -> None:
    root = copy_of(name, tmp_path)
    path = root / "metadata.arrow"
    original = path.read_bytes()
    outcomes = set()
    for i, at in enumerate(range(0, len(original), 67)):
        path.write_bytes(original)
        change(path, at, bytes((0, 0x7F, 0xFF)[i % 3 :][:1]))
        seal(root)
        try:
            verify(root)
            outcomes.add("valid")
        except CacheError as error:
            outcomes.add(error.code.value)
    assert outcomes <= {"valid", "metadata_invalid", "identity_mismatch"}
    assert "metadata_invalid" in outcomes


def test_no_change_of_a_sealed_index_does_more_than_refuse(tmp_path: Path) -> None:
    root = copy_of("lz4-mixed", tmp_path)
    path = root / "index.bin"
    original = path.read_bytes()
    (sections,) = struct.unpack_from("<I", original, 40)
    files = set()
    for at in range(8, 128 + 32 * sections, 5):
        # The number of sections would lead the sealing itself astray.
        if 40 <= at < 44 or 124 <= at < 128:
            continue
        path.write_bytes(original)
        change(path, at, b"\xff")
        try:
            seal(root)
        except (struct.error, MemoryError, OverflowError):
            continue
        try:
            verify(root)
        except CacheError as error:
            files.add(error.file)
    assert files <= {"index.bin", "manifest.json"}
    assert "index.bin" in files


@pytest.mark.parametrize(
    "members",
    [
        b'"required":' + b"[" * 200_000,
        b'"required":[],"x":' + b'{"a":' * 200_000,
        b'"required":[],"optional":[],"samples":1' + b"0" * 100_000,
        b'"required":[],"optional":[],"x":NaN',
        b'"required":[],"optional":[],"x":Infinity',
        b'"required":[],"optional":[],"x":"\\ud800"',
        b'"required":[],"optional":[],"x":{"y":["\\udc00"]}',
        b'"required":[],"optional":[],"x":"\t"',
        b'"required":[],"optional":[],"x":01',
        b'"required":[],"optional":[]}{"x":1',
    ],
)
def test_strange_json_is_an_invalid_manifest(tmp_path: Path, members: bytes) -> None:
    seal_manifest(tmp_path, _HEAD + members)
    assert _code(tmp_path) == "manifest_invalid"


def test_huge_numbers_in_unknown_members_are_ignored(tmp_path: Path) -> None:
    root = copy_of("minimal", tmp_path)
    edit_manifest(root, later=10**4000)
    assert verify(root).samples == 1


@pytest.mark.parametrize("value", [True, 1.5, "1", None, -1, 0, 2**53])
def test_samples_must_be_an_integer_in_range(tmp_path: Path, value: object) -> None:
    root = copy_of("minimal", tmp_path)
    edit_manifest(root, samples=value)
    assert _code(root) == "manifest_invalid"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["manifest.json", "index.bin", "shards/000000.bin"])
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path, name: str) -> None:
    root = copy_of("minimal", tmp_path)
    (root / name).unlink()
    os.mkfifo(root / name)
    assert _code(root) == "file_missing"


def test_a_folder_or_a_loop_in_place_of_a_file_is_a_missing_file(tmp_path: Path) -> None:
    root = copy_of("minimal", tmp_path)
    index = root / "index.bin"
    index.unlink()
    index.mkdir()
    assert _code(root) == "file_missing"
    index.rmdir()
    index.symlink_to("index.bin")
    assert _code(root) == "file_missing"
    assert _code(tmp_path / "nowhere") == "file_missing"


def test_a_section_count_beyond_the_file_allocates_nothing(tmp_path: Path) -> None:
    root = copy_of("minimal", tmp_path)
    change(root / "index.bin", 40, b"\xff\xff\xff\xff")
    with pytest.raises(CacheError) as caught:
        Cache(root)
    assert (caught.value.code, caught.value.check) == (ErrorCode.INDEX_DAMAGED, "I2")


@pytest.mark.parametrize(
    "block",
    [
        b"\xff" * 1000,
        b"\x1fa\x01\x00" + b"\xff" * 1000,
        b"\x00\x01\x00\x00",
        b"\xf0" + b"\xff" * 300 + b"\x00",
    ],
)
def test_lengths_of_a_block_are_not_believed(block: bytes) -> None:
    with pytest.raises(BlockError):
        decompress_block(block, 2**31)


def test_a_cache_that_shrinks_while_open_gives_a_typed_error(tmp_path: Path) -> None:
    root = copy_of("many-shards", tmp_path)
    with Cache(root) as cache:
        cache.payload(0)
        for path in (root / "shards").iterdir():
            path.write_bytes(b"")
        with pytest.raises(CacheError, match="file_size"):
            cache.payload(0)
