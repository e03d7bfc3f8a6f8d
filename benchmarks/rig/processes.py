"""Run a measured program in a fresh process tree, and leave nothing of it behind.

The harness makes itself the subreaper of all its descendants: daemons that a peer starts and forgets fall
back to it, so that their CPU time is counted, and so that they can be found and ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class RunFailed(RuntimeError):
    """A measured program failed, gave no answer or took too long."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run of a measured program.

    Attributes:
        answer: The JSON object that it printed.
        marks: Seconds from the start of the process to each time that it marked.
        wall_s: Seconds from start to exit of the program itself.
        cpu_s: User and system time of everything that it started.
        leftovers: Processes that had to be ended after it was done.
    """

    answer: dict[str, Any]
    marks: dict[str, float]
    wall_s: float
    cpu_s: float
    leftovers: int


def become_subreaper() -> None:
    """Adopt every orphan among the descendants of this process, from now on."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    marks: Sequence[str] = (),
    copies: Sequence[Path] = (),
) -> Run:
    """Run a program to its end and read its answer.

    Args:
        command: The interpreter, the program and its arguments.
        env: Added to the environment; `BENCH_FOLDER` is set to a folder that is removed afterwards.
        timeout_s: Everything is killed after that long.
        marks: Names that the program marks with `answers.mark`.
        copies: Files to copy into that folder, which is the working directory.

    Raises:
        RunFailed: With the end of what the program wrote.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    cpu_before_s = cpu_of_children_s()
    try:
        for file in copies:
            shutil.copy(file, folder)
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            started_at = time.time()
            process = subprocess.Popen(
                command,
                env={**plain_environment(), **env, "BENCH_FOLDER": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - the harness has a single thread
            )
            try:
                code: int | None = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                wall_s = time.time() - started_at
                leftovers = end_descendants(process)
        answer = _answer_in(folder / "stdout")
        if code != 0 or answer is None:
            raise RunFailed(_explain(command, code, folder, timeout_s))
        return Run(
            answer=answer,
            marks={name: float((folder / name).read_text()) - started_at for name in marks},
            wall_s=wall_s,
            cpu_s=cpu_of_children_s() - cpu_before_s,
            leftovers=leftovers,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end_descendants(process: subprocess.Popen[bytes], grace_s: float = 3.0) -> int:
    """End and reap everything below this process; return how many had not ended by themselves in time."""
    deadline = time.monotonic() + (grace_s if process.poll() is not None else 0.0)
    while _children(os.getpid()) and time.monotonic() < deadline:
        _reap(process)
        time.sleep(0.02)
    killed: set[int] = set()
    while pids := _descendants(os.getpid()):
        for pid in pids:
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        _reap(process)
        time.sleep(0.02)
    return len(killed)


def plain_environment() -> dict[str, str]:
    """Return the environment without Python's own switches.

    `PYTHONDONTWRITEBYTECODE`, for one, lets a checkout be compiled anew in every run, while peers that
    pip has installed are compiled already.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.poll()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    queue = [pid]
    while queue:
        for child in _children(queue.pop()):
            found.append(child)
            queue.append(child)
    return found


def cpu_of_children_s() -> float:
    """Return the processor time of everything that was started here and has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _answer_in(path: Path) -> dict[str, Any] | None:
    for line in reversed(path.read_text(errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:
                return None
            return found
    return None


def _explain(command: Sequence[str], code: int | None, folder: Path, timeout_s: float) -> str:
    what = f"took longer than {timeout_s:.0f} s" if code is None else f"ended with {code} and no answer"
    tail = "\n".join((folder / name).read_text(errors="replace")[-2000:].strip() for name in ("stdout", "stderr"))
    return f"{' '.join(command)} {what}\n{tail}"
