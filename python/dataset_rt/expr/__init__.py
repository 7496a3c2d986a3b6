"""Polars expressions for datasets: weights, splits, draws, duplicates.

They work on any frame, eager and lazy: `from dataset_rt import expr as drt`. Importing this module
also registers the same functions as namespaces: `pl.col("label").drt.balanced_weight()`.

Columns of Python objects are outside of what expressions take: Polars hands them to native code as
bare pointers.
"""

from __future__ import annotations

from inspect import isfunction as _isfunction

from dataset_rt.expr import namespace as _namespace
from dataset_rt.expr._keys import Shares
from dataset_rt.expr.draws import (
    bucket,
    curriculum_mask,
    draw_counts,
    length_group_key,
    m_per_class,
    repeat_count,
    sample_weighted,
    shuffle_key,
)
from dataset_rt.expr.duplicates import (
    ShingleUnit,
    content_hash,
    duplicate_rank,
    hamming,
    minhash,
    minhash_band,
    minhash_similarity,
    simhash,
)
from dataset_rt.expr.labels import cap_per_class, repeat_factor
from dataset_rt.expr.payloads import (
    payload,
    payload_crc,
    payload_head,
    payload_mime,
    payload_size,
)
from dataset_rt.expr.splits import (
    hash_fold,
    hash_split,
    split_leaks,
    stratified_fold,
    stratified_split,
    time_split,
)
from dataset_rt.expr.values import (
    NullValues,
    clip_weight,
    doremi_weight,
    effective_sample_size,
    focal_weight,
    hard_example_weight,
    normalize_weight,
    prioritized_correction,
    prioritized_weight,
)
from dataset_rt.expr.weights import (
    NullPolicy,
    ShareKey,
    WeightScale,
    balanced_weight,
    effective_number_weight,
    expected_share,
    mixture_weight,
    temperature_weight,
    unimax_weight,
)

__all__ = [
    "NullPolicy",
    "NullValues",
    "ShareKey",
    "Shares",
    "ShingleUnit",
    "WeightScale",
    "balanced_weight",
    "bucket",
    "cap_per_class",
    "clip_weight",
    "content_hash",
    "curriculum_mask",
    "doremi_weight",
    "draw_counts",
    "duplicate_rank",
    "effective_number_weight",
    "effective_sample_size",
    "expected_share",
    "focal_weight",
    "hamming",
    "hard_example_weight",
    "hash_fold",
    "hash_split",
    "length_group_key",
    "m_per_class",
    "minhash",
    "minhash_band",
    "minhash_similarity",
    "mixture_weight",
    "normalize_weight",
    "payload",
    "payload_crc",
    "payload_head",
    "payload_mime",
    "payload_size",
    "prioritized_correction",
    "prioritized_weight",
    "repeat_count",
    "repeat_factor",
    "sample_weighted",
    "shuffle_key",
    "simhash",
    "split_leaks",
    "stratified_fold",
    "stratified_split",
    "temperature_weight",
    "time_split",
    "unimax_weight",
]

# What takes the paths of caches first is no method of a column.
_namespace.register(
    function
    for function in map(globals().__getitem__, __all__)
    if _isfunction(function) and not function.__name__.startswith("payload")
)
