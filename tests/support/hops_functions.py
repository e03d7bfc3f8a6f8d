"""Train functions as scripts for hops have them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cargobike import trial
from cargobike.compat.hops import tensorboard


def score(lr: float, units: int) -> float:
    print("trying", lr)
    return -abs(lr - 0.1) - abs(units - 4)


def several(a: int, b: int) -> dict[str, Any]:
    Path("notes.txt").write_text(f"{a} {b}")
    other = Path(os.environ["TMPDIR"], f"elsewhere-{a}-{b}.txt")
    other.write_text("far")
    return {"accuracy": a + b, "loss": -a, "notes": "notes.txt", "far": str(other), "where": "a/b"}


def once() -> float:
    print("hello")
    Path(tensorboard.logdir(), "events").write_text("x")
    return 0.5


def positions() -> dict[str, Any]:
    """Return what a rank knows of the job."""
    config = json.loads(os.environ["TF_CONFIG"])
    total = trial.all_reduce(trial.rank + 1, op="sum")
    sizes = {role: len(members) for role, members in config["cluster"].items()}
    return {"total": total, "task": config["task"]["type"], "cluster": sizes}


def kept_elsewhere() -> dict[str, Any]:
    """Return a number and a file."""
    Path("notes.txt").write_text("far away")
    return {"accuracy": 0.5, "notes": "notes.txt"}
