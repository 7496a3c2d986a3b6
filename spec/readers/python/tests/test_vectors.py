from __future__ import annotations

from dataset_rt_reader.conformance.runner import run

from .sealing import vectors


def test_every_vector_passes() -> None:
    results = list(run(vectors()))
    assert [result for result in results if result[2] is not None] == []
    assert {kind for kind, _, _ in results} == {"unit", "valid", "invalid"}
