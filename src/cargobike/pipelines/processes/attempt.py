"""One attempt at a step, in a process of its own: calls the function, keeps what it returned, says how it ended.

How it ended is a file that appears whole, `outcome-<attempt>.json`: from then on the step is done, whatever happens to
its driver.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.errors import GateError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import Kept, open_kept, stepping
from cargobike.core.running.forks import end_copy, flush_streams
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.experiments.trial.failure import describe_exception
from cargobike.pipelines.driving.events import LOCAL, Outcome
from cargobike.pipelines.processes.messages import Task
from cargobike.pipelines.record import RunFolder
from cargobike.pipelines.values import passing, pickling
from cargobike.pipelines.values.keeping import keep, restore
from cargobike.pipelines.values.value import Value
from cargobike.workers.runner import open_stream


def run_attempt(task: Task, folder: RunFolder, project: ProjectFolder) -> None:
    """Run an attempt; never returns."""
    _take_streams(task, folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(file=2, all_threads=True)  # a crash in compiled code shows which line of Python led to it
    me = os.getpid()
    began_at = time.monotonic()
    has_returned = False
    try:
        result = _call(task, folder, project)
        has_returned = True
        outcome = Outcome(ok=True, result=_kept(result, task, folder))
    except BaseException as error:  # noqa: BLE001 - whatever user code raises is how the attempt ended
        if os.getpid() != me:
            end_copy(error)
        # What cannot be kept could not be kept after another attempt either.
        outcome = _failed(error, task, final=has_returned and isinstance(error, InvalidInputError))
    if os.getpid() != me:
        end_copy(None)  # user code forked it, and the original speaks for both
    write_outcome(folder, task.step, task.attempt, outcome, time.monotonic() - began_at)
    _leave()
    os._exit(0 if outcome.ok else 1)


def outcome_path(folder: RunFolder, step: int, attempt: int) -> Path:
    """Return where an attempt says how it ended."""
    return folder.step(step) / f"outcome-{attempt}.json"


def write_outcome(folder: RunFolder, step: int, attempt: int, outcome: Outcome, seconds: float) -> None:
    """Say how an attempt ended, in a file that appears whole."""
    path = outcome_path(folder, step, attempt)
    aside = path.with_name(f".{path.name}")
    aside.write_bytes(msgspec.json.encode(msgspec.structs.replace(outcome, seconds=seconds)))
    aside.replace(path)


def read_outcome(folder: RunFolder, step: int, attempt: int) -> Outcome | None:
    """Return how an attempt ended; `None` if it has not said so."""
    try:
        return msgspec.json.decode(outcome_path(folder, step, attempt).read_bytes(), type=Outcome)
    except (OSError, *UNDECODABLE):
        return None


def _take_streams(task: Task, folder: RunFolder) -> None:
    """Send what the step prints to its files, behind what earlier attempts printed."""
    folder.step(task.step).mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    for fd, name in ((1, "stdout"), (2, "stderr")):
        target = os.open(folder.output(task.step, name), flags, 0o644)
        os.dup2(target, fd)
        os.close(target)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout, sys.stderr = open_stream(1), open_stream(2)


def _call(task: Task, folder: RunFolder, project: ProjectFolder) -> Any:
    if task.folder:
        os.chdir(task.folder)

    def opened(thing: Kept) -> Any:
        return open_kept(thing, project)

    def restoring(value: Value) -> Any:
        return restore(value, folder.root, project)

    function = pickling.load(task.function, opened)
    results = [lambda value=value: restoring(value) for value in task.results]
    args, kwargs = passing.unpack(task.arguments, opened, results)
    with stepping(None, task.token):
        if task.engine == LOCAL:
            return function(*args, **kwargs)
        # Most steps run here, and every import delays every step.
        from cargobike.pipelines.processes.elsewhere import call_elsewhere  # noqa: PLC0415

        return call_elsewhere(function, args, kwargs, engine=task.engine, name=task.title, project=project)


def _kept(result: Any, task: Task, folder: RunFolder) -> Value:
    return keep(result, folder.root, f"{folder.step_place(task.step)}/result-{task.attempt}")


def _failed(error: BaseException, task: Task, *, final: bool) -> Outcome:
    text = describe_exception(error, task.folder)[0]
    sys.stderr.write(text + "\n")
    return Outcome(
        ok=False,
        error=text,
        final=final,
        interrupted=isinstance(error, KeyboardInterrupt),
        refused=isinstance(error, GateError),
    )


def _leave() -> None:
    """Wait for threads, and run what user code registered for the end; no destructors, some of which deadlock."""
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    logging.shutdown()
    flush_streams()
