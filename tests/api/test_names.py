"""Names of sources and paths."""

from __future__ import annotations

import os
import pickle
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dataset_rt import CacheWriteError, CacheWriteSuccess, DatasetRuntime, ReaderConfig
from dataset_rt.errors import (
    ArgumentTypeError,
    CacheDamagedError,
    CacheNotFoundError,
    DatasetRTError,
    InvalidArgumentError,
    SourceNameError,
)

from tests import support
from tests.support import QUIET, PrintedSource, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import CacheFactory

pytestmark = pytest.mark.core

REFUSED = [
    "", ".", "..", ".hidden", " lead", "trail ", "dot.", "a/b", "a\\b", "a:b", "a*b", "a?b",
    'a"b', "a<b", "a>b", "a|b", "a\nb", "a\x7fb", "a\x00b", "a\x85b", "CON", "con", "nul.txt",
    "Com1", "LPT9.tar.gz", "AUX", "prn", "tmp", "TMP", "x" * 201, "é" * 101, "a\ud800",
    "com¹", "CONIN$", "prn .x", "CON.", "a\tb", "\udc80", "\ud83d\ude00", "x" * 255, "x" * 300,
    "é" * 150, "🎲" * 51, "/", "//", "C:", "..\\x", "./a", "a/", "~/a/../b",
]  # fmt: skip
TAKEN = [
    "a", "train set", "v1.2", "données", "数据", "данные", "#1", "100%", "[x]", "a'b", "-", "_",
    "console", "tmp2", "com", "x" * 200, "é" * 100, "🎲", "a,b;c=d", "{x}", "(y)", "a~b", "~a",
    "\u00e9", "e\u0301", "~", "%20", "$HOME", "🎲" * 50, "ﬁ", "İ", "a.b", "index.bin", "shards",
]  # fmt: skip


@pytest.mark.rule(
    "Source names are one path segment", "A source is iterated only when it is written"
)
@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_refused_names(runtime: DatasetRuntime, base: Path, name: str) -> None:
    source = Source(name, support.plain(2))
    good = Source("good", support.plain(2))
    first, second = runtime.write_cache([source, good], base, writer_config=QUIET)
    assert isinstance(first, CacheWriteError)
    assert isinstance(first.cause, SourceNameError)
    assert isinstance(first.cause, ValueError)
    assert first.cause.reason
    assert source.started == 0
    assert isinstance(second, CacheWriteSuccess)
    assert support.listing(base) == ["good"]


@pytest.mark.rule("Source names are one path segment")
@pytest.mark.parametrize("name", TAKEN, ids=ascii)
def test_names_that_are_fine(make_cache: CacheFactory, base: Path, name: str) -> None:
    cache = make_cache(support.plain(2), name)
    assert cache == base / name
    assert (cache / "manifest.json").exists()
    assert support.read_manifest(cache)["source"]["name"] == name


@pytest.mark.rule("Names that some file system takes for one are one")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("data", "data"),
        ("Data", "data"),
        ("été", unicodedata.normalize("NFD", "été")),
        ("STRASSE", "straße"),
        ("ΣΑΣ", "σας"),
        ("ﬁle", "FILE"),
        ("\u212b", "å"),
        ("É", "e\u0301"),
    ],
    ids=ascii,
)
def test_one_name_twice(runtime: DatasetRuntime, tmp_path: Path, first: str, second: str) -> None:
    sources = [Source(first, support.plain(2)), Source(second, support.plain(3)),
               Source("other", support.plain(4))]  # fmt: skip
    one, two, three = runtime.write_cache(sources, tmp_path / "call", writer_config=QUIET)
    assert isinstance(one, CacheWriteSuccess)
    assert isinstance(two, CacheWriteError)
    assert isinstance(two.cause, SourceNameError)
    assert isinstance(three, CacheWriteSuccess)
    assert sources[1].started == 0
    assert support.listing(tmp_path / "call") == sorted([first, "other"])


@pytest.mark.rule("Names that some file system takes for one are one")
@pytest.mark.parametrize("method", ["write_cache", "from_cache_sources"])
def test_a_name_like_one_on_the_disk(
    runtime: DatasetRuntime, make_cache: CacheFactory, base: Path, method: str
) -> None:
    make_cache(support.plain(2), "Data")
    source = PrintedSource("data", support.plain(3), "v1")
    if method == "write_cache":
        results = runtime.write_cache(source, base, writer_config=QUIET)
    else:
        results = runtime.from_cache_sources(
            source, base, reader_config=ReaderConfig(seed=0), writer_config=QUIET
        ).results
    result = support.fail(results)
    assert "Data" in result.message
    assert source.started == 0
    assert support.listing(base) == ["Data"]


@pytest.mark.rule("A source without a readable name")
def test_sources_without_names(runtime: DatasetRuntime, base: Path) -> None:
    class Nameless:
        def __iter__(self) -> Iterator[Any]:
            return iter(support.plain(2))

    class Broken(Nameless):
        @property
        def name(self) -> str:
            raise RuntimeError("no name today")

    class Numbered(Nameless):
        name = 7

    sources: list[Any] = [
        Source("a", support.plain(2)),
        Nameless(),
        Broken(),
        Numbered(),
        Source("e", support.plain(2)),
    ]
    results = runtime.write_cache(sources, base, writer_config=QUIET)
    assert [result.source_name for result in results] == [
        "a", "source[1]", "source[2]", "source[3]", "e",
    ]  # fmt: skip
    assert [isinstance(result, CacheWriteSuccess) for result in results] == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert "no name today" in support.message_of(results[2])


@pytest.mark.rule("Paths are taken literally")
@pytest.mark.parametrize("folder", ["[a-z]*", "100%20", "#x ?", "~", ".hidden", "a b", "\u0301"])
def test_base_paths_are_literal(runtime: DatasetRuntime, tmp_path: Path, folder: str) -> None:
    base = tmp_path / folder
    path = support.write(runtime, base, support.plain(3))
    assert path == base / "s"
    assert support.listing(tmp_path) == [folder]
    for given in (path, str(path), str(path) + "/"):
        dataset = runtime.cached_dataset([given], reader_config=ReaderConfig(seed=0))
        assert dataset.cache_paths == [path]
        assert len(list(dataset)) == 3


@pytest.mark.rule("Paths are taken literally")
def test_relative_paths_are_resolved_at_the_call(
    runtime: DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = support.succeed(
        runtime.write_cache(Source("s", support.plain(3)), "~", writer_config=QUIET)
    )
    dataset = runtime.cached_dataset([Path("~") / "s"], reader_config=ReaderConfig(seed=0))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert result.path == tmp_path / "~" / "s"
    assert dataset.cache_paths == [tmp_path / "~" / "s"]
    assert len(list(dataset)) == 3


@pytest.mark.rule("Paths are taken literally")
def test_forms_of_one_base_path(
    runtime: DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    deep = Path(*["a folder with a long name"] * 12)
    assert len(str(tmp_path / deep)) > 300
    forms: list[tuple[str | Path, Path]] = [
        (tmp_path / "a", tmp_path / "a"),
        (str(tmp_path / "b"), tmp_path / "b"),
        (f"{tmp_path}/c/", tmp_path / "c"),
        (f"{tmp_path}//d///", tmp_path / "d"),
        ("e", tmp_path / "e"),
        ("./f/", tmp_path / "f"),
        (Path("g/h"), tmp_path / "g" / "h"),
        ("link", tmp_path / "link"),
        (str(deep), tmp_path / deep),
    ]
    for given, expected in forms:
        source = Source("s", support.plain(3))
        result = support.succeed(runtime.write_cache(source, given, writer_config=QUIET))
        assert result.path == expected / "s"
        assert support.listing(expected) == ["s"]
        for path in (result.path, os.path.relpath(result.path), f"{result.path}/"):
            dataset = runtime.cached_dataset([path], reader_config=ReaderConfig(seed=0))
            assert dataset.cache_paths == [result.path]
            assert len(list(dataset)) == 3


@pytest.mark.rule("Paths are taken literally")
def test_the_working_directory_changes_while_a_source_is_read(
    runtime: DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def samples() -> Iterator[Any]:
        yield from support.plain(1000)
        os.chdir(tmp_path / "elsewhere")
        yield from support.plain(1000)

    sources = [Source("a", samples()), Source("b", support.plain(3))]
    outcome = runtime.from_cache_sources(
        sources, "base", reader_config=ReaderConfig(seed=0), writer_config=QUIET
    )
    assert not isinstance(outcome[0], list)
    assert outcome[0].cache_paths == [tmp_path / "base" / "a", tmp_path / "base" / "b"]
    assert support.listing(tmp_path / "base") == ["a", "b"]
    assert support.listing(tmp_path / "elsewhere") == []


@pytest.mark.rule("Paths are taken literally")
def test_paths_that_are_no_text(runtime: DatasetRuntime, tmp_path: Path) -> None:
    base = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        base.mkdir()
    except OSError:
        pytest.skip("needs a file system that takes any bytes for a name")
    cache = support.write(runtime, base, support.plain(3))
    assert cache == base / "s"
    dataset = runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
    copied = pickle.loads(pickle.dumps(dataset))
    assert copied.cache_paths == [cache]
    assert len(list(copied)) == 3
    (cache / "manifest.json").unlink()
    with pytest.raises(CacheDamagedError) as caught:
        runtime.cached_dataset([cache], reader_config=ReaderConfig(seed=0))
    assert caught.value.path == cache / "manifest.json"
    # A message can be shown anywhere.
    assert "manifest.json" in str(caught.value).encode("utf-8", "replace").decode()


@pytest.mark.rule("Paths are taken literally", "Arguments are checked")
def test_paths_that_can_not_be(runtime: DatasetRuntime, tmp_path: Path) -> None:
    config = ReaderConfig(seed=0)
    for bad in ("a\0b", "x" * 5000, "y" * 256):
        source = Source("s", support.plain(2))
        with pytest.raises((DatasetRTError, CacheNotFoundError)):
            runtime.cached_dataset([str(tmp_path / bad)], reader_config=config)
        try:
            results = runtime.write_cache(source, str(tmp_path / bad), writer_config=QUIET)
        except DatasetRTError:
            pass
        else:
            support.fail(results)
        assert source.started == 0
    assert support.listing(tmp_path) == []


@pytest.mark.rule("Paths are taken literally", "Arguments are checked")
def test_wrong_kinds_of_paths(runtime: DatasetRuntime, make_cache: CacheFactory) -> None:
    cache = make_cache(support.plain(2))
    config = ReaderConfig(seed=0)
    wrong: list[Any] = [str(cache), cache, bytes(cache), [bytes(cache)], [3], {cache}, None]
    for paths in wrong:
        with pytest.raises(ArgumentTypeError):
            runtime.cached_dataset(paths, reader_config=config)
    bases: list[Any] = [os.fsencode(cache), 3, None]
    for base in bases:
        with pytest.raises(ArgumentTypeError):
            runtime.write_cache(Source("x", support.plain(1)), base, writer_config=QUIET)


@pytest.mark.rule("One bad path fails the call")
def test_bad_paths(runtime: DatasetRuntime, make_cache: CacheFactory, tmp_path: Path) -> None:
    cache = make_cache(support.plain(2))
    empty = tmp_path / "empty"
    empty.mkdir()
    for bad in (tmp_path / "nowhere", empty):
        with pytest.raises(CacheNotFoundError) as caught:
            runtime.cached_dataset([cache, bad], reader_config=ReaderConfig(seed=0))
        assert isinstance(caught.value, FileNotFoundError)
        assert caught.value.path == bad
        assert str(bad) in str(caught.value)
    with pytest.raises(InvalidArgumentError):
        runtime.cached_dataset([], reader_config=ReaderConfig(seed=0))


@pytest.mark.rule("The position of a path is its cache_id")
def test_cache_ids_follow_the_paths(runtime: DatasetRuntime, make_cache: CacheFactory) -> None:
    one, two = make_cache(support.plain(1), "one"), make_cache(support.plain(2), "two")
    config = ReaderConfig(seed=0, shuffle=False)
    dataset = runtime.cached_dataset([two, one, two], reader_config=config)
    assert dataset.cache_paths == [two, one, two]
    assert support.ids(dataset) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]


@pytest.mark.rule("The position of a path is its cache_id")
def test_cache_ids_skip_failed_sources(runtime: DatasetRuntime, base: Path) -> None:
    sources = [Source("a", support.plain(1)), Source("b", []), Source("c", support.plain(2))]
    outcome = runtime.from_cache_sources(
        sources,
        base,
        reader_config=ReaderConfig(seed=0, shuffle=False),
        writer_config=QUIET,
    )
    dataset = outcome[0]
    assert not isinstance(dataset, list)
    assert dataset.cache_paths == [base / "a", base / "c"]
    assert support.ids(dataset) == [(0, 0), (1, 0), (1, 1)]
