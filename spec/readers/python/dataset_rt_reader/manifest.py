"""``manifest.json``: envelope, members, and the checks M1 .. M15 (format.md section 8)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NoReturn, TypeVar

from .errors import CacheError, ErrorCode
from .strict_json import JsonError, parse_object

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "manifest.json"
MAX_INTEGER = 2**53 - 1
MAX_FIELDS = 4096
MAX_FIELD_NAME = 1024
MAX_SHARDS = 2**24
MAX_SHARD_SIZE = 2**40 - 1

KNOWN_FEATURES: frozenset[str] = frozenset()
"""Names a manifest may require of this reader; version 1 defines none."""

_PREFIX = b'{"format":"dataset_rt.cache","version":'
_TAIL = re.compile(rb',"sha256":"([0-9a-f]{64})"\}\n')
_TAIL_SIZE = 78
_VERSION = re.compile(rb"(0|[1-9][0-9]{0,15}),")
_SHARD_NAME = re.compile(r"[0-9][0-9a-z-]{5,99}")
_CREATED = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?Z"
)
_RESERVED_NAMES = frozenset({"weight", "cache_id", "sample_id"})

_T = TypeVar("_T")


class FieldType(str, Enum):
    """Type of a metadata column."""

    BOOL = "bool"
    INT64 = "int64"
    FLOAT64 = "float64"
    UTF8 = "utf8"


class Codec(str, Enum):
    """How records are stored."""

    NONE = "none"
    LZ4 = "lz4"

    @property
    def number(self) -> int:
        """The codec byte of shards and ``index.bin``."""
        return 0 if self is Codec.NONE else 1

    def footer_size(self, count: int) -> int:
        """Length in bytes of the footer of a shard of ``count`` records (section 5.3)."""
        return -(-count * (8 if self is Codec.NONE else 12) // 8) * 8


@dataclass(frozen=True)
class Field:
    """One metadata column."""

    name: str
    type: FieldType
    nullable: bool
    description: str | None = None


@dataclass(frozen=True)
class FileInfo:
    """What the manifest says of one file; ``crc32c`` is a number, ``sha256`` 64 digits."""

    name: str
    size: int
    crc32c: int
    sha256: str | None


@dataclass(frozen=True)
class ShardInfo(FileInfo):
    """What the manifest says of one shard; ``name`` is without folder and ``.bin``."""

    samples: int
    id: bytes

    @property
    def path(self) -> str:
        """The file below the cache's folder."""
        return f"shards/{self.name}.bin"


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``; unknown members are left out."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    identity: bytes
    source_name: str
    source_fingerprint: str | None
    created: str
    writer: str
    samples: int
    payload_bytes: int
    stored_bytes: int
    fields: tuple[Field, ...]
    codec: Codec
    alignment: int
    user: dict[str, str] | None
    media_type: str | None
    metadata: FileInfo
    index: FileInfo
    shards: tuple[ShardInfo, ...]


def is_shard_name(name: str) -> bool:
    """Whether ``name`` is allowed for a shard (section 3)."""
    return _SHARD_NAME.fullmatch(name) is not None


def check_envelope(data: bytes) -> None:
    """Make the checks M2 .. M6 on a whole manifest: tail, digest, prefix and version."""
    tail = _TAIL.fullmatch(data[-_TAIL_SIZE:])
    if tail is None:
        _refuse(ErrorCode.MANIFEST_DAMAGED, "M2", "the last 78 bytes aren't the tail")
    body = memoryview(data)[:-_TAIL_SIZE]
    digest = hashlib.sha256(body).hexdigest()
    if digest != tail[1].decode("ascii"):
        _refuse(ErrorCode.MANIFEST_DAMAGED, "M3", f"digest {digest}, but the tail says {tail[1]!r}")
    if body[: len(_PREFIX)] != _PREFIX:
        _refuse(ErrorCode.MANIFEST_DAMAGED, "M4", "doesn't begin as a manifest")
    version = _VERSION.match(body, len(_PREFIX))
    if version is None or int(version[1]) > MAX_INTEGER:
        _refuse(ErrorCode.MANIFEST_INVALID, "M5", "no version, or one of another form")
    if int(version[1]) != 1:
        detail = f"version {int(version[1])}; this reader knows version 1"
        _refuse(ErrorCode.VERSION_UNSUPPORTED, "M6", detail)


def parse_manifest(data: bytes) -> Manifest:
    """Make the checks M2 .. M15 on a whole manifest and return its content."""
    check_envelope(data)
    try:
        document = parse_object(data)
    except JsonError as error:
        _refuse(ErrorCode.MANIFEST_INVALID, "M7", str(error))
    features = {}
    for member in ("required", "optional"):
        names = document.get(member)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            _refuse(ErrorCode.MANIFEST_INVALID, "M8", "must be a list of texts", member)
        features[member] = tuple(str(name) for name in names)
    unknown = sorted(set(features["required"]) - KNOWN_FEATURES)
    if unknown:
        detail = f"needs features this reader doesn't know: {', '.join(unknown)}"
        _refuse(ErrorCode.FEATURE_UNSUPPORTED, "M9", detail, "required")
    manifest = _members(_Members(document, ""), features["required"], features["optional"])
    _check_names(manifest)
    return manifest


class _Members:
    """Members of one object, taken out by name and type (check M10)."""

    def __init__(self, members: dict[str, object], place: str) -> None:
        self._members = members
        self._place = place

    def place(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def refuse(self, name: str, detail: str) -> NoReturn:
        _refuse(ErrorCode.MANIFEST_INVALID, "M10", detail, self.place(name))

    def get(self, name: str, kind: type[_T]) -> _T:
        if name not in self._members:
            self.refuse(name, "is missing")
        value = self._members[name]
        # `bool` is a subclass of `int`, so `isinstance` would take `true` for a number.
        if type(value) is not kind:
            self.refuse(name, f"is {_kind(type(value))} instead of {_kind(kind)}")
        return value

    def integer(self, name: str, least: int = 0, most: int = MAX_INTEGER) -> int:
        value = self.get(name, int)
        if not least <= value <= most:
            self.refuse(name, f"is {value}, must be {least} .. {most}")
        return value

    def digits(self, name: str, count: int) -> str:
        value = self.get(name, str)
        if re.fullmatch(rf"[0-9a-f]{{{count}}}", value) is None:
            self.refuse(name, f"must be {count} lower-case hexadecimal digits")
        return value

    def optional_text(self, name: str) -> str | None:
        return self.get(name, str) if name in self._members else None

    def names(self) -> list[str]:
        return list(self._members)

    def raw(self, name: str) -> object:
        return self._members[name]

    def inner(self, name: str) -> _Members:
        return _Members(self.get(name, dict), self.place(name))

    def objects(self, name: str) -> Iterable[_Members]:
        for i, value in enumerate(self.get(name, list)):
            place = f"{self.place(name)}[{i}]"
            if not isinstance(value, dict):
                _refuse(ErrorCode.MANIFEST_INVALID, "M10", "must be an object", place)
            yield _Members(value, place)


def _kind(kind: type) -> str:
    names = {
        str: "text",
        int: "an integer",
        bool: "true or false",
        list: "a list",
        dict: "an object",
    }
    return names.get(kind, "null or a number that is no integer")


def _members(top: _Members, required: tuple[str, ...], optional: tuple[str, ...]) -> Manifest:
    source = top.inner("source")
    fingerprint = None
    if "fingerprint" not in source or source.raw("fingerprint") is not None:
        fingerprint = source.get("fingerprint", str)
    created = top.get("created", str)
    if _CREATED.fullmatch(created) is None:
        top.refuse("created", f"is {created!r}, must be YYYY-MM-DDThh:mm:ss[.digits]Z")
    codec_name = top.inner("codec").get("name", str)
    if codec_name not in {codec.value for codec in Codec}:
        top.refuse("codec", f"is {codec_name!r}, must be none or lz4")
    codec = Codec(codec_name)
    alignment = top.integer("alignment", 1, 4096)
    if alignment & (alignment - 1):
        top.refuse("alignment", f"is {alignment}, must be a power of two")
    user = None
    if "user" in top:
        members = top.inner("user")
        user = {name: members.get(name, str) for name in members.names()}
    manifest = Manifest(
        required=required,
        optional=optional,
        identity=bytes.fromhex(top.digits("identity", 64)),
        source_name=source.get("name", str),
        source_fingerprint=fingerprint,
        created=created,
        writer=top.get("writer", str),
        samples=top.integer("samples", 1),
        payload_bytes=top.integer("payload_bytes"),
        stored_bytes=top.integer("stored_bytes"),
        fields=tuple(_field(members) for members in top.objects("fields")),
        codec=codec,
        alignment=alignment,
        user=user,
        media_type=top.optional_text("media_type"),
        metadata=_file(top.inner("metadata"), "metadata.arrow"),
        index=_file(top.inner("index"), "index.bin"),
        shards=tuple(_shard(members, codec) for members in top.objects("shards")),
    )
    top.digits("sha256", 64)
    return manifest


def _field(members: _Members) -> Field:
    name = members.get("name", str)
    kind = members.get("type", str)
    if kind not in {known.value for known in FieldType}:
        members.refuse("type", f"is {kind!r}, must be bool, int64, float64 or utf8")
    nullable = members.get("nullable", bool)
    return Field(name, FieldType(kind), nullable, members.optional_text("description"))


def _file(members: _Members, name: str) -> FileInfo:
    found = members.get("name", str)
    if found != name:
        members.refuse("name", f"is {found!r}, must be {name!r}")
    size = members.integer("size")
    crc = int(members.digits("crc32c", 8), 16)
    return FileInfo(found, size, crc, _file_sha256(members))


def _file_sha256(members: _Members) -> str | None:
    return members.digits("sha256", 64) if "sha256" in members else None


def _shard(members: _Members, codec: Codec) -> ShardInfo:
    name = members.get("name", str)
    samples = members.integer("samples", 1)
    size = members.integer("size", 128 + codec.footer_size(samples), MAX_SHARD_SIZE)
    crc = int(members.digits("crc32c", 8), 16)
    identity = bytes.fromhex(members.digits("id", 32))
    return ShardInfo(name, size, crc, _file_sha256(members), samples, identity)


def _check_names(manifest: Manifest) -> None:
    """Make the checks M11 .. M15."""
    fields, shards = manifest.fields, manifest.shards
    if len(fields) > MAX_FIELDS:
        detail = f"{len(fields)} fields, at most {MAX_FIELDS} are allowed"
        _refuse(ErrorCode.MANIFEST_INVALID, "M11", detail, "fields")
    if not 1 <= len(shards) <= MAX_SHARDS:
        detail = f"{len(shards)} shards, must be 1 .. {MAX_SHARDS}"
        _refuse(ErrorCode.MANIFEST_INVALID, "M11", detail, "shards")
    for i, field in enumerate(fields):
        name = field.name
        if len(name.encode()) > MAX_FIELD_NAME or "\0" in name or name in _RESERVED_NAMES:
            detail = f"the field name {name[:80]!r} is not allowed"
            _refuse(ErrorCode.NAME_INVALID, "M12", detail, f"fields[{i}].name")
    for i, shard in enumerate(shards):
        if not is_shard_name(shard.name):
            detail = f"the shard name {shard.name[:120]!r} is not allowed"
            _refuse(ErrorCode.NAME_INVALID, "M13", detail, f"shards[{i}].name")
    for member, names in (
        ("fields", [field.name for field in fields]),
        ("shards", [shard.name for shard in shards]),
    ):
        if len(set(names)) != len(names):
            _refuse(ErrorCode.MANIFEST_INVALID, "M14", "a name comes twice", member)
    total = sum(shard.samples for shard in shards)
    if total != manifest.samples:
        detail = f"the shards have {total} samples, the cache {manifest.samples}"
        _refuse(ErrorCode.MANIFEST_INVALID, "M15", detail, "samples")


def _refuse(code: ErrorCode, check: str, detail: str, place: str = "") -> NoReturn:
    raise CacheError(code, check, NAME, detail, place=place)
