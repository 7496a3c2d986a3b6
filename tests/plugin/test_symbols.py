"""The shared object exports what Polars looks up."""

from __future__ import annotations

import ctypes

import pytest
from dataset_rt import _native

from tests.plugin.registry import ROWS

pytestmark = pytest.mark.core


@pytest.mark.rule("The plugin is in the native module")
def test_symbols_of_the_plugin() -> None:
    assert _native.__file__ is not None
    library = ctypes.CDLL(_native.__file__)
    needed = ["_polars_plugin_get_version", "_polars_plugin_get_last_error_message"]
    for name in {name for row in ROWS for name in row.native}:
        needed += [f"_polars_plugin_{name}", f"_polars_plugin_field_{name}"]
    assert len(needed) >= 4
    assert [name for name in needed if not hasattr(library, name)] == []
    version = library._polars_plugin_get_version
    version.restype = ctypes.c_uint32
    assert version() >> 16 == 0
