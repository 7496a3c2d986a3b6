"""The conformance command: ``python -m dataset_rt_reader``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from .conformance.documents import content, order, refusal
from .conformance.runner import run
from .errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .conformance.tagged import Json

_WRONG_ARGUMENTS = 2
_CANT_READ = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="dataset_rt_reader", description="Verify a cache and print its content as JSON."
    )
    parser.add_argument("cache", nargs="?", help="folder of a cache")
    parser.add_argument("--all-rows", action="store_true", help="print every row")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--batch", action="store_true", help="read folders from standard input")
    what.add_argument("--order", metavar="JSON", help="print the rows of a window instead")
    what.add_argument("--vectors", metavar="FOLDER", help="run all vectors")
    options = parser.parse_args(arguments)
    if (options.cache is None) == (not options.batch and options.vectors is None):
        parser.error("give either a cache, or --batch, or --vectors")
    if options.all_rows and (options.order is not None or options.vectors is not None):
        parser.error("--all-rows is for the content of caches")
    if options.vectors is not None:
        return _vectors(Path(options.vectors))
    if options.batch:
        return _batch(all_rows=options.all_rows)
    root = Path(options.cache)
    try:
        if options.order is None:
            document = content(root, all_rows=options.all_rows)
        else:
            try:
                request = json.loads(options.order)
                if not isinstance(request, dict):
                    raise TypeError("it must be an object")  # noqa: TRY301
                document = order(root, request)
            except (ValueError, TypeError) as error:
                parser.error(f"--order: {error}")
    except CacheError as error:
        print(error, file=sys.stderr)
        _print(refusal(error))
        return 1
    except OSError as error:
        print(error, file=sys.stderr)
        return _CANT_READ
    _print(document)
    return 0


def _batch(*, all_rows: bool) -> int:
    for line in sys.stdin.buffer:
        folder = os.fsdecode(line.removesuffix(b"\n"))
        if not folder:
            continue
        try:
            document = content(Path(folder), all_rows=all_rows)
        except CacheError as error:
            print(f"{folder!r}: {error}", file=sys.stderr)
            document = refusal(error)
        except OSError as error:
            print(f"{folder!r}: {error}", file=sys.stderr)
            return _CANT_READ
        _print(document)
    return 0


def _vectors(folder: Path) -> int:
    if not (folder / "index.json").is_file():
        print(f"{folder} has no index.json", file=sys.stderr)
        return _WRONG_ARGUMENTS
    passed: Counter[str] = Counter()
    failed = 0
    for kind, name, failure in run(folder):
        if failure is None:
            passed[kind] += 1
        else:
            failed += 1
            print(f"{name}: {failure}")
    counts = ", ".join(f"{passed[kind]} {kind}" for kind in ("unit", "valid", "invalid"))
    print(f"{passed.total()} vectors pass ({counts}), {failed} fail")
    return 1 if failed else 0


def _print(document: Json) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    sys.exit(main())
