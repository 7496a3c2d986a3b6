"""Many processes at one cache: who stores, who is told, and what readers see meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import support
from tests.processes import Group, is_long

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 100 if is_long() else 5
WRITERS = 8

# Hang limit of a whole test: rounds take a second or so each where eight processes share two cores.
LIMIT = pytest.mark.timeout(60 + 15 * ROUNDS)

WRITER = """
import json, os, sys, time
from dataset_rt import DatasetRuntime, ReaderConfig, WriterConfig
from tests import support
mode, mine = sys.argv[1], int(sys.argv[2])
runtime = DatasetRuntime(num_workers=1)
reader = ReaderConfig(seed=0, shuffle=False, validate_cache=True)

def samples(base):
    # One write each, and appended: lines of several processes don't mix.
    log = os.open(base + ".log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, b"%d\\n" % mine)
    os.close(log)
    for i in range(50 + mine):
        if i % 10 == 0:
            time.sleep(0.001)
        yield support.payload(1000 * mine + i, 200), {"by": mine}

def look(base):
    dataset = runtime.cached_dataset([base + "/s"], reader_config=reader)
    [by] = dataset.get_metadata()["by"].unique().to_list()
    assert len(dataset) == 50 + by
    # Where caches follow each other, the files of this one may be gone before they are opened.
    if mode != "rebuild":
        expected = [support.payload(1000 * by + i, 200) for i in range(50 + by)]
        assert [sample.data for sample in dataset] == expected
    return by

print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    base = line.strip()
    if mode == "write":
        source = support.Source("s", samples(base))
        [result] = runtime.write_cache(source, base, writer_config=support.QUIET)
    else:
        # Who writes the same has one fingerprint.
        fingerprint = "same" if mode == "same" else str(mine)
        policy = "rebuild" if mode == "rebuild" else "error"
        config = WriterConfig(show_progress=False, on_mismatch=policy, max_shard_bytes=2000)
        outcome = runtime.from_cache_sources(
            support.PrintedSource("s", samples(base), fingerprint), base,
            reader_config=reader, writer_config=config)
        [result] = outcome.results
    status = None if result.status == "error" else result.status
    by = look(base) if status else None
    cause = type(getattr(result, "cause", None)).__name__
    message = getattr(result, "message", "")
    print(json.dumps({"status": status, "by": by, "cause": cause, "message": message}), flush=True)
"""

POLLER = """
import json, os, sys
from dataset_rt import DatasetRuntime, ReaderConfig
from dataset_rt.errors import CacheNotFoundError
from tests import support
runtime = DatasetRuntime(num_workers=1)
reader = ReaderConfig(seed=0, shuffle=False, validate_cache=True)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    base = line.strip()
    seen, done = [], False
    while not (done and seen):
        # Asked before the look, so that the last look comes after the last writer.
        done = os.path.exists(base + ".done")
        try:
            dataset = runtime.cached_dataset([base + "/s"], reader_config=reader)
        except CacheNotFoundError:
            # Once it is there, it stays.
            assert not seen, seen
            continue
        [by] = dataset.get_metadata()["by"].unique().to_list()
        assert len(dataset) == 50 + by
        if sys.argv[1] != "rebuild":
            assert [s.data for s in dataset][-1] == support.payload(1000 * by + 49 + by, 200)
        if by not in seen[-1:]:
            seen.append(by)
    print(json.dumps(seen), flush=True)
"""


def rounds(tmp_path: Path, mode: str, count: int = WRITERS) -> list[tuple[Path, Any, Any, Any]]:
    """Of each round: its base, what the writers answered, who read a source, what a reader saw."""
    found = []
    with Group(WRITER, range(count), mode) as writers, Group(POLLER, [0], mode) as poller:
        for number in range(ROUNDS):
            base = tmp_path / str(number)
            poller.say(base)
            answers = writers.ask(base)
            base.with_suffix(".done").touch()
            [seen] = poller.hear()
            log = base.with_suffix(".log").read_text(encoding="ascii")
            assert support.listing(base) == ["s"]
            found.append((base, answers, [int(line) for line in log.split()], seen))
    return found


@LIMIT
@pytest.mark.rule(
    "Several processes may write one source", "A source is iterated only when it is written"
)
def test_one_of_eight_processes_runs_the_source(tmp_path: Path) -> None:
    for _, answers, log, seen in rounds(tmp_path, "same"):
        [winner] = [n for n, answer in enumerate(answers) if answer["status"] == "written"]
        assert [answer["status"] for answer in answers].count("reused") == WRITERS - 1
        assert {answer["by"] for answer in answers} == {winner}
        assert log == [winner]
        assert seen == [winner]


@LIMIT
@pytest.mark.rule("Several processes may write one source", "A cache appears whole")
def test_writers_of_different_data_are_told_who_lost(tmp_path: Path) -> None:
    for _, answers, log, seen in rounds(tmp_path, "write", 4):
        [winner] = [n for n, answer in enumerate(answers) if answer["status"] == "written"]
        losers = [answer for n, answer in enumerate(answers) if n != winner]
        assert {answer["cause"] for answer in losers} == {"CacheExistsError"}
        for answer in losers:
            # Too late at the end, or already at the start.
            assert "was not stored" in answer["message"] or "stands there" in answer["message"]
        assert answers[winner]["by"] == winner
        assert winner in log
        assert seen == [winner]


@LIMIT
@pytest.mark.rule(
    "Several processes may write one source",
    "on_mismatch says what happens to another fingerprint",
)
def test_sources_of_different_fingerprints_meet_the_winners_cache(tmp_path: Path) -> None:
    for _, answers, log, seen in rounds(tmp_path, "error", 4):
        [winner] = [n for n, answer in enumerate(answers) if answer["status"] == "written"]
        losers = [answer for n, answer in enumerate(answers) if n != winner]
        assert {answer["cause"] for answer in losers} == {"CacheMismatchError"}
        assert log == [winner]
        assert seen == [winner]


@LIMIT
@pytest.mark.rule(
    "Several processes may write one source",
    "Rebuilding keeps the old cache until the new one is whole",
)
def test_rebuilds_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    for _, answers, log, seen in rounds(tmp_path, "rebuild", 4):
        assert sorted(answer["status"] for answer in answers) == ["rebuilt"] * 3 + ["written"]
        # Each one's data stood there for a while; the reader never met a gap or a mixture.
        assert sorted(log) == [0, 1, 2, 3]
        assert seen[-1] == log[-1]
