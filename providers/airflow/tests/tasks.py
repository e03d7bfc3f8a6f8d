"""What tasks of the tests run, in the Python that has Cargobike."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cargobike import models, project


def double(number: float, times: int = 2) -> dict[str, Any]:
    print(f"doubling {number}")
    return {"number": number * times, "project": str(project.current().root), "python": sys.executable}


def fail(times: int = 1) -> None:
    raise ValueError(f"the roof leaks in {times} places")


def give_up() -> None:
    sys.exit(3)


def die() -> None:
    os._exit(9)


def return_object() -> object:
    return [1, {"deep": object()}]


def return_much() -> str:
    return "x" * 300_000


def secrets() -> list[str]:
    return sorted(name for name in os.environ if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_")))


def register() -> Any:
    return models.register("price", lambda rows: [100.0 for _ in rows], metrics={"error": 1.0}, example=[1.0])


def train(rate: float) -> dict[str, float]:
    return {"accuracy": rate}


def train_badly(rate: float) -> float:
    raise ArithmeticError(f"diverged at {rate}")


def wait(folder: str) -> None:
    """Start a process, say so, and wait for ever; what is left behind by an interrupt tells that it came."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(folder, "child").write_text(str(child.pid))
    Path(folder, "started").write_text(str(os.getpid()))
    try:
        while True:
            time.sleep(0.05)
    finally:
        Path(folder, "cleaned").write_text("yes")
