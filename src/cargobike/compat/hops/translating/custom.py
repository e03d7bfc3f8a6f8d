"""`experiment.begin` and `experiment.end`: a tracked run around code of the driver itself.

A worker of ours waits for the whole time, so that everything is as with any run: a record, a folder, files for
TensorBoard, and an end that is known even if the program is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cargobike import experiment as ours
from cargobike import project
from cargobike.compat.hops.translating.arguments import name_of
from cargobike.compat.hops.translating.resources import fetched
from cargobike.compat.hops.translating.returned import Returned, outputs_of, path_of
from cargobike.compat.noticing import formerly
from cargobike.core.errors import CargobikeError, NotFoundError, WaitError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.tensorboard.server import TensorboardServer
from cargobike.journals import AttemptStarted, ExperimentStarted, Fact
from cargobike.results import Result

_WAIT_S = 120.0


class RunningExperimentError(CargobikeError, RuntimeError):
    """`begin` was called twice, or `end` without `begin`."""


class _Run:
    """A run that has begun: a thread that drives it, and the pipe through which its worker hears of the end."""

    def __init__(self, name: str, description: str, resources: Sequence[str] | None) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="cargobike-")
        self._pipe = os.path.join(self._scratch.name, "end")
        os.mkfifo(self._pipe, 0o600)
        self._has_begun = threading.Event()
        self._asked = (name, description, resources)
        self.id = ""
        self.result: Result | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._drive, name="hops-experiment", daemon=True)
        self._thread.start()
        if not self._has_begun.wait(_WAIT_S):
            raise WaitError(f"The experiment has not begun after {_WAIT_S:.0f} s.", missing=["the worker"])
        if self.error is not None:
            raise self.error

    @property
    def folder(self) -> ExperimentFolder:
        """Where the run lies."""
        return project.current().experiment(self.id)

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Learn which experiment it is, and that its worker runs, as a callback of the driver."""
        for fact in facts:
            if isinstance(fact, ExperimentStarted):
                self.id = fact.id
            elif isinstance(fact, AttemptStarted):
                self._has_begun.set()

    def end(self, metric: object, *, is_lost: bool = False) -> None:
        """Let the run end, and wait until everything about it is written."""
        with contextlib.suppress(OSError), open(os.open(self._pipe, os.O_RDWR), "w") as pipe:
            pipe.write(json.dumps({"metric": metric, "is_lost": is_lost}, default=float) + "\n")
            pipe.flush()
            self._thread.join(_WAIT_S)
        self._scratch.cleanup()

    def _drive(self) -> None:
        name, description, resources = self._asked
        try:
            with fetched(resources) as kept:
                self.result = ours.launch(
                    _wait_for_end,
                    params={"pipe": self._pipe},
                    name=name or "begin",
                    description=description,
                    versioned_resources=kept,
                    callbacks=[self],
                    quiet=True,
                )
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self.error = error
        finally:
            self._has_begun.set()


_now: list[_Run] = []
_servers: list[TensorboardServer] = []


def _wait_for_end(pipe: str) -> object:
    with open(pipe) as told:
        words = json.loads(told.readline())
    if words["is_lost"]:
        raise RunningExperimentError("The program ended without experiment.end().")
    return words["metric"]


@formerly("hops.experiment.begin")
def begin(
    name: object = "no-name",
    local_logdir: object = False,
    versioned_resources: Sequence[str] | None = None,
    description: object = None,
) -> Any:
    """Begin a run around the code that follows, until `end` is called; `tensorboard.logdir()` belongs to it meanwhile.

    Returns:
        The path of the experiment.
    """
    if _now:
        raise RunningExperimentError("An experiment is currently running. Call experiment.end() to end it.")
    run = _Run(name_of(name), str(description or ""), versioned_resources)
    _now.append(run)
    atexit.register(_lose)
    return Returned(project.path("experiments", run.id), ({},))


@formerly("hops.experiment.end")
def end(metric: object = None) -> Any:
    """End the run that `begin` began, with its metric.

    Returns:
        The path of the experiment, which unpacks into the path and the outputs.
    """
    if not _now:
        raise RunningExperimentError("No experiment is running. Call experiment.begin() to begin one.")
    run = _now.pop()
    atexit.unregister(_lose)
    run.end(metric)
    if run.error is not None:
        raise run.error
    if run.result is None:
        raise WaitError(f"The experiment has not ended after {_WAIT_S:.0f} s.", missing=["the driver's thread"])
    return Returned(path_of(run.result), (outputs_of(run.result, run.result.trials[0]),), run.result)


def logdir() -> str:
    """Return the directory for TensorBoard files between `begin` and `end`, empty elsewhere."""
    if not _now:
        return ""
    folder = _now[0].folder.trial(0).logs
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def show_in_tensorboard(path: str) -> str:
    """Start a TensorBoard server for the experiment at a path, and return its address."""
    parts = Path(str(path)).parts
    if "experiments" not in parts[:-1]:
        raise NotFoundError(f"{path} is no experiment; give what experiment.launch returned.", wanted=str(path))
    folder = project.find_experiment(parts[parts.index("experiments") + 1])
    server = TensorboardServer(folder.root, [folder])
    _servers.append(server)  # it ends with this process
    return server.address()


def _lose() -> None:
    while _now:
        _now.pop().end(None, is_lost=True)
