"""The program that runs trials on a worker: it calls the train function and says how that went."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from cargobike.core import layout
from cargobike.core.errors import InvalidInputError, TrialPaused, TrialStopped
from cargobike.core.registering.feeding import Opener
from cargobike.core.running.member import Role
from cargobike.experiments.trial import context
from cargobike.experiments.trial.context import Reporter, TrialContext
from cargobike.experiments.trial.desk import Desk
from cargobike.experiments.trial.failure import describe_exception, is_symptom
from cargobike.experiments.trial.messages import Assignment, AttemptEnd, decode_assign
from cargobike.experiments.trial.outcome import check_names, read_outcome
from cargobike.experiments.trial.payload import Payload
from cargobike.experiments.trial.seeding import seed_everything
from cargobike.workers import host
from cargobike.workers.program import Seat
from cargobike.workers.runner import flush_streams
from cargobike.workers.wire.messages import Assign, Ended, encode_message


class TrialProgram:
    """Runs trials.

    Args:
        payload: The train function and how to call it.
    """

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._function: Callable[..., Any] | None = None
        self._desk: Desk | None = None
        self._is_in_gang = False

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

    def leave(self, seat: Seat) -> None:
        """Remove an empty working directory."""
        if self._desk is not None and not self._is_in_gang:  # others of a gang may still work in the same directory
            self._desk.clear()

    def run(self, seat: Seat, packet: bytes) -> Ended[AttemptEnd]:
        """Call the train function once and say how it went."""
        me = os.getpid()
        payload = self._payload
        assign = decode_assign(packet)
        self._is_in_gang = assign.body.membership is not None
        trial = self._context(seat, assign)
        context.enter(trial)
        try:
            if payload.own_directory:
                self._desk = self._desk or Desk(str(seat.folder / layout.FILES))
                self._desk.move_to(trial.id)
            else:
                os.chdir(payload.launch_dir)
            end = self._call(seat, trial)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit included
            if os.getpid() != me:
                _end_copy(error, payload.launch_dir)
            end = _failure(assign.body, error, payload.launch_dir)
        finally:
            context.enter(None)
        if os.getpid() != me:
            _end_copy(None, payload.launch_dir)
        trial.settle()
        end = msgspec.structs.replace(end, peak_memory_bytes=peak_memory_bytes())
        return Ended(assign.task, assign.attempt, end, failed=end.outcome == "failed")

    def _context(self, seat: Seat, assign: Assign[Assignment]) -> TrialContext:
        trial = TrialContext(assign, seat, direction=self._payload.direction, options=self._payload.options)
        trial.force_checkpoints_every_s = self._payload.force_checkpoints_every_s
        return trial

    def _call(self, seat: Seat, trial: TrialContext) -> AttemptEnd:
        payload = self._payload
        try:
            is_member = trial.membership is not None
            returned = self._call_member(seat, trial) if is_member else self._call_function(seat, trial)
        except TrialPaused:
            return AttemptEnd("paused")
        except TrialStopped:
            return AttemptEnd("stopped")
        if trial.role == Role.SERVER:
            return AttemptEnd("completed")
        try:
            outcome = read_outcome(returned, payload.metric, optional=payload.value_is_optional)
            check_names(outcome, payload.needed_metrics)
        except InvalidInputError as error:
            # The traceback would point into our code: the message alone says what is wrong with the user's.
            return AttemptEnd("failed", error=str(error), alike="returned value")
        return AttemptEnd("completed", value=outcome.value, metrics=outcome.metrics)

    def _call_function(self, seat: Seat, trial: TrialContext) -> object:
        arguments = dict(trial.params)
        function = self._load()
        seed_everything(trial.seed)
        if self._payload.data is not None:
            feed = self._payload.data
            module, _, name = feed.opener.partition(":")
            opener: Opener = getattr(importlib.import_module(module), name)
            arguments["data"] = opener(feed, seat.project, trial.rank, trial.world_size, trial.bring)
        if self._payload.wants_reporter:
            arguments["reporter"] = Reporter(trial)
        return function(**arguments)

    def _load(self) -> Callable[..., Any]:
        if self._function is None:
            self._function = self._payload.load()
        return self._function

    def _call_member(self, seat: Seat, trial: TrialContext) -> object:
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
        returned = self._call_function(seat, trial)
        trial.finish()
        meeting.leave(trial)
        return returned


def _failure(assignment: Assignment, error: BaseException, launch_dir: str) -> AttemptEnd:
    text, alike = describe_exception(error, launch_dir)
    if assignment.membership is not None and len(assignment.membership.roles) > 1 and is_symptom(error):
        return AttemptEnd("lost", error=text, alike=alike, is_symptom=True)
    return AttemptEnd("failed", error=text, alike=alike)


def _end_copy(error: BaseException | None, launch_dir: str) -> NoReturn:
    """End a copy of this process that the train function forked and that came out of it: the original reports for both.

    It ends as a Python program would, with the exit code that its parent may be waiting for.
    """
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif error is not None:
        text = str(error.code) if isinstance(error, SystemExit) else describe_exception(error, launch_dir)[0]
        os.write(2, f"{text}\n".encode(errors="replace"))
    flush_streams()
    os._exit(code & 0xFF)


def peak_memory_bytes() -> int:
    """Return the most memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(control_fd: int) -> None:
    """Run the host of workers for trials."""
    host.main(control_fd, TrialProgram.decode)
