"""Builds and loads the native limit, `limit.c`, for the running Python."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from .tally import Readable, Tally, bare_payloads, both
from .workloads import FIELDS, SPLITS, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from .loops import FlatFile

AHEAD = 8
"""Rows of look-ahead that serve both small and large payloads; see `limit.c`."""


class LimitModule(Protocol):
    """What `limit.c` exports. `crc32c` is absent where the processor has no instruction for it."""

    def scan(self, *args: object) -> Iterator[object]: ...
    def crc32c(self, payload: bytes, /) -> int: ...
    def read_all(
        self,
        fd: int,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        order: NDArray[np.int64],
        threads: int,
    ) -> int: ...


class LimitUnavailableError(Exception):
    """No compiler, no Python headers, or the compiled module does not load."""


def build(folder: Path) -> LimitModule:
    """Compiles `limit.c` into `folder` and loads it."""
    source = Path(__file__).with_name("limit.c")
    target = folder / f"limit{sysconfig.get_config_var('EXT_SUFFIX') or '.so'}"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        message = "no C compiler found (cc, gcc or clang)"
        raise LimitUnavailableError(message)
    include = sysconfig.get_paths()["include"]
    command = [
        compiler,
        "-O2",
        "-pthread",
        "-shared",
        "-fPIC",
        f"-I{include}",
        str(source),
        "-o",
        str(target),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if outcome.returncode:
        message = f"{' '.join(command)}: {outcome.stderr.strip().splitlines()[-1:]}"
        raise LimitUnavailableError(message)
    loader = importlib.machinery.ExtensionFileLoader("limit", str(target))
    spec = importlib.util.spec_from_loader("limit", loader)
    if spec is None:
        message = f"{target} is no module"
        raise LimitUnavailableError(message)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise LimitUnavailableError(str(error)) from error
    return cast("LimitModule", module)


class Limit:
    """Passes of the native limit over one flat file."""

    def __init__(self, module: LimitModule, flat: FlatFile) -> None:
        self._module = module
        self._flat = flat

    def _scan(
        self, order: NDArray[np.int64] | None, shape: type | None, ahead: int
    ) -> Iterator[object]:
        flat, columns = self._flat, self._flat.columns
        return self._module.scan(
            flat.map,
            flat.starts,
            flat.lengths,
            columns.label,
            columns.score,
            columns.split,
            columns.flag,
            order,
            FIELDS,
            SPLITS,
            shape,
            ahead,
        )

    def both(self, order: NDArray[np.int64] | None, ahead: int = AHEAD) -> Tally:
        return both(cast("Iterator[Readable]", self._scan(order, Sample, ahead)))

    def payload_only(self, order: NDArray[np.int64] | None, ahead: int = AHEAD) -> Tally:
        return bare_payloads(cast("Iterator[bytes]", self._scan(order, None, ahead)))
