"""Reference reader of DatasetRT caches: format version 1, sampling algorithm 1."""

from .cache import Cache, Sample, read_manifest
from .errors import CacheError, ErrorCode
from .manifest import Codec, Field, FieldType, Manifest
from .metadata import Value
from .sampling.stream import DrawStream, Mode
from .verification import verify

__all__ = [
    "Cache",
    "CacheError",
    "Codec",
    "DrawStream",
    "ErrorCode",
    "Field",
    "FieldType",
    "Manifest",
    "Mode",
    "Sample",
    "Value",
    "read_manifest",
    "verify",
]
