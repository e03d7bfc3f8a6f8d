"""Runs and schedules of pipelines of a project elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cargobike.pipelines.pages.answers import (
    Change,
    RunDetails,
    RunPage,
    ScheduleLine,
    ScheduleList,
    StepDetails,
    StepOutput,
)
from cargobike.remote.rooms.commands import asked
from cargobike.remote.rooms.room import Room

_RUNS = ("pipelines", "runs")
_SCHEDULES = ("pipelines", "schedules")


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
        return self._connection.get(_SCHEDULES, ScheduleList)

    def cancel(self, run: str) -> Change:
        """Ask a run to end; it can be resumed later."""
        return self._connection.post([*_RUNS, run, "cancel"], Change)

    def resume(self, run: str) -> Change:
        """Go on with a run that failed, was cancelled or interrupted."""
        return self._connection.post([*_RUNS, run, "resume"], Change)

    def run(self, pipeline: str, **arguments: object) -> Change:
        """Run a pipeline that has run before, by its name; `get` shows how the run is doing.

        Args:
            pipeline: Its name: the function's.
            **arguments: What it is called with, where that is not as in its newest run.
        """
        return self._connection.post(_RUNS, Change, {"pipeline": pipeline, "arguments": arguments})

    def schedule(
        self,
        pipeline: str,
        *,
        name: str = "",
        every: str = "",
        cron: str = "",
        when: Sequence[str] = (),
        overlap: str = "",
        catch_up: str = "",
        timezone: str = "",
        arguments: Mapping[str, object] | None = None,
        timeout_s: float = 120.0,
    ) -> ScheduleList:
        """Run a pipeline that has run before again and again; returns all schedules.

        Args:
            pipeline: Its name: the function's.
            name: What to call the schedule; by default the same.
            every: The time from one run to the next: `1d`.
            cron: A cron expression instead of that: `0 3 * * *`.
            when: What sets it off besides: `changed:GROUP`, `arrived:PLACE`, `drifted:DEPLOYMENT`.
            overlap: What happens if a run is still at work: `skip`, `queue` or `cancel`.
            catch_up: Which times that were missed are made up for: `none`, `last` or `all`.
            timezone: The zone whose clocks `cron` means.
            arguments: What the pipeline is called with.
            timeout_s: How long it may take.
        """
        body: dict[str, object] = {"pipeline": pipeline, "name": name, "every": every, "cron": cron, "when": [*when]}
        body |= {"overlap": overlap, "catch_up": catch_up, "timezone": timezone, "arguments": dict(arguments or {})}
        asked(self._connection, _SCHEDULES, body, timeout_s)
        return self.schedules()

    def pause_schedule(self, name: str) -> ScheduleLine:
        """Let nothing set a schedule off until `resume_schedule`."""
        return self._connection.post([*_SCHEDULES, name, "pause"], ScheduleLine)

    def resume_schedule(self, name: str) -> ScheduleLine:
        """Go on with a schedule that was paused."""
        return self._connection.post([*_SCHEDULES, name, "resume"], ScheduleLine)

    def remove_schedule(self, name: str) -> ScheduleLine:
        """Delete a schedule; a run that is at work goes on. Needs the role `administer`."""
        return self._connection.post([*_SCHEDULES, name, "remove"], ScheduleLine)
