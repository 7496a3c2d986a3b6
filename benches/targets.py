"""What is aimed at, and where in the results of the runs the figure stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PRODUCT = "dataset_rt"
EXPRESSIONS = "expressions."
"""What names of blocks of `make bench-expressions` start with."""


@dataclass(frozen=True)
class Found:
    """A figure of the runs, and whether it meets the target; None where that cannot be told."""

    text: str
    met: bool | None


@dataclass
class Results:
    """The cases of all blocks by name, and the rows of the tables of peers by workload."""

    blocks: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    peers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def case(self, block: str, key: str) -> dict[str, Any] | None:
        return self.blocks.get(block, {}).get(key)


@dataclass(frozen=True)
class Target:
    """One line of the table."""

    work: str
    aim: str
    block: str
    """Which block has it: the line's command runs it."""
    case: str
    at_least: float | None = None
    """Of the ratio to `over`; of the figure itself where there is none."""
    over: str = ""
    at_most: float | None = None
    """Of the figure itself; of its difference to `less` where that is given."""
    less: str = ""
    kind: str = "bench"

    @property
    def command(self) -> str:
        if self.kind == "bench":
            return f"make bench BENCH='--only {self.block}'"
        if self.kind == "expressions":
            pattern = self.block.removeprefix(EXPRESSIONS)
            return f"make bench-expressions EXPRESSIONS=\"--only '{pattern}'\""
        return f"make bench-{self.kind}"

    def found(self, results: Results) -> Found:
        case = results.case(self.block, self.case)
        if case is None:
            return Found("not run", None)
        value, unit = case["median"], case["unit"]
        if self.over:
            ratio = case["speed_over"].get(self.over)
            if ratio is None:
                return Found("nothing to compare with", None)
            met = None if self.at_least is None else ratio >= self.at_least
            return Found(f"{ratio:.0%}, {amount(value, unit)}", met)
        if self.less:
            base = results.case(self.block, self.less)
            if base is None:
                return Found("not run", None)
            value -= base["median"]
        met = None
        if self.at_most is not None:
            met = value <= self.at_most
        elif self.at_least is not None:
            met = value >= self.at_least
        return Found(amount(value, unit), met)


def amount(value: float, unit: str) -> str:
    """A figure with its unit, short."""
    if unit == "samples/s":
        return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.2f} {unit}"


def _beside_limit(name: str, order: str, share: float) -> Target:
    return Target(
        f"{name} {order}",
        f"{share:.0%} of the limit",
        f"{name}.read",
        f"{order}/{PRODUCT}",
        at_least=share,
        over=f"{order}/limit",
    )


def _payload_only(name: str, order: str) -> Target:
    return Target(
        f"{name} {order}, payload only",
        "150 % of the limit that builds both",
        f"{name}.read",
        f"{order}, payload only/{PRODUCT}",
        at_least=1.5,
        over=f"{order}/limit",
    )


def _batch(way: str, share: float) -> Target:
    return Target(
        f"W1 shuffled in batches of 256, {way}",
        f"{share:.0%} of one by one",
        "W1.batches",
        f"shuffled/batches of 256, {way}",
        at_least=share,
        over="shuffled/one by one",
    )


def _plainly(work: str, aim: str, block: str, case: str, most: float) -> Target:
    return Target(work, aim, block, f"{case}/{PRODUCT}", at_most=most)


def _drawn(work: str, aim: str, case: str, most: float) -> Target:
    return Target(work, aim, "W3.draws", f"{case}/one core", at_most=most)


def _of_expressions(
    work: str, aim: str, row: str, case: str, least: float, over: str = ""
) -> Target:
    return Target(
        work,
        aim,
        f"{EXPRESSIONS}{row}",
        f"{case}/{PRODUCT}",
        at_least=least,
        over=over and f"{case}/{over}",
        kind="expressions",
    )


def _split_by_hash(keys: str) -> Target:
    work, row = f"hash_split, {keys}, one thread", "hash_split, one thread"
    return _of_expressions(work, "100 M rows/s", row, keys, 100e6)


def _within_groups(name: str) -> Target:
    row = f"{name}, over 200,000 groups"
    return _of_expressions(row, "plain Polars", row, row, 1, "plain Polars")


TARGETS = (
    _beside_limit("W1", "ordered", 0.9),
    _beside_limit("W1", "shuffled", 1.0),
    _beside_limit("W1", "weighted", 0.85),
    _beside_limit("W3", "ordered", 0.85),
    _beside_limit("W3", "shuffled", 0.75),
    _beside_limit("W2", "shuffled", 1.2),
    *(_payload_only(name, order) for name in ("W1", "W3") for order in ("ordered", "shuffled")),
    _batch("one buffer", 2.5),
    _batch("list of bytes", 1.7),
    Target(
        "write W1",
        "75 % of a bare loop over the source",
        "W1.write",
        f"write/{PRODUCT}",
        at_least=0.75,
        over="write/bare loop",
    ),
    Target(
        "write W2",
        "75 % of a plain file writer with the checksum",
        "W2.write",
        f"write/{PRODUCT}",
        at_least=0.75,
        over="write/plain file with crc32c and fsync",
    ),
    _plainly("open and first sample, W3", "2 ms", "W3.open", "open and first sample", 2),
    Target(
        "W2 shuffled, cold page cache",
        "95 % of 16 threads of pread",
        "W2.cold",
        f"shuffled, cold/{PRODUCT}",
        at_least=0.95,
        over="shuffled, cold/pread by 16 threads",
    ),
    Target(
        "W1 shuffled, cold page cache",
        "90 % of 16 threads of pread",
        "W1.cold",
        f"shuffled, cold/{PRODUCT}",
        at_least=0.9,
        over="shuffled, cold/pread by 16 threads",
    ),
    _plainly("private memory, W3 shuffled", "25 MB", "W3.memory", "shuffled pass", 25),
    _plainly(
        "private memory, writing 1 M samples of 5 columns",
        "100 MB",
        "W3.memory",
        "write, 1,000,000 x 64 B, 5 columns",
        100,
    ),
    _plainly(
        "private memory, writing a quarter of that",
        "as much",
        "W3.memory",
        "write, 250,000 x 64 B, 5 columns",
        100,
    ),
    _plainly("update_metadata, 1 M rows", "15 ms", "W3.table", "update_metadata, new weights", 15),
    _plainly("get_metadata, 1 M rows", "10 ms", "W3.table", "get_metadata, again", 10),
    _drawn("permutation draw, 10 M rows", "110 ns", "permutation, 10,000,000 rows", 110),
    _drawn("weighted draw, 10 M rows", "130 ns", "weighted, 10,000,000 rows", 130),
    _drawn("100 M weights built", "2 s", "weights built, 100,000,000 rows", 2),
    _plainly(
        "bytes a sample beside the payload, W3",
        "50",
        "W3.size",
        "bytes a sample beside its payload",
        50,
    ),
    Target(
        "`import dataset_rt` beyond `import polars`",
        "150 ms",
        "W3.import",
        f"import/{PRODUCT}",
        at_most=150,
        less="import/polars",
    ),
    _split_by_hash("Int64 keys"),
    _split_by_hash("short String keys"),
    _within_groups("balanced_weight"),
    _within_groups("normalize_weight"),
    _of_expressions(
        "sample_weighted without replacement, half of 2^24 rows, one thread",
        "4 times torch.multinomial",
        "sample_weighted, half of the rows, one thread",
        "sample_weighted",
        4,
        "torch.multinomial, float64",
    ),
    _of_expressions(
        "scan_cache, a filter that keeps 1 %: bytes from the disk",
        "at most 1.1 times the payloads kept",
        "scan_cache, a filter that keeps 1 %, with payloads",
        "bytes read from the disk into a cold page cache, with readahead",
        1 / 1.1,
        "payloads of the rows kept",
    ),
)
