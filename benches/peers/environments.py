"""The virtual environments of the libraries, outside the checkout, made once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from .catalogue import ENVIRONMENTS, OWN

PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")


def root() -> Path:
    cache = os.environ.get("DATASET_RT_CACHE") or Path.home() / ".cache" / "dataset_rt"
    return Path(cache) / "peers"


def python(name: str) -> str:
    """The interpreter of an environment."""
    return sys.executable if name == OWN else str(root() / name / "bin" / "python")


def prepare(name: str) -> dict[str, str]:
    """Makes the environment if it is not there. Returns the steps that failed, with pip's words."""
    if name == OWN:
        return {}
    folder = root() / name
    steps = ENVIRONMENTS[name]
    wanted = hashlib.sha256(json.dumps([sys.version, steps]).encode()).hexdigest()
    stamp = folder / "installed.json"
    if stamp.is_file():
        known = json.loads(stamp.read_text(encoding="utf-8"))
        if known["wanted"] == wanted:
            failed: dict[str, str] = known["failed"]
            return failed
    print(f"installing the environment {name}: {folder}", flush=True)
    run = subprocess.run
    run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    failed = {}
    for step in steps:
        done = run([python(name), *PIP, *step], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            failed[" ".join(step)] = (lines or done.stderr.splitlines()[-1:] or ["pip failed"])[-1]
    stamp.write_text(json.dumps({"wanted": wanted, "failed": failed}), encoding="utf-8")
    return failed
