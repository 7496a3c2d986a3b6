"""What a source of samples looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BytesLike", "CacheInput", "CacheSource", "Metadata", "MetadataValue"]

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""A payload. NumPy arrays and other buffers of bytes are taken too, by their bytes in C order."""

MetadataValue: TypeAlias = bool | int | float | str
"""One value: a bool, an integer of 64 bits, a float, or text."""

Metadata: TypeAlias = Mapping[str, MetadataValue]
"""The metadata of one sample, by field."""


class CacheInput(NamedTuple):
    """One sample on its way into a cache.

    Attributes:
        data: The payload, already serialised; its bytes are stored as they are.
        metadata: Fields of the sample. The first sample of a source fixes names and types, every
            other one must have the same.
    """

    data: BytesLike
    metadata: Metadata

    def __repr__(self) -> str:
        size = getattr(self.data, "nbytes", None)
        if size is None and hasattr(self.data, "__len__"):
            size = len(self.data)
        return f"CacheInput({type(self.data).__name__} of {size} bytes, metadata={self.metadata!r})"


class CacheSource(Protocol):
    """A named iterable of samples. Any class with these two members is one.

    The writer pulls the samples one after the other on the calling thread; workers do the rest.

    A source may also have an attribute `fingerprint`, a str or None that says what its samples
    depend on (data version, preprocessing version). `DatasetRuntime.from_cache_sources` reuses a
    cache only while the fingerprint is the same; without one it goes by the name alone.
    """

    @property
    def name(self) -> str:
        """Folder of the cache below the base folder: one plain path segment.

        A plain attribute serves; read-only ones, such as a frozen dataclass has, do too.
        """
        ...

    def __iter__(self) -> Iterator[CacheInput]:
        """Yields the samples. It may be called again in a later write."""
        ...
