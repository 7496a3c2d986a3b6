"""Copies of vectors, and checksums made right again after a test has changed bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from pathlib import Path

from dataset_rt_reader.checksums import block_sums, crc32c

_BESIDE_READERS = Path(__file__).resolve().parents[3] / "vectors"


def vectors() -> Path:
    """Return the folder of vectors: ``DATASET_RT_VECTORS``, or the one beside the readers."""
    named = os.environ.get("DATASET_RT_VECTORS")
    place = Path(named) if named else _BESIDE_READERS
    if not (place / "index.json").is_file():
        raise FileNotFoundError(f"no vectors in {place}")
    return place


def copy_of(name: str, folder: Path) -> Path:
    """Copy the cache of a valid vector to a new folder and return its root."""
    root = folder / name
    shutil.copytree(vectors() / "v1" / "valid" / name / "cache", root)
    return root


def change(path: Path, offset: int, data: bytes) -> None:
    """Overwrite bytes of a file; negative offsets count from its end."""
    content = bytearray(path.read_bytes())
    start = offset % len(content)
    content[start : start + len(data)] = data
    path.write_bytes(content)


def edit_manifest(root: Path, **members: object) -> None:
    """Set members of the manifest, and seal it."""
    path = root / "manifest.json"
    document = json.loads(path.read_bytes())
    document.update(members)
    write_manifest(root, document)


def write_manifest(root: Path, document: dict[str, object]) -> None:
    """Write a manifest with prefix and tail of the format."""
    rest = {k: v for k, v in document.items() if k not in {"format", "version", "sha256"}}
    head = {"format": "dataset_rt.cache", "version": 1}
    body = json.dumps({**head, **rest}, separators=(",", ":"))[:-1].encode()
    seal_manifest(root, body)


def seal_manifest(root: Path, body: bytes) -> None:
    """Write ``body`` and the tail that fits it."""
    tail = b',"sha256":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()
    (root / "manifest.json").write_bytes(body + tail)


def seal(root: Path) -> None:
    """Make the sums of metadata, index and manifest right for the files as they are.

    The metadata has to keep its size; trailers, footers and ids of shards are left alone.
    """
    document = json.loads((root / "manifest.json").read_bytes())
    metadata = (root / "metadata.arrow").read_bytes()
    index = bytearray((root / "index.bin").read_bytes())
    (sections,) = struct.unpack_from("<I", index, 40)
    end = 128 + 32 * sections
    for at in range(128, end, 32):
        kind, _, offset, length = struct.unpack_from("<IIQQ", index, at)
        if kind == 32:
            index[offset : offset + length] = struct.pack(f"<{length // 4}I", *block_sums(metadata))
        if kind >= 16:
            struct.pack_into("<I", index, at + 24, crc32c(bytes(index[offset : offset + length])))
    crc = crc32c(bytes(index[:124]) + bytes(index[128:end]))
    struct.pack_into("<I", index, 124, crc)
    (root / "index.bin").write_bytes(index)
    for member, data in (("metadata", metadata), ("index", bytes(index))):
        document[member] |= {"size": len(data), "crc32c": f"{crc32c(data):08x}"}
    write_manifest(root, document)
