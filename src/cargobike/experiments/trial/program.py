"""The program that runs trials on a worker: it calls the train function and says how that went."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cargobike.core import layout
from cargobike.core.errors import InvalidInputError, MissingLibraryError, TrialPaused, TrialStopped
from cargobike.core.registering.feeding import Feed, Opener
from cargobike.core.running.forks import end_copy
from cargobike.core.running.member import Role
from cargobike.core.values.exact import unpack_exactly
from cargobike.experiments.trial import context
from cargobike.experiments.trial.context import TrialContext
from cargobike.experiments.trial.desk import Desk
from cargobike.experiments.trial.failure import describe_exception, is_symptom
from cargobike.experiments.trial.messages import Assignment, AttemptEnd, decode_assign
from cargobike.experiments.trial.outcome import CleanExit, check_names, read_outcome
from cargobike.experiments.trial.payload import Payload, idle_payload
from cargobike.experiments.trial.report_names import ReportNames
from cargobike.experiments.trial.reporter import UNNAMED, Reporter
from cargobike.experiments.trial.seeding import seed_everything
from cargobike.workers import host
from cargobike.workers.program import ROOM, Seat, too_large
from cargobike.workers.wire.messages import Assign, Ended, encode_message
from cargobike.workers.wire.packets import LARGEST


class TrialProgram:
    """Runs trials.

    Args:
        payload: The train function and how to call it.
        function: The train function itself, where it need not be unpacked.
        passes_on: What ends more than the trial, and is raised again.
    """

    def __init__(
        self,
        payload: Payload,
        *,
        function: Callable[..., Any] | None = None,
        passes_on: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._payload = payload
        self._function = function
        self._passes_on = passes_on
        self._desk: Desk | None = None
        self._names: ReportNames | None = None
        self._trial: TrialContext | None = None
        # Then it must be known whether the function reports, or its context has a part in what it is called with.
        self._is_watched = payload.judged_by_reports or payload.wants_reporter or payload.data is not None

    @staticmethod
    def decode(payload: bytes) -> TrialProgram:
        """Make the program from what the driver has sent."""
        return TrialProgram(Payload.decode(payload))

    @property
    def preload(self) -> list[str]:
        """Libraries that the function needs."""
        return self._payload.preload

    def prepare(self) -> None:
        """Make the driver's modules importable here."""
        self._payload.prepare_imports()

    def rehearse(self, seat: Seat) -> None:
        """Do what every attempt begins with, without side effects."""
        packet = encode_message(Assign(-1, 0, Assignment(params={}, seed=0)))
        trial = self._context(seat, decode_assign(packet))
        if "cargobike.experiments.trial.checkpoints.checkpoint" in sys.modules:
            trial.checkpoint.load()

    def understudy(self) -> tuple[TrialProgram, bytes]:
        """Return a program for a train function that does nothing, and a trial of it."""
        return TrialProgram(idle_payload()), encode_message(Assign(0, 1, Assignment(params={"x": 0.5}, seed=0)))

    def leave(self, seat: Seat) -> None:
        """Remove an empty working directory."""
        if self._desk is not None:
            self._desk.clear()

    def run(self, seat: Seat, packet: bytes) -> Ended[AttemptEnd]:
        """Call the train function once and say how it went."""
        me, began = os.getpid(), time.perf_counter()
        payload = self._payload
        assign = decode_assign(packet)
        membership = assign.body.membership
        self._trial = None

        def open_context() -> TrialContext:
            self._trial = trial = self._context(seat, assign)
            return trial

        if self._is_watched or membership is not None:
            context.enter(open_context())
        else:
            context.enter_later(open_context)
        try:
            if payload.own_directory:
                self._desk = self._desk or Desk(f"{seat.folder}/{layout.FILES}")
                self._desk.move_to(context.name_of(assign.task), with_others=membership is not None)
            else:
                os.chdir(payload.launch_dir)
            end = self._call(seat, assign)
        except BaseException as error:
            if os.getpid() != me:
                end_copy(error, lambda error: describe_exception(error, payload.launch_dir)[0])
            if isinstance(error, self._passes_on):
                self._settle()
                raise
            end = _failure(assign.body, error, payload.launch_dir)
        finally:
            context.enter(None)
        if os.getpid() != me:
            end_copy(None)
        self._settle()
        took_s = time.perf_counter() - began
        end = replace(end, peak_memory_bytes=peak_memory_bytes(), took_s=took_s)
        return Ended(assign.task, assign.attempt, end, failed=end.outcome == "failed")

    def _settle(self) -> None:
        if self._trial is not None:
            self._trial.settle()

    def _context(self, seat: Seat, assign: Assign[Assignment]) -> TrialContext:
        payload = self._payload
        is_whole = assign.attempt == 1 and assign.body.start_from is None
        names = self._names = ReportNames(payload.metric, is_whole=is_whole) if payload.judged_by_reports else None
        trial = TrialContext(assign, seat, direction=payload.direction, options=payload.options, names=names)
        trial.force_checkpoints_every_s = payload.force_checkpoints_every_s
        return trial

    def _call(self, seat: Seat, assign: Assign[Assignment]) -> AttemptEnd:
        payload, trial = self._payload, self._trial
        try:
            if trial is not None and trial.membership is not None:
                returned = self._call_member(seat, assign, trial)
            else:
                returned = self._call_function(seat, assign)
        except TrialPaused:
            return AttemptEnd("paused")
        except TrialStopped:
            return AttemptEnd("stopped")
        if trial is not None and trial.role == Role.SERVER:
            return AttemptEnd("completed")
        try:
            outcome = read_outcome(returned, payload.metric, optional=payload.value_is_optional)
            if needed := payload.needed_metrics:
                check_names(outcome, needed)
            if self._names is not None and not payload.wants_reporter:
                self._names.check_returned(outcome.metrics)
        except InvalidInputError as error:
            # The traceback would point into our code: the message alone says what is wrong with the user's.
            return AttemptEnd("failed", error=str(error), alike="returned value")
        end = AttemptEnd("completed", value=outcome.value, metrics=outcome.metrics, extras=outcome.extras)
        is_named = outcome.metrics or outcome.extras
        size = len(encode_message(Ended(assign.task, assign.attempt, end))) if is_named else 0
        if size > LARGEST - ROOM:
            refusal = too_large("What the train function returned", size)
            return AttemptEnd("failed", error=str(refusal), alike="returned value")
        return end

    def _call_function(self, seat: Seat, assign: Assign[Assignment]) -> object:
        arguments = unpack_exactly(assign.body.params)
        function = self._load()
        seed_everything(assign.body.seed)
        if self._trial is not None:
            self._hand_in(arguments, seat, self._trial)
        me = os.getpid()
        try:
            return function(**arguments)
        except SystemExit as exception:
            clean_exit = CleanExit.of(exception)
            if clean_exit is None or os.getpid() != me:
                raise
            return clean_exit

    def _hand_in(self, arguments: dict[str, Any], seat: Seat, trial: TrialContext) -> None:
        """Add the arguments that are not hyperparameters."""
        if self._payload.data is not None:
            feed = self._payload.data
            data = arguments["data"] = load_opener(feed)(
                feed, Path(seat.project), trial.rank, trial.world_size, trial.bring
            )
            trial.feed(data)
        if self._payload.wants_reporter:
            arguments["reporter"] = Reporter(trial, self._payload.metric or UNNAMED)

    def _load(self) -> Callable[..., Any]:
        if self._function is None:
            self._function = self._payload.load()
        return self._function

    def _call_member(self, seat: Seat, assign: Assign[Assignment], trial: TrialContext) -> object:
        """Meet the other members of the gang, then train or serve."""
        # Only gangs have members to meet, and every import delays every worker.
        from cargobike.experiments.trial.rendezvous import meet  # noqa: PLC0415

        if trial.role == Role.SERVER:
            module, _, name = self._payload.server.partition(":")
            serve = getattr(importlib.import_module(module), name)
            meeting = meet(trial, seat.gpus)
            return serve()
        self._load()
        meeting = meet(trial, seat.gpus)
        returned = self._call_function(seat, assign)
        trial.finish()
        meeting.leave(trial)
        return returned


def _failure(assignment: Assignment, error: BaseException, launch_dir: str) -> AttemptEnd:
    text, alike = describe_exception(error, launch_dir)
    if assignment.membership is not None and len(assignment.membership.roles) > 1:
        if is_symptom(error):
            return AttemptEnd("lost", error=text, alike=alike, is_symptom=True)
        if isinstance(error, KeyboardInterrupt):  # a signal from outside, as if its process had been killed
            return AttemptEnd("lost", error=text, alike=alike)
    return AttemptEnd("failed", error=text, alike=alike)


def load_opener(feed: Feed) -> Opener:
    """Import what opens a feed.

    Raises:
        MissingLibraryError: If a library that it needs is not installed here.
    """
    module, _, name = feed.opener.partition(":")
    try:
        opener: Opener = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if isinstance(error, MissingLibraryError) or (error.name or "").startswith("cargobike"):
            raise
        raise MissingLibraryError(
            f'Data is read with {error.name}, which is not installed here: pip install "cargobike[data]".',
            name=error.name,
        ) from error
    return opener


def peak_memory_bytes() -> int:
    """Return the most memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(control_fd: int) -> None:
    """Run the host of workers for trials."""
    host.main(control_fd, TrialProgram.decode)
