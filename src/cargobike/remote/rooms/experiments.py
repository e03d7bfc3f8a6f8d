"""Experiments of a project elsewhere, and their trials."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from cargobike.core.errors import NotFoundError
from cargobike.experiments.pages.answers import (
    AnnotationsAnswer,
    ComparedExperiments,
    ExperimentDetail,
    ExperimentPage,
    FolderAnswer,
    LogPart,
    MetricsAnswer,
    SnapshotAnswer,
    Stopping,
    TrialDetail,
    TrialPage,
    UsageAnswer,
)
from cargobike.remote.asking.connection import Value
from cargobike.remote.rooms.room import Room

_HERE = "experiments"


class Experiments(Room):
    """What `cargobike.experiment` is for a project here."""

    def list(
        self,
        words: str = "",
        *,
        state: Sequence[str] = (),
        sort: str = "started",
        descending: bool = True,
        offset: int = 0,
        limit: int = 50,
    ) -> ExperimentPage:
        """Return experiments, the newest first unless asked otherwise."""
        query: dict[str, Value] = {"q": words, "sort": sort, "descending": descending, "offset": offset, "limit": limit}
        return self._connection.get([_HERE], ExperimentPage, state=builtins.list(state), **query)

    def load(self, experiment: str = "last") -> ExperimentDetail:
        """Return everything about an experiment except its trials; `last` is the newest one."""
        return self._connection.get([_HERE, self._id(experiment)], ExperimentDetail)

    def snapshot(self, experiment: str) -> SnapshotAnswer | None:
        """Return what was run and in which environment; `None` if that was not recorded."""
        return self._connection.get([_HERE, self._id(experiment), "snapshot"], SnapshotAnswer | None)  # type: ignore[arg-type]

    def trials(
        self,
        experiment: str,
        words: str = "",
        *,
        state: Sequence[str] = (),
        sort: str = "trial",
        descending: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> TrialPage:
        """Return trials; `words` are conditions such as `act=relu|gelu lr<0.01`, or words."""
        path: list[str | int] = [_HERE, self._id(experiment), "trials"]
        query: dict[str, Value] = {"q": words, "sort": sort, "descending": descending, "offset": offset, "limit": limit}
        return self._connection.get(path, TrialPage, state=builtins.list(state), **query)

    def trial(self, experiment: str, number: int) -> TrialDetail:
        """Return everything about a trial except its points."""
        return self._connection.get([_HERE, self._id(experiment), "trials", number], TrialDetail)

    def metrics(
        self, experiment: str, number: int, *names: str, points: int = 500, method: Literal["lttb", "minmax"] = "lttb"
    ) -> MetricsAnswer:
        """Return the curves of a trial, at most some points of each."""
        path: list[str | int] = [_HERE, self._id(experiment), "trials", number, "metrics"]
        return self._connection.get(path, MetricsAnswer, name=builtins.list(names), points=points, method=method)

    def usage(self, experiment: str, number: int) -> UsageAnswer:
        """Return the processors, memory and GPUs that a trial used, over time."""
        return self._connection.get([_HERE, self._id(experiment), "trials", number, "usage"], UsageAnswer)

    def logs(
        self,
        experiment: str,
        number: int,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        rank: int = 0,
        offset: int = 0,
    ) -> LogPart:
        """Return what a trial printed from a byte on, or that many bytes from the end; go on at `next_offset`."""
        path: list[str | int] = [_HERE, self._id(experiment), "trials", number, "logs", stream]
        return self._connection.get(path, LogPart, rank=rank, offset=offset)

    def files(self, experiment: str, path: str = "") -> FolderAnswer:
        """Return what lies in a folder of an experiment."""
        return self._connection.get([_HERE, self._id(experiment), "files"], FolderAnswer, path=path)

    def read_file(self, experiment: str, path: str) -> bytes:
        """Return the content of a file of an experiment."""
        return self._connection.read([_HERE, self._id(experiment), "files", "content"], {"path": path})

    def compare(self, first: str, second: str) -> ComparedExperiments:
        """Return what differs between two experiments: settings, code, environment, results."""
        query = {"first": self._id(first), "second": self._id(second)}
        return self._connection.get(["compare", _HERE], ComparedExperiments, **query)

    def stop(self, experiment: str) -> Stopping:
        """Ask a running experiment to stop; its state shows when it has."""
        return self._connection.post([_HERE, self._id(experiment), "stop"], Stopping)

    def tag(self, experiment: str, *tags: str, remove: Iterable[str] = ()) -> AnnotationsAnswer:
        """Add tags to an experiment, and take some away."""
        return self._annotate(experiment, {"add": tags, "remove": builtins.list(remove)})

    def note(self, experiment: str, text: str) -> AnnotationsAnswer:
        """Write something down about an experiment."""
        return self._annotate(experiment, {"note": text})

    def mark(self, experiment: str, marks: Mapping[int, str | None]) -> AnnotationsAnswer:
        """Mark trials (`star`, `hidden`), or take a mark away with `None`."""
        return self._annotate(experiment, {"marks": {str(number): mark for number, mark in marks.items()}})

    def _annotate(self, experiment: str, body: Mapping[str, object]) -> AnnotationsAnswer:
        return self._connection.post([_HERE, self._id(experiment), "annotations"], AnnotationsAnswer, body)

    def _id(self, experiment: str) -> str:
        if experiment != "last":
            return experiment
        newest = self.list(limit=1).experiments
        if not newest:
            raise NotFoundError("The project has no experiments yet.", wanted="last")
        return newest[0].id
