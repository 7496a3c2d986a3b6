"""Whole verification, in the order of format.md section 10.5."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .cache import read_manifest
from .errors import CacheError, ErrorCode
from .files import CacheFile
from .identity import content_identity
from .index import Index
from .manifest import NAME as MANIFEST
from .metadata import Metadata
from .shard import Shard, check_chain

if TYPE_CHECKING:
    import os

    from .manifest import Manifest


def verify(path: str | os.PathLike[str], *, follow_links: bool = False) -> Manifest:
    """Make every check on the cache in folder ``path`` and return its manifest.

    Every changed, missing or additional byte of a file that the manifest names is noticed.

    Raises:
        CacheError: the error that section 10.5 puts first.
        OSError: the operating system refused to read a file that is there.

    """
    root = Path(path)
    manifest = read_manifest(root, follow_links=follow_links)
    names = [manifest.metadata.name, manifest.index.name, *(s.path for s in manifest.shards)]
    sizes = [manifest.metadata.size, manifest.index.size, *(s.size for s in manifest.shards)]
    for name, size in zip(names, sizes, strict=True):
        with CacheFile(root, name, "F1", follow_links=follow_links) as file:
            file.check_size(size)
    with ExitStack() as files:
        index_file = files.enter_context(
            CacheFile(root, manifest.index.name, "F1", follow_links=follow_links)
        )
        index_file.check_size(manifest.index.size)
        index = Index(index_file, manifest)
        index.verify()
        _check_totals(index, manifest)
        metadata_file = files.enter_context(
            CacheFile(root, manifest.metadata.name, "F1", follow_links=follow_links)
        )
        metadata_file.check_size(manifest.metadata.size)
        metadata = Metadata.verified(metadata_file, manifest, index.metadata_sums)
        _verify_shards(root, index, manifest, follow_links=follow_links)
        _check_identity(index, metadata, manifest)
    return manifest


def _check_totals(index: Index, manifest: Manifest) -> None:
    """Make the checks E1 .. E4 on every sample, and T1."""
    payload_bytes = stored_bytes = 0
    for entry, raw_len in index.lengths_and_crcs():
        payload_bytes += raw_len
        stored_bytes += entry.stored_len
    for member, found, said in (
        ("payload_bytes", payload_bytes, manifest.payload_bytes),
        ("stored_bytes", stored_bytes, manifest.stored_bytes),
    ):
        if found != said:
            detail = f"the samples have {found}, but it is {said}"
            _refuse(ErrorCode.MANIFEST_INVALID, "T1", detail, member)


def _verify_shards(root: Path, index: Index, manifest: Manifest, *, follow_links: bool) -> None:
    """Make the checks S1 .. S17."""
    links = []
    first_sample = 0
    for number, info in enumerate(manifest.shards):
        with CacheFile(root, info.path, "F1", follow_links=follow_links) as file:
            shard = Shard(file, info, manifest)
            links.append(shard.verify(index, number, first_sample))
        first_sample += info.samples
    check_chain(links)


def _check_identity(index: Index, metadata: Metadata, manifest: Manifest) -> None:
    """Make check D1."""

    def payloads(start: int, end: int) -> list[tuple[int, int]]:
        return [(index.raw_len(i), index.entry(i).crc) for i in range(start, end)]

    identity = content_identity(manifest.samples, manifest.fields, payloads, metadata.column)
    if identity != manifest.identity:
        detail = f"the content has the identity {identity.hex()}"
        _refuse(ErrorCode.IDENTITY_MISMATCH, "D1", detail, "identity")


def _refuse(code: ErrorCode, check: str, detail: str, place: str) -> NoReturn:
    raise CacheError(code, check, MANIFEST, detail, place=place)
