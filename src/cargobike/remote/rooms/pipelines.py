"""Runs and schedules of pipelines of a project elsewhere."""

from __future__ import annotations

from cargobike.pipelines.pages.answers import Change, RunDetails, RunPage, ScheduleList, StepDetails, StepOutput
from cargobike.remote.rooms.room import Room

_RUNS = ("pipelines", "runs")


class Pipelines(Room):
    """What `cargobike.pipelines` is for a project here."""

    def list(self, pipeline: str = "", *, words: str = "", offset: int = 0, limit: int = 50) -> RunPage:
        """Return runs, the newest first, and which pipelines there are."""
        return self._connection.get(_RUNS, RunPage, pipeline=pipeline, words=words, offset=offset, limit=limit)

    def get(self, run: str, *, offset: int = 0, limit: int = 200) -> RunDetails:
        """Return a run: how it is doing, what set it off, and its steps."""
        return self._connection.get([*_RUNS, run], RunDetails, offset=offset, limit=limit)

    def step(self, run: str, number: int) -> StepDetails:
        """Return a step: what it was given, what it returned, how often it was tried."""
        return self._connection.get([*_RUNS, run, "steps", number], StepDetails)

    def output(self, run: str, number: int) -> StepOutput:
        """Return the last lines that a step printed."""
        return self._connection.get([*_RUNS, run, "steps", number, "output"], StepOutput)

    def schedules(self) -> ScheduleList:
        """Return what sets off which pipeline, and the last times that it did."""
        return self._connection.get(["pipelines", "schedules"], ScheduleList)

    def cancel(self, run: str) -> Change:
        """Ask a run to end; it can be resumed later."""
        return self._connection.post([*_RUNS, run, "cancel"], Change)

    def resume(self, run: str) -> Change:
        """Go on with a run that failed, was cancelled or interrupted."""
        return self._connection.post([*_RUNS, run, "resume"], Change)
