"""What became of each source. The results unpack and match as their documented fields."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from dataset_rt.dataset import CachedDataset

__all__ = [
    "CacheSourcesDatasetError",
    "CacheSourcesDatasetResult",
    "CacheSourcesDatasetSuccess",
    "CacheWriteError",
    "CacheWriteResult",
    "CacheWriteSuccess",
]

WriteStatus: TypeAlias = Literal["written", "reused", "rebuilt"]


class _SuccessFields(NamedTuple):
    source_name: str
    path: Path


class CacheWriteSuccess(_SuccessFields):
    """A source has a whole cache now.

    Unpacks, matches and compares as `(source_name, path)`.

    Attributes:
        source_name: Name of the source.
        path: Folder of the cache.
        status: "written", "reused" or "rebuilt".
        reason: Why it was written, reused or rebuilt.
    """

    status: WriteStatus
    reason: str

    def __new__(
        cls,
        source_name: str,
        path: Path,
        *,
        status: WriteStatus = "written",
        reason: str = "",
    ) -> Self:
        """Makes a result."""
        self = super().__new__(cls, source_name, path)
        self.status = status
        self.reason = reason
        return self

    def _replace(self, **changes: Any) -> Self:  # noqa: ANN401 - as NamedTuple has it
        fields = {**self._asdict(), **self.__dict__, **changes}
        return type(self)(fields.pop("source_name"), fields.pop("path"), **fields)

    def __repr__(self) -> str:
        return (
            f"CacheWriteSuccess(source_name={self.source_name!r}, path={str(self.path)!r}, "
            f"status={self.status!r}, reason={self.reason!r})"
        )


class _ErrorFields(NamedTuple):
    source_name: str
    message: str


class CacheWriteError(_ErrorFields):
    """A source could not be cached; nothing of it is left on the disk.

    Unpacks, matches and compares as `(source_name, message)`.

    Attributes:
        source_name: Name of the source, or "source[i]" if it has none that can be read.
        message: What went wrong.
        status: "error".
        reason: Why, in short: the kind of the error.
        cause: The exception behind it, with the source's own one as its cause. It pickles if it
            can and is None otherwise.
    """

    status: Literal["error"]
    reason: str
    cause: BaseException | None

    def __new__(
        cls,
        source_name: str,
        message: str,
        *,
        status: Literal["error"] = "error",
        reason: str = "",
        cause: BaseException | None = None,
    ) -> Self:
        """Makes a result."""
        self = super().__new__(cls, source_name, message)
        self.status = status
        self.reason = reason or ("" if cause is None else type(cause).__name__)
        self.cause = cause
        return self

    def _replace(self, **changes: Any) -> Self:  # noqa: ANN401 - as NamedTuple has it
        fields = {**self._asdict(), **self.__dict__, **changes}
        return type(self)(fields.pop("source_name"), fields.pop("message"), **fields)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cause": picklable(self.cause)}

    # Copies share the exception: it may not be one that can be copied.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return (
            f"CacheWriteError(source_name={self.source_name!r}, message={self.message!r}, "
            f"reason={self.reason!r})"
        )


CacheWriteResult: TypeAlias = CacheWriteSuccess | CacheWriteError
"""What `DatasetRuntime.write_cache` returns for each source."""


class CacheSourcesDatasetSuccess(NamedTuple):
    """At least one source has a cache, and the dataset reads all that have.

    Attributes:
        dataset: The dataset; `dataset.cache_paths[cache_id]` says which cache an id is.
        results: One result a source, in their order, failures included.
    """

    dataset: CachedDataset
    results: list[CacheWriteResult]

    def __repr__(self) -> str:
        return f"CacheSourcesDatasetSuccess({self.dataset!r}, {_count(self.results)})"


class _DatasetErrorFields(NamedTuple):
    results: list[CacheWriteResult]
    message: str


class CacheSourcesDatasetError(_DatasetErrorFields):
    """No dataset could be loaded.

    Unpacks, matches and compares as `(results, message)`.

    Attributes:
        results: One result a source, in their order.
        message: Why there is no dataset.
        cause: The exception behind it, if caches were there and could not be loaded together.
    """

    cause: BaseException | None

    def __new__(
        cls,
        results: list[CacheWriteResult],
        message: str,
        *,
        cause: BaseException | None = None,
    ) -> Self:
        """Makes a result."""
        self = super().__new__(cls, results, message)
        self.cause = cause
        return self

    def _replace(self, **changes: Any) -> Self:  # noqa: ANN401 - as NamedTuple has it
        fields = {**self._asdict(), **self.__dict__, **changes}
        return type(self)(fields.pop("results"), fields.pop("message"), **fields)

    def __getstate__(self) -> dict[str, Any]:
        return {"cause": picklable(self.cause)}

    def __repr__(self) -> str:
        return f"CacheSourcesDatasetError({self.message!r}, {_count(self.results)})"


CacheSourcesDatasetResult: TypeAlias = CacheSourcesDatasetSuccess | CacheSourcesDatasetError
"""What `DatasetRuntime.from_cache_sources` returns."""


def picklable(error: BaseException | None) -> BaseException | None:
    """Returns the exception if it survives a pickle, else None."""
    if error is None:
        return None
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - anything may go wrong in the class of a stranger
        return None
    return error


def _count(results: list[CacheWriteResult]) -> str:
    failed = sum(isinstance(result, CacheWriteError) for result in results)
    sources = "1 source" if len(results) == 1 else f"{len(results)} sources"
    return f"{sources}, {failed} failed" if failed else sources
