"""Steps and pipelines for tests; they lie in a file of their own, as a user's do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cargobike import pipelines


@pipelines.step
def add(left: Any, right: Any = 1) -> Any:
    """Add two values."""
    print("adding", left, right)
    return left + right


@pipelines.step(cache=True)
def counted(folder: str, value: Any) -> Any:
    """Return the value, and leave a mark for each time that this was really run."""
    mark(folder, "counted")
    return value


@pipelines.step
def marked(folder: str, name: str, value: Any) -> Any:
    """Return the value, and leave a mark."""
    mark(folder, name)
    return value


@pipelines.step(retries=2, backoff=0.001)
def flaky(folder: str, fails: int) -> int:
    """Fail a few times."""
    times = mark(folder, "flaky")
    if times <= fails:
        raise ValueError(f"attempt {times}")
    return times


@pipelines.step
def until_allowed(folder: str, value: Any) -> Any:
    """Fail until a file is there."""
    if not Path(folder, "allowed").exists():
        raise ValueError("not allowed yet")
    return value


@pipelines.step
def failing(text: str) -> None:
    """Fail."""
    raise ValueError(text)


@pipelines.step
def generator(count: int) -> Any:
    """Return what cannot be kept."""
    return {"rows": [1, (number for number in range(count))]}


@pipelines.step(timeout=0.3)
def hanging() -> None:
    """Take for ever."""
    time.sleep(600)


@pipelines.step
def crashing() -> None:
    """End as a crash in compiled code does."""
    os.kill(os.getpid(), signal.SIGSEGV)


@pipelines.step
def leaving(folder: str) -> int:
    """Leave a process behind, in a session of its own."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(folder, "left").write_text(str(child.pid))
    return child.pid


def mark(folder: str, name: str) -> int:
    """Count a call in a file, and return how many there were."""
    path = Path(folder, name)
    with path.open("a") as file:
        file.write("x")
    return len(path.read_text())


def count(folder: str | Path, name: str) -> int:
    """Return how often something was marked."""
    path = Path(folder, name)
    return len(path.read_text()) if path.exists() else 0
