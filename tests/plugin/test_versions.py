"""Polars of other versions: what they refuse is said once and clearly."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest
from dataset_rt import DatasetRuntime, ReaderConfig, expr, scan_cache
from dataset_rt.errors import DatasetRTError, PolarsVersionError
from dataset_rt.expr import _call

from tests import support

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CacheFactory

pytestmark = pytest.mark.core

# A plugin of another interface: it has nothing but its version.
OTHER = """
#include <stdint.h>
uint32_t _polars_plugin_get_version(void) { return VERSION; }
const char *_polars_plugin_get_last_error_message(void) { return ""; }
"""


@pytest.mark.rule("A Polars that refuses the plugin is named")
@pytest.mark.parametrize("version", ["7u << 16", "0u << 16 | 99u"])
def test_refused_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_cache: CacheFactory, version: str
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "other.c").write_text(OTHER.replace("VERSION", version))
    library = tmp_path / "other.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "other.c")]
    subprocess.run(command, check=True)  # noqa: S603 - our own source
    monkeypatch.setattr(_call, "plugin_path", lambda: library)
    for function in (expr.balanced_weight, expr.focal_weight, expr.content_hash):
        with pytest.raises(PolarsVersionError) as error:
            function("y")
        assert pl.__version__ in str(error.value)
        assert "1.36" in str(error.value)
        assert error.value.installed == pl.__version__
        assert isinstance(error.value, (DatasetRTError, ImportError))
    # Everything else works.
    cache = make_cache(support.plain(5))
    dataset = DatasetRuntime(num_workers=1).cached_dataset(
        [cache], reader_config=ReaderConfig(seed=0)
    )
    dataset.update_metadata(dataset.get_metadata().filter(pl.col("label") == 1))
    assert len(list(dataset)) == 2
    assert scan_cache([cache]).collect().height == 5


@pytest.mark.rule("A Polars that refuses the plugin is named")
def test_the_installed_polars_takes_it() -> None:
    _call.check_polars(_call.plugin_path())
    assert pl.select(expr.focal_weight(pl.lit(0.5))).item() == 0.25
