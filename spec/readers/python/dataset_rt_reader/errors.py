"""The errors a cache can cause, each with one code of format.md section 12."""

from __future__ import annotations

from enum import Enum


class ErrorCode(str, Enum):
    """The closed list of codes of format.md section 12."""

    MANIFEST_DAMAGED = "manifest_damaged"
    VERSION_UNSUPPORTED = "version_unsupported"
    FEATURE_UNSUPPORTED = "feature_unsupported"
    MANIFEST_INVALID = "manifest_invalid"
    NAME_INVALID = "name_invalid"
    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"
    INDEX_DAMAGED = "index_damaged"
    INDEX_INVALID = "index_invalid"
    ENTRY_INVALID = "entry_invalid"
    METADATA_DAMAGED = "metadata_damaged"
    METADATA_INVALID = "metadata_invalid"
    SHARD_DAMAGED = "shard_damaged"
    SHARD_INVALID = "shard_invalid"
    SHARD_MISMATCH = "shard_mismatch"
    RECORD_DAMAGED = "record_damaged"
    CHECKSUM_MISMATCH = "checksum_mismatch"
    IDENTITY_MISMATCH = "identity_mismatch"


class CacheError(Exception):
    """A cache is damaged, breaks a rule, or needs what this reader doesn't know.

    Attributes:
        code: the error code; the only part of an error that other readers share.
        check: name of the check of format.md that failed, such as ``S10``.
        file: the file in the cache's folder, with ``/`` between folder and name.
        place: where in the file: a byte, a member, a sample, a column; may be empty.
        detail: what was found and what is allowed.

    """

    def __init__(
        self, code: ErrorCode, check: str, file: str, detail: str, *, place: str = ""
    ) -> None:
        """Keep the parts and join them to one sentence."""
        self.code = code
        self.check = check
        self.file = file
        self.place = place
        self.detail = detail
        where = f"{file}, {place}" if place else file
        super().__init__(f"{where}: {detail} ({code.value}, {check})")

    def __reduce__(self) -> tuple[object, ...]:
        """Let errors cross processes, which the keyword argument would prevent."""
        return _rebuild, (self.code, self.check, self.file, self.detail, self.place)


def _rebuild(code: ErrorCode, check: str, file: str, detail: str, place: str) -> CacheError:
    return CacheError(code, check, file, detail, place=place)
