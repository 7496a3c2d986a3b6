"""Fingerprints of texts: what they estimate, and the joins that they are for."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from dataset_rt import expr
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

pytestmark = pytest.mark.core


def words(start: int, end: int) -> str:
    return " ".join(f"w{i}" for i in range(start, end))


@pytest.mark.rule("minhash estimates the Jaccard similarity")
@pytest.mark.parametrize(("shared", "similarity"), [(50, 0.2), (100, 0.5), (135, 135 / 165)])
def test_estimates(shared: int, similarity: float) -> None:
    k, rounds = 128, 300
    frame = pl.DataFrame({"a": [words(0, 150)], "b": [words(150 - shared, 300 - shared)]})
    errors = []
    for seed in range(rounds):
        left = expr.minhash("a", k=k, shingle=1, unit="word", seed=seed)
        right = expr.minhash("b", k=k, shingle=1, unit="word", seed=seed)
        errors.append(frame.select(expr.minhash_similarity(left, right)).item() - similarity)
    variance = similarity * (1 - similarity) / k
    assert abs(math.fsum(errors) / rounds) < 4 * math.sqrt(variance / rounds)
    spread = math.fsum(error * error for error in errors) / rounds
    assert 0.65 < spread / variance < 1.35


@pytest.mark.rule("minhash estimates the Jaccard similarity")
def test_bands_meet_as_often_as_they_should() -> None:
    pairs, r, bands = 400, 4, 8
    frame = pl.DataFrame(
        {
            "a": [words(i * 1000, i * 1000 + 100) for i in range(pairs)],
            "b": [words(i * 1000 + 20, i * 1000 + 120) for i in range(pairs)],
        }
    )
    signed = frame.select(
        expr.minhash(name, k=r * bands, shingle=1, unit="word") for name in ("a", "b")
    )
    banded = signed.select(expr.minhash_band(name, bands) for name in ("a", "b"))
    met = sum(
        any(x == y for x, y in zip(left, right, strict=True)) for left, right in banded.iter_rows()
    )
    chance = 1 - (1 - (80 / 120) ** r) ** bands
    assert abs(met - pairs * chance) < 4.5 * math.sqrt(pairs * chance * (1 - chance))


@pytest.mark.rule("Near duplicates are found by joins")
def test_near_duplicates_are_dropped_by_joins() -> None:
    texts = [words(i * 500, i * 500 + 60) for i in range(200)]
    near = [text.replace("w0 ", "v0 ") + " more" for text in texts[:50]]
    frame = pl.DataFrame({"text": texts + near}).with_row_index("id")
    signed = frame.lazy().with_columns(signature=expr.minhash("text"))
    bands = signed.with_columns(band=expr.minhash_band("signature", 16)).explode("band")
    found = (
        bands.join(bands, on="band", suffix="_late")
        .filter(pl.col("id") < pl.col("id_late"))
        .unique(["id", "id_late"])
        .filter(expr.minhash_similarity("signature", "signature_late") > 0.6)
        .select("id", "id_late")
    )
    kept = frame.lazy().join(found, left_on="id", right_on="id_late", how="anti")
    assert sorted(found.collect().rows()) == [(i, 200 + i) for i in range(50)]
    assert kept.collect()["id"].to_list() == list(range(200))
    same = frame.with_columns(rank=expr.duplicate_rank("text"))
    assert same["rank"].sum() == 0


@pytest.mark.rule("simhash is near for like texts")
def test_near_texts_have_near_simhashes() -> None:
    frame = pl.DataFrame(
        {
            "a": [words(i * 1000, i * 1000 + 300) for i in range(50)],
            "near": [words(i * 1000 + 3, i * 1000 + 303) for i in range(50)],
            "far": [words(i * 1000 + 500, i * 1000 + 800) for i in range(50)],
        }
    )
    hashed = frame.select(expr.simhash(name, shingle=1, unit="word") for name in frame.columns)
    near = hashed.select(expr.hamming("a", "near")).to_series()
    far = hashed.select(expr.hamming("a", "far")).to_series()
    # The angle of 297 words shared of 300 is 8 degrees, 2.9 bits of 64; of none shared 90 degrees.
    assert abs(near.mean() - 64 * math.acos(297 / 300) / math.pi) < 1.0  # type: ignore[operator]
    assert abs(far.mean() - 32) < 3  # type: ignore[operator]


@pytest.mark.rule("Text is fingerprinted as it is")
def test_text_is_taken_as_it_is() -> None:
    forms = pl.DataFrame({"t": ["caf\u00e9 au lait", "cafe\u0301 au lait", "CAF\u00c9 AU LAIT"]})
    for asked in (expr.content_hash, expr.minhash, expr.simhash):
        assert len({str(value) for value in forms.select(asked("t")).to_series().to_list()}) == 3
        folded = pl.col("t").str.to_lowercase().str.normalize("NFC")
        values = forms.select(asked(folded)).to_series().to_list()
        assert len({str(value) for value in values}) == 1


@pytest.mark.rule("duplicate_rank keeps the first")
def test_the_first_is_kept() -> None:
    frame = pl.DataFrame(
        {
            "a": [1, 1, 2, None, None, 1],
            "q": [3, 1, 1, 1, 1, 1],
            "g": ["x", "y", "x", "x", "x", "y"],
        }
    )
    ranks = frame.select(
        plain=expr.duplicate_rank("a"),
        ordered=expr.duplicate_rank("a", order="q"),
        best=expr.duplicate_rank("a", order=-pl.col("q")),
        grouped=expr.duplicate_rank("a", over="g"),
    )
    assert ranks["plain"].to_list() == [0, 1, 0, 0, 0, 2]
    assert ranks["ordered"].to_list() == [2, 0, 0, 0, 0, 1]
    assert ranks["best"].to_list() == [0, 1, 0, 0, 0, 2]
    assert ranks["grouped"].to_list() == [0, 0, 0, 0, 0, 1]


@pytest.mark.rule("Expressions never end the process")
def test_what_is_refused() -> None:
    frame = pl.DataFrame({"t": ["a"], "n": [1], "l": [[1, 2]]})
    for asked in (
        expr.minhash("n"),
        expr.simhash("l"),
        expr.minhash_band("t", 2),
        expr.minhash_band(expr.minhash("t", k=10), 3),
        expr.minhash_similarity(expr.minhash("t", k=10), expr.minhash("t", k=11)),
        expr.content_hash("l"),
        expr.duplicate_rank("t", order="t"),
    ):
        with pytest.raises(pl.exceptions.ComputeError):
            frame.select(asked)


@pytest.mark.rule("Arguments are checked")
def test_wrong_arguments() -> None:
    wrong: Any
    for wrong in ({"k": 0}, {"k": 2**17}, {"shingle": 0}, {"unit": "line"}, {"seed": -1}):
        with pytest.raises(InvalidArgumentError):
            expr.minhash("t", **wrong)
    for wrong in ({"k": 1.0}, {"shingle": None}, {"seed": "a"}):
        with pytest.raises(ArgumentTypeError):
            expr.minhash("t", **wrong)
    with pytest.raises(InvalidArgumentError):
        expr.minhash_band("t", 0)
    with pytest.raises(InvalidArgumentError):
        expr.content_hash()
    with pytest.raises(ArgumentTypeError):
        expr.duplicate_rank("t", order=5)  # type: ignore[arg-type]
