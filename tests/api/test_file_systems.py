"""File systems that lack locks, renames that replace nothing, swaps or hard links."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dataset_rt import ReaderConfig

from tests import support
from tests.processes import Group, is_long

if TYPE_CHECKING:
    from dataset_rt import DatasetRuntime

SHIM = Path(__file__).resolve().parent.parent / "shim.c"
LIMIT = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library to load first, which refuses what the environment says."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(  # noqa: S603
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"],
        check=True,
    )
    return str(library)


def lacking(shim: str, **calls: int) -> dict[str, str]:
    """The environment of a process for which these calls fail."""
    refused = {f"SHIM_{call.upper()}": str(code) for call, code in calls.items()}
    return {"LD_PRELOAD": shim, **refused}


LACKS = {
    "no flock": {"flock": errno.ENOSYS},
    "no lock daemon": {"flock": errno.ENOLCK},
    "old kernel": {"renameat2": errno.ENOSYS},
    "rename without flags": {"renameat2": errno.EINVAL},
    "no hard links": {"link": errno.EPERM},
    "nothing of that": {"flock": errno.ENOLCK, "renameat2": errno.EINVAL, "link": errno.EPERM},
}
lacks = pytest.mark.parametrize("lack", LACKS.values(), ids=LACKS.keys())
RACES = LACKS if is_long() else {name: LACKS[name] for name in ("no flock", "nothing of that")}
lacks_in_races = pytest.mark.parametrize("lack", RACES.values(), ids=RACES.keys())


@lacks
@pytest.mark.rule("File systems may lack locks, swaps and links")
def test_write_reuse_rebuild_and_read(tmp_path: Path, shim: str, lack: dict[str, int]) -> None:
    done = support.run(
        """
        import json, os, sys
        from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
        from tests import support
        base = sys.argv[1]
        runtime = DatasetRuntime(num_workers=2)
        reader = ReaderConfig(seed=0, shuffle=False, validate_cache=True)
        def build(fingerprint, count, policy="error"):
            config = WriterConfig(show_progress=False, on_mismatch=policy, max_shard_bytes=1000)
            outcome = runtime.from_cache_sources(
                support.PrintedSource("s", support.plain(count), fingerprint), base,
                reader_config=reader, writer_config=config)
            [result] = outcome.results
            dataset = getattr(outcome, "dataset", None)
            count = dataset and len([sample.data for sample in dataset])
            return [type(result.cause).__name__ if dataset is None else result.status, count]
        answers = [build("v1", 100), build("v1", 5), build("v2", 5), build("v2", 200, "rebuild")]
        [again] = runtime.write_cache(
            support.Source("s", support.plain(2)), base, writer_config=support.QUIET)
        answers.append(type(again.cause).__name__)
        os.mkdir(base + "/empty")
        [foreign] = runtime.write_cache(
            support.Source("empty", support.plain(2)), base, writer_config=support.QUIET)
        answers.append(type(foreign.cause).__name__)
        print(json.dumps(answers))
        """,
        tmp_path / "base",
        changes=lacking(shim, **lack),
    )
    assert json.loads(done.stdout) == [
        ["written", 100],
        ["reused", 100],
        ["CacheMismatchError", None],
        ["rebuilt", 200],
        "CacheExistsError",
        "CacheExistsError",
    ]
    assert support.listing(tmp_path / "base") == ["empty", "s"]


RACER = """
import json, os, sys, time
from dataset_rt import DatasetRuntime, ReaderConfig
from tests import support
mine = int(sys.argv[1])
runtime = DatasetRuntime(num_workers=1)
def samples():
    for i in range(60):
        if i % 20 == 0:
            time.sleep(0.001)
        yield support.payload(i), {"by": mine}
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    base, way = line.split()
    if way == "write":
        [result] = runtime.write_cache(
            support.Source("s", samples()), base, writer_config=support.QUIET)
    else:
        outcome = runtime.from_cache_sources(
            support.PrintedSource("s", samples(), "v"), base,
            reader_config=ReaderConfig(seed=0), writer_config=support.QUIET)
        [result] = outcome.results
    status = None if result.status == "error" else result.status
    by = None
    if status is not None:
        dataset = runtime.cached_dataset(
            [base + "/s"], reader_config=ReaderConfig(seed=0, validate_cache=True))
        [by] = dataset.get_metadata()["by"].unique().to_list()
    cause = type(getattr(result, "cause", None)).__name__
    print(json.dumps([status, by, cause, getattr(result, "message", "")]), flush=True)
"""


@LIMIT
@lacks_in_races
@pytest.mark.rule(
    "File systems may lack locks, swaps and links", "Several processes may write one source"
)
def test_processes_race_without_help(tmp_path: Path, shim: str, lack: dict[str, int]) -> None:
    with Group(RACER, range(4), changes=lacking(shim, **lack)) as racers:
        for number in range(4):
            way = ["reuse", "write"][number % 2]
            base = tmp_path / str(number)
            answers = racers.ask(f"{base} {way}")
            statuses = [status for status, _, _, _ in answers]
            assert statuses.count("written") == 1, answers
            winner = statuses.index("written")
            for status, by, cause, _ in answers:
                # Without locks a source may be read by several, and one of them is stored.
                assert status is None or by == winner
                assert status is not None or (way, cause) == ("write", "CacheExistsError")
            assert support.listing(base) == ["s"]


KILLED = """
import os, signal, sys
from dataset_rt import DatasetRuntime
from tests import support
def samples():
    for i in range(3000):
        yield support.payload(i, 1000), {"i": i}
    os.kill(os.getpid(), signal.SIGKILL)
DatasetRuntime(num_workers=2).write_cache(
    support.Source("s", samples()), sys.argv[1], writer_config=support.QUIET)
"""


@lacks_in_races
@pytest.mark.rule(
    "File systems may lack locks, swaps and links",
    "A killed write is cleaned up by the next one",
)
def test_the_dead_are_told_from_the_living(tmp_path: Path, shim: str, lack: dict[str, int]) -> None:
    changes = lacking(shim, **lack)
    base = tmp_path / "base"
    support.run(KILLED, base, check=False, changes=changes)
    assert len(support.leftovers(base)) == 1
    living = """
    import json, sys
    from dataset_rt import DatasetRuntime
    from tests import support
    runtime = DatasetRuntime(num_workers=1)
    def samples():
        yield from support.plain(2000)
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
    result = support.succeed(runtime.write_cache(
        support.Source("living", samples()), sys.argv[1], writer_config=support.QUIET))
    print(json.dumps(result.status), flush=True)
    """
    with Group(living, [0], base, changes=changes) as group:
        # The dead one's folder is gone, and another process leaves the living one's alone.
        [kept] = support.leftovers(base)
        assert kept.startswith("living")
        other = """
        import sys
        from dataset_rt import DatasetRuntime
        from tests import support
        support.succeed(DatasetRuntime(num_workers=1).write_cache(
            support.Source("s", support.plain(5)), sys.argv[1], writer_config=support.QUIET))
        """
        support.run(other, base, changes=changes)
        assert support.leftovers(base) == [kept]
        assert group.ask("go") == ["written"]
    assert support.listing(base) == ["living", "s"]


REFUSED_WRITE = """
import json, os, sys
from dataset_rt import DatasetRuntime
from tests import support
[result] = DatasetRuntime(num_workers=1).write_cache(
    support.Source("s", support.plain(50)), sys.argv[1], writer_config=support.QUIET)
cause = getattr(result, "cause", None)
print(json.dumps([type(cause).__name__ if cause else result.status,
                  getattr(cause, "errno", None), getattr(result, "message", "")]))
"""


@pytest.mark.rule(
    "File systems may lack locks, swaps and links", "A failed write is never a success"
)
def test_a_staging_folder_on_another_mount(tmp_path: Path, shim: str) -> None:
    base = tmp_path / "base"
    changes = lacking(shim, renameat2=errno.EXDEV)
    done = support.run(REFUSED_WRITE, base, changes=changes)
    kind, number, message = json.loads(done.stdout)
    assert (kind, number) == ("StorageError", errno.EXDEV)
    assert str(base / "s") in message
    assert support.listing(base) == []


@pytest.mark.rule("Interrupted system calls are repeated")
@pytest.mark.parametrize("call", ["renameat2", "fsync"])
def test_a_call_that_succeeds_later(
    runtime: DatasetRuntime, tmp_path: Path, shim: str, call: str
) -> None:
    base = tmp_path / "base"
    code = {"renameat2": errno.EBUSY, "fsync": errno.EINTR}[call]
    changes = {**lacking(shim, **{call: code}), f"SHIM_{call.upper()}_TIMES": "3"}
    done = support.run(REFUSED_WRITE, base, changes=changes)
    assert json.loads(done.stdout) == ["written", None, ""]
    assert support.listing(base) == ["s"]
    dataset = runtime.cached_dataset(
        [base / "s"], reader_config=ReaderConfig(seed=0, validate_cache=True)
    )
    assert len(dataset) == 50
