"""Metadata: which values are stored, and how drift is refused."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import math
import random
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from dataset_rt import CacheInput, CacheWriteSuccess, ReaderConfig
from dataset_rt.errors import DatasetRTError, EmptySourceError, SampleTypeError, SampleValueError

from tests import support
from tests.support import QUIET, Source

if TYPE_CHECKING:
    from pathlib import Path

    from dataset_rt import DatasetRuntime

    from tests.conftest import CacheFactory, DatasetFactory

pytestmark = pytest.mark.core


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def with_field(values: list[Any], field: str = "x") -> list[CacheInput]:
    return [CacheInput(b"p", {field: value}) for value in values]


def refusal(
    runtime: DatasetRuntime, base: Path, samples: list[Any]
) -> SampleTypeError | SampleValueError:
    """The error of a source, which leaves nothing."""
    result = support.fail(runtime.write_cache(Source("s", samples), base, writer_config=QUIET))
    assert not (base / "s").exists()
    assert support.leftovers(base) == []
    error = support.cause_of(result)
    assert isinstance(error, (SampleTypeError, SampleValueError)), repr(error)
    assert result.message == str(error)
    assert error.source == "s"
    return error


@pytest.mark.rule("Floats keep every bit")
def test_floats_are_exact(make_dataset: DatasetFactory) -> None:
    generator = random.Random(1)
    patterns = [
        0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8DEADBEEF0001, 0x7FF0000000000000,
        0xFFF0000000000000, 0x8000000000000000, 0, 1, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF,
    ]  # fmt: skip
    values = [struct.unpack("<d", pattern.to_bytes(8, "little"))[0] for pattern in patterns]
    values += [0.1 + 0.2, 1 / 3, *(i / 7 for i in range(300))]
    values += [generator.random() * 10.0 ** generator.randint(-300, 300) for _ in range(2000)]
    dataset = make_dataset(with_field(values), shuffle=False)
    expected = [bits(value) for value in values]
    assert [bits(sample.metadata["x"]) for sample in dataset] == expected  # type: ignore[arg-type]
    table = dataset.get_metadata()
    assert [bits(value) for value in table["x"].to_list()] == expected
    batch = next(dataset.iter_batches(len(values)))
    assert [bits(value) for value in batch.metadata["x"].to_list()] == expected


@pytest.mark.rule("Integers have 64 bits")
def test_integers_are_exact(make_dataset: DatasetFactory) -> None:
    values = [0, 1, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 10**18 + 7]
    dataset = make_dataset(with_field(values), shuffle=False)
    assert [sample.metadata["x"] for sample in dataset] == values
    assert dataset.get_metadata()["x"].to_list() == values
    assert dataset.get_metadata().schema["x"] == pl.Int64


@pytest.mark.rule("Integers have 64 bits", "Errors say which sample")
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, 10**40])
@pytest.mark.parametrize("before", [0, 3])
def test_wide_integers_are_refused(
    runtime: DatasetRuntime, base: Path, value: int, before: int
) -> None:
    error = refusal(runtime, base, with_field([1] * before + [value]))
    assert isinstance(error, SampleValueError)
    assert (error.sample, error.field) == (before, "x")
    assert str(value)[:20] in str(error)


TEXTS = [
    "", "a", "\x00", "a\x00b", "é", "e\u0301", "ﷺ", "日本語", "🎲" * 100, "\u200b", "\ufeffx",
    "\U0010ffff", "\r\n\t", " lead", "x" * 100_000,
]  # fmt: skip


@pytest.mark.rule("Text keeps every code point")
def test_text_is_exact(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset(with_field(TEXTS), shuffle=False)
    assert [sample.metadata["x"] for sample in dataset] == TEXTS
    assert dataset.get_metadata()["x"].to_list() == TEXTS
    assert dataset.get_metadata().schema["x"] == pl.String


@pytest.mark.rule("Text keeps every code point", "Errors say which sample")
@pytest.mark.parametrize("text", ["\ud800", "a\udfff"], ids=ascii)
def test_lone_surrogates_are_refused(runtime: DatasetRuntime, base: Path, text: str) -> None:
    error = refusal(runtime, base, with_field(["fine", text]))
    assert isinstance(error, SampleValueError)
    assert (error.sample, error.field) == (1, "x")
    assert "surrogate" in str(error)


@pytest.mark.rule("Metadata is a flat mapping")
def test_one_field_of_each_type(make_dataset: DatasetFactory) -> None:
    samples = support.numbered(100)
    dataset = make_dataset(samples, shuffle=False)
    for sample, given in zip(dataset, samples, strict=True):
        assert sample.metadata == given.metadata
        assert [type(value) for value in sample.metadata.values()] == [int, float, str, bool]
    assert dataset.get_metadata().schema == {
        "cache_id": pl.UInt64,
        "sample_id": pl.UInt64,
        "label": pl.Int64,
        "score": pl.Float64,
        "text": pl.String,
        "even": pl.Boolean,
        "weight": pl.Float64,
    }


class Own(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Twice(Own):
    """A mapping that yields a key twice."""

    def __iter__(self) -> Iterator[str]:
        yield from self._values
        yield from self._values

    def __len__(self) -> int:
        return 2 * len(self._values)


class Sub(dict[str, Any]):
    """A subclass of dict."""


@pytest.mark.rule("Metadata is a flat mapping")
def test_any_mapping_will_do(make_dataset: DatasetFactory) -> None:
    values = {"x": 1, "y": "two"}
    mappings: list[Any] = [values, Own(values), MappingProxyType(values), Sub(values)]
    dataset = make_dataset([CacheInput(b"", mapping) for mapping in mappings], shuffle=False)
    assert [sample.metadata for sample in dataset] == [values] * 4


@pytest.mark.rule("Metadata is a flat mapping", "Errors say which sample")
@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        (None, "metadata"),
        ([("x", 1)], "metadata"),
        ("x", "metadata"),
        ({"x": [1]}, "x"),
        ({"x": {"y": 1}}, "x"),
        ({"x": b"bytes"}, "x"),
        ({"x": 1j}, "x"),
        ({"x": object()}, "x"),
        ({3: 1}, None),
        ({b"x": 1}, None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("before", [0, 2])
def test_other_metadata_is_refused(
    runtime: DatasetRuntime, base: Path, metadata: Any, field: str | None, before: int
) -> None:
    samples = [*with_field([1] * before), CacheInput(b"p", metadata)]
    error = refusal(runtime, base, samples)
    assert error.sample == before
    if field is not None:
        assert error.field == field
    if before == 0:
        assert isinstance(error, SampleTypeError)


@pytest.mark.rule("Metadata is a flat mapping")
def test_a_key_twice_is_refused(runtime: DatasetRuntime, base: Path) -> None:
    assert "twice" in str(refusal(runtime, base, [CacheInput(b"", Twice({"x": 1}))]))


@pytest.mark.rule("Metadata may be empty")
def test_no_fields_at_all(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset([CacheInput(support.payload(i), {}) for i in range(70_000)])
    assert dataset.get_metadata().columns == ["cache_id", "sample_id", "weight"]
    dataset.set_epoch_len(5)
    for sample in dataset:
        assert sample.metadata == {}
        assert sample.data == support.payload(sample.sample_id)


@pytest.mark.rule("The first sample sets the schema", "Every sample has the same fields")
def test_order_of_keys_is_that_of_the_first_sample(make_dataset: DatasetFactory) -> None:
    samples = [CacheInput(b"", {"b": 1, "a": 2.0}), CacheInput(b"", {"a": 3.5, "b": 4})]
    dataset = make_dataset(samples, shuffle=False)
    assert dataset.get_metadata().columns == ["cache_id", "sample_id", "b", "a", "weight"]
    assert [list(sample.metadata.items()) for sample in dataset] == [
        [("b", 1), ("a", 2.0)],
        [("b", 4), ("a", 3.5)],
    ]


@pytest.mark.rule("Every sample has the same fields", "Values of subclasses are stored")
def test_dicts_of_all_makes_in_one_source(make_dataset: DatasetFactory) -> None:
    class Key(str):
        __slots__ = ()

    class Number(int):
        __slots__ = ()

    makes: list[Any] = [
        {"count": 1, "share": 2.5, "text": "three", "flag": True},
        {"flag": True, "text": "three", "share": 2.5, "count": 1},
        {"COUNT".lower(): 1, "share": 2.5, "TEXT".lower(): "three", "flag": True},
        {Key("count"): 1, "share": 2.5, Key("text"): "three", "flag": True},
        {"count": Number(1), "share": 2.5, "text": "three", "flag": True},
        {"count": 2, "share": 3, "text": "", "flag": False},
        {"count": -1, "share": float("inf"), "text": "\u00e9" * 50, "flag": False},
    ]
    samples = [CacheInput(b"", makes[i % len(makes)]) for i in range(2_500)]
    dataset = make_dataset(samples, shuffle=False)
    expected = [dict(make) for make in makes]
    for i, sample in enumerate(dataset):
        assert sample.metadata == expected[i % len(makes)]
        assert [type(value) for value in sample.metadata.values()] == [int, float, str, bool]


@pytest.mark.rule("Every sample has the same fields", "Errors say which sample")
@pytest.mark.parametrize("drift", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}, {}])
@pytest.mark.parametrize("before", [1, 1500])
def test_field_drift_is_refused(
    runtime: DatasetRuntime, base: Path, drift: dict[str, int], before: int
) -> None:
    samples = [CacheInput(b"p", {"a": 1, "b": 2})] * before + [CacheInput(b"p", drift)]
    error = refusal(runtime, base, samples)
    assert error.sample == before
    assert error.field in ({"a", "b"} - drift.keys()) | (drift.keys() - {"a", "b"})
    assert error.expected
    assert error.found
    assert error.field in str(error)


VALUES: dict[str, Any] = {"bool": True, "int64": 1, "float64": 1.5, "utf8": "1"}


@pytest.mark.rule("Types are not mixed", "Errors say which sample")
@pytest.mark.parametrize("other", VALUES)
@pytest.mark.parametrize("first", VALUES)
def test_type_drift_is_refused(runtime: DatasetRuntime, base: Path, first: str, other: str) -> None:
    samples = [*with_field([VALUES[first]] * 600), *with_field([VALUES[other]])]
    if first == other or (first, other) == ("float64", "int64"):
        support.write(runtime, base, samples)
        return
    error = refusal(runtime, base, samples)
    assert isinstance(error, SampleTypeError)
    assert (error.sample, error.field) == (600, "x")
    assert error.expected is not None
    assert first in error.expected
    assert error.found is not None
    assert type(VALUES[other]).__name__ in error.found


@pytest.mark.rule("An int may stand in a float field")
def test_ints_in_float_fields(
    runtime: DatasetRuntime, make_dataset: DatasetFactory, base: Path
) -> None:
    values = [0.5, 3, -7, 2**53, 2**60, 10**22]
    dataset = make_dataset(with_field(values), shuffle=False)
    read = [sample.metadata["x"] for sample in dataset]
    assert read == values
    assert {type(value) for value in read} == {float}
    for inexact in (2**53 + 1, 10**23, 10**400):
        error = refusal(runtime, base, with_field([0.5, inexact]))
        assert isinstance(error, SampleValueError)
        assert error.sample == 1


class Level(enum.IntEnum):
    """Members are ints."""

    HIGH = 7


class Text(str):
    """A str with a str() of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not this"


class Int(int):
    """An int with conversions of its own."""

    def __int__(self) -> int:
        return 99

    def __index__(self) -> int:
        return 98


class Float(float):
    """A float with a conversion of its own."""

    def __float__(self) -> float:
        return 99.0


@pytest.mark.rule("Values of subclasses are stored")
def test_subclasses_are_stored_by_value(make_dataset: DatasetFactory) -> None:
    samples = [
        CacheInput(b"", {"i": Level.HIGH, "t": Text("this"), "n": Int(5), "f": Float(0.5)}),
        CacheInput(b"", {"i": 1, "t": "x", "n": Int(6), "f": 1.5}),
        CacheInput(b"", {"i": Level.HIGH, "t": Text("this"), "n": 7, "f": Float(2.5)}),
    ]
    dataset = make_dataset(samples, shuffle=False)
    read = [tuple(sample.metadata.values()) for sample in dataset]
    assert read == [(7, "this", 5, 0.5), (1, "x", 6, 1.5), (7, "this", 7, 2.5)]
    assert {type(value) for row in read for value in row} == {int, str, float}


@pytest.mark.rule("Values of subclasses are stored")
def test_numpy_scalars_are_stored_by_value(
    runtime: DatasetRuntime, base: Path, make_dataset: DatasetFactory
) -> None:
    np = pytest.importorskip("numpy")
    samples = [
        CacheInput(b"", {"i": np.int32(-5), "u": np.uint64(7), "f": np.float32(0.1),
                         "b": np.bool_(True), "t": np.str_("né")}),
        CacheInput(b"", {"i": 5, "u": 8, "f": 0.25, "b": False, "t": "x"}),
    ]  # fmt: skip
    dataset = make_dataset(samples, shuffle=False)
    first, second = (sample.metadata for sample in dataset)
    assert first == {"i": -5, "u": 7, "f": float(np.float32(0.1)), "b": True, "t": "né"}
    assert [type(value) for value in first.values()] == [int, int, float, bool, str]
    assert second == samples[1].metadata
    error = refusal(runtime, base, with_field([np.uint64(2**63)]))
    assert isinstance(error, SampleValueError)
    error = refusal(runtime, base, with_field([np.datetime64("2020-01-01")]))
    assert isinstance(error, SampleTypeError)


@pytest.mark.rule("None is no value", "Errors say which sample")
@pytest.mark.parametrize("before", [0, 5])
def test_none_is_refused(runtime: DatasetRuntime, base: Path, before: int) -> None:
    error = refusal(runtime, base, with_field([1] * before + [None]))
    assert isinstance(error, SampleTypeError)
    assert (error.sample, error.field) == (before, "x")
    assert "None" in str(error)


class Colour(enum.Enum):
    """Members are no values."""

    RED = 1


class Word(str, enum.Enum):
    """Members are texts."""

    YES = "yes"


DRIFTS: list[Any] = [
    None, "1", 1.5, True, [1], (1,), {"y": 1}, b"1", 1j, Colour.RED, Word.YES, float("nan"),
    decimal.Decimal(1), fractions.Fraction(1), dt.date(2026, 1, 1), object, range(3),
]  # fmt: skip


@pytest.mark.rule(
    "Types are not mixed", "A failing source leaves the others whole", "Errors say which sample"
)
@pytest.mark.parametrize("value", DRIFTS, ids=repr)
@pytest.mark.parametrize("before", [1, 2000])
def test_drift_fails_its_source_alone(
    runtime: DatasetRuntime, base: Path, value: Any, before: int
) -> None:
    sources = [
        Source("first", with_field([1, 2])),
        Source("drifts", with_field([1] * before + [value, 1])),
        Source("last", with_field(["a", "b"])),
    ]
    first, drifts, last = runtime.write_cache(sources, base, writer_config=QUIET)
    assert isinstance(first, CacheWriteSuccess)
    assert isinstance(last, CacheWriteSuccess)
    error = support.cause_of(support.fail([drifts]))
    assert isinstance(error, SampleTypeError)
    assert (error.source, error.sample, error.field) == ("drifts", before, "x")
    assert error.expected is not None
    assert "int64" in error.expected
    assert error.found is not None
    assert type(value).__name__ in error.found or value is None
    assert support.listing(base) == ["first", "last"]


@pytest.mark.rule("Types are not mixed", "Values of subclasses are stored")
def test_numpy_drift(runtime: DatasetRuntime, base: Path, make_dataset: DatasetFactory) -> None:
    np = pytest.importorskip("numpy")
    for value in (
        np.float64(1), np.float32(1), np.str_("1"), np.bytes_(b"1"), np.bool_(True), np.array(1),
        np.array([1]), np.datetime64("2026-01-01"), np.timedelta64(1, "D"), np.complex128(1),
    ):  # fmt: skip
        error = refusal(runtime, base, with_field([1, value]))
        assert isinstance(error, SampleTypeError)
        assert (error.sample, error.field) == (1, "x")
    for value in (np.str_("1"), np.bool_(True), np.array(1.0), np.complex64(1)):
        assert isinstance(refusal(runtime, base, with_field([1.5, value])), SampleTypeError)
    integers = [kind(7) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                                     np.uint32, np.uint64)]  # fmt: skip
    dataset = make_dataset(with_field([1, *integers]), shuffle=False)
    assert [sample.metadata["x"] for sample in dataset] == [1, *[7] * 8]
    floats = [np.float16(1.5), np.float32(1.5), np.float64(1.5), np.int64(3), np.uint8(4)]
    dataset = make_dataset(with_field([0.5, *floats]), shuffle=False)
    assert [sample.metadata["x"] for sample in dataset] == [0.5, 1.5, 1.5, 1.5, 3.0, 4.0]


@pytest.mark.rule("Every sample has the same fields", "Errors say which sample")
@pytest.mark.parametrize("kind", ["type", "missing", "more", "nested"])
def test_drift_after_a_million_samples(runtime: DatasetRuntime, base: Path, kind: str) -> None:
    count = 1_000_000
    last = {"type": {"x": "1"}, "missing": {}, "more": {"x": 1, "y": 2}, "nested": {"x": {"y": 1}}}
    usual = {"x": 1}

    def samples() -> Iterator[Any]:
        for _ in range(count):
            yield b"", usual
        yield b"", last[kind]

    result = support.fail(runtime.write_cache(Source("s", samples()), base, writer_config=QUIET))
    error = support.cause_of(result)
    assert isinstance(error, (SampleTypeError, SampleValueError))
    assert (error.source, error.sample) == ("s", count)
    assert error.field == ("y" if kind == "more" else "x")
    assert support.listing(base) == []


@pytest.mark.rule("Metadata is a flat mapping", "Values of subclasses are stored")
def test_odd_mappings_and_members(
    runtime: DatasetRuntime, base: Path, make_dataset: DatasetFactory
) -> None:
    class Loud(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return super().__getitem__(key) * 2

    mappings: list[Any] = [
        {"x": "yes"},
        {Text("x"): Word.YES},
        collections.OrderedDict(x="yes"),
        collections.UserDict(x="yes"),
        collections.ChainMap({"x": "yes"}, {"x": "no"}),
        collections.defaultdict(str, x="yes"),
        Loud(x="yes"),
    ]
    dataset = make_dataset([CacheInput(b"", mapping) for mapping in mappings], shuffle=False)
    read = [sample.metadata for sample in dataset]
    assert read == [{"x": "yes"}] * 6 + [{"x": "yesyes"}]
    assert {type(key) for row in read for key in row} == {str}
    assert {type(value) for row in read for value in row.values()} == {str}
    twice = [CacheInput(b"", {"x": 1}), CacheInput(b"", {"x": 1}), CacheInput(b"", Twice({"x": 1}))]
    error = refusal(runtime, base, twice)
    assert (error.sample, error.field) == (2, "x")
    assert "twice" in str(error)


NAMES = ["", " ", "a.b", "a b", "é", "e\u0301", "日本", "🎲", "x" * 1024, "\n", "Weight"]


@pytest.mark.rule("Field names are exact")
def test_field_names_are_exact(make_dataset: DatasetFactory) -> None:
    values = {name: i for i, name in enumerate(NAMES)}
    dataset = make_dataset([CacheInput(b"", values)])
    assert dataset.get_metadata().columns == ["cache_id", "sample_id", *NAMES, "weight"]
    [sample] = dataset
    assert sample.metadata == values
    dataset.update_metadata(dataset.get_metadata())


@pytest.mark.rule("Field names are exact")
@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", "x" * 1025, "é" * 513], ids=ascii)
def test_bad_field_names_are_refused(runtime: DatasetRuntime, base: Path, name: str) -> None:
    error = refusal(runtime, base, [CacheInput(b"", {"ok": 1, name: 2})])
    assert isinstance(error, SampleValueError)
    assert error.sample == 0


@pytest.mark.rule("Field names are exact")
def test_too_many_fields_are_refused(
    runtime: DatasetRuntime, base: Path, make_cache: CacheFactory
) -> None:
    values = {str(i): i for i in range(4097)}
    error = refusal(runtime, base, [CacheInput(b"", values)])
    assert "4096" in str(error).replace(",", "")
    del values["0"]
    make_cache([CacheInput(b"", values)])


@pytest.mark.rule("Three field names are reserved", "Errors say which sample")
@pytest.mark.parametrize("name", ["weight", "cache_id", "sample_id"])
def test_reserved_names_are_refused(runtime: DatasetRuntime, base: Path, name: str) -> None:
    error = refusal(runtime, base, [CacheInput(b"", {"ok": 1, name: 1})])
    assert isinstance(error, SampleValueError)
    assert error.field == name


@pytest.mark.rule("A sample is a payload and its metadata")
def test_tuples_are_samples(make_dataset: DatasetFactory) -> None:
    dataset = make_dataset([CacheInput(b"a", {"x": 1}), (b"b", {"x": 2})], shuffle=False)
    assert [(sample.data, sample.metadata["x"]) for sample in dataset] == [(b"a", 1), (b"b", 2)]


@pytest.mark.rule("A sample is a payload and its metadata", "Errors say which sample")
@pytest.mark.parametrize("item", [b"a", None, (b"a",), (b"a", {}, 1), [b"a", {}], {"x": 1}])
@pytest.mark.parametrize("before", [0, 2])
def test_other_samples_are_refused(
    runtime: DatasetRuntime, base: Path, item: Any, before: int
) -> None:
    error = refusal(runtime, base, [*with_field([1] * before), item])
    assert isinstance(error, SampleTypeError)
    assert error.sample == before
    assert "CacheInput" in str(error)


@pytest.mark.rule("The user's exception is the cause")
@pytest.mark.parametrize("where", ["iter", "next", "mapping"])
def test_the_exception_of_the_user_is_kept(runtime: DatasetRuntime, base: Path, where: str) -> None:
    class OwnError(Exception):
        pass

    class Raises(Own):
        def __getitem__(self, key: str) -> Any:
            raise raised

    raised = OwnError("what went wrong")

    def samples() -> Iterator[CacheInput]:
        yield CacheInput(b"", {"x": 1})
        if where == "mapping":
            yield CacheInput(b"", Raises({"x": 1}))
        raise raised

    class Bad(Source):
        def __iter__(self) -> Iterator[CacheInput]:
            if where == "iter":
                raise raised
            return samples()

    result = support.fail(runtime.write_cache(Bad("s", []), base, writer_config=QUIET))
    assert "what went wrong" in result.message
    chain = [support.cause_of(result)]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    assert raised in chain
    assert raised.__traceback__ is not None


@pytest.mark.rule("A source is a named iterable")
def test_sources_need_two_members_only(runtime: DatasetRuntime, base: Path) -> None:
    class Minimal:
        __slots__ = ()
        name = "s"

        def __iter__(self) -> Iterator[CacheInput]:
            return iter(support.plain(3))

    class NoIterable:
        name = "n"

    support.succeed(runtime.write_cache(Minimal(), base, writer_config=QUIET))
    bad: Any = NoIterable()
    result = support.fail(runtime.write_cache(bad, base, writer_config=QUIET))
    assert result.source_name == "n"


@pytest.mark.rule("A source is a named iterable")
def test_sources_run_on_the_calling_thread(runtime: DatasetRuntime, base: Path) -> None:
    import threading  # noqa: PLC0415

    threads: set[int] = set()

    def samples() -> Iterator[CacheInput]:
        for sample in support.plain(2000):
            threads.add(threading.get_ident())
            yield sample

    results: list[Any] = []
    worker = threading.Thread(
        target=lambda: results.extend(
            runtime.write_cache(Source("s", samples()), base, writer_config=QUIET)
        )
    )
    worker.start()
    identity = worker.ident
    worker.join()
    support.succeed(results)
    assert threads == {identity}


@pytest.mark.rule("A source that yields nothing is an error")
def test_empty_sources(runtime: DatasetRuntime, base: Path) -> None:
    sources = [Source("empty", []), Source("full", support.plain(2))]
    first, second = runtime.write_cache(sources, base, writer_config=QUIET)
    assert "no samples" in support.message_of(first)
    error = getattr(first, "cause", None)
    assert isinstance(error, EmptySourceError)
    assert isinstance(error, (DatasetRTError, ValueError))
    assert error.source == "empty"
    assert isinstance(second, CacheWriteSuccess)
    assert support.leftovers(base) == []
    assert not (base / "empty").exists()


@pytest.mark.rule("Floats keep every bit", "Integers have 64 bits", "Text keeps every code point")
def test_values_over_many_record_batches(runtime: DatasetRuntime, base: Path) -> None:
    count = 70_000
    samples = (
        (b"", {"i": i, "f": math.sqrt(i), "t": str(i), "b": i % 3 == 0}) for i in range(count)
    )
    cache = support.write(runtime, base, samples)
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0, shuffle=False))
    table = dataset.get_metadata()
    numbers = range(count)
    assert table["i"].to_list() == list(numbers)
    assert table["f"].to_list() == [math.sqrt(i) for i in numbers]
    assert table["t"].to_list() == [str(i) for i in numbers]
    assert table["b"].to_list() == [i % 3 == 0 for i in numbers]
    for i in (0, 65_535, 65_536, count - 1):
        assert dataset.rows[i].metadata == {
            "i": i, "f": math.sqrt(i), "t": str(i), "b": i % 3 == 0
        }  # fmt: skip
