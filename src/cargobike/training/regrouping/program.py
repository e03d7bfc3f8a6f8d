"""The program of a worker whose rank may meet others more than once: it calls the function, and says how that ended."""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final

import cloudpickle
import msgspec

from cargobike.core.package import PACKAGE_FOLDER
from cargobike.core.running import member
from cargobike.core.values.information import to_text
from cargobike.training.regrouping.line import SeatLine
from cargobike.training.regrouping.member import Regrouping
from cargobike.training.regrouping.messages import Outcome, Task
from cargobike.workers import host
from cargobike.workers.program import Seat
from cargobike.workers.whereabouts import address_towards
from cargobike.workers.wire.messages import Assign, Ended

MODULE: Final = "cargobike.training.regrouping.program"
_LONGEST: Final = 60_000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What workers need to know; it travels by the engine's own channel.

    Attributes:
        function: What each rank calls, without arguments, pickled; it finds its `Regrouping` as the current member.
        preload: Libraries that it needs.
        sys_path: The driver's `sys.path`.
        argv: The driver's `sys.argv`.
        launch_dir: The driver's working directory; ranks work there if it exists where they are.
        mark: What tells this job from others.
    """

    function: bytes
    preload: list[str] = []
    sys_path: list[str]
    argv: list[str]
    launch_dir: str
    mark: str


_decode_assign = msgspec.msgpack.Decoder(Assign[Task]).decode


class RegroupingProgram:
    """Calls the function of a job."""

    def __init__(self, payload: bytes) -> None:
        self._job = msgspec.msgpack.decode(payload, type=Job)

    @property
    def preload(self) -> Sequence[str]:
        """Libraries that the function needs."""
        return self._job.preload

    def prepare(self) -> None:
        """Find modules as the driver does."""
        own = set(self._job.sys_path)
        sys.path[:] = [*self._job.sys_path, *(path for path in sys.path if path not in own)]
        sys.argv[:] = self._job.argv

    def rehearse(self, seat: Seat) -> None:
        """Nothing takes time."""

    def understudy(self) -> None:
        """There is none: few workers run this."""

    def leave(self, seat: Seat) -> None:
        """Nothing is left."""

    def run(self, seat: Seat, packet: bytes) -> Ended[Outcome]:
        """Call the function, and say how that ended."""
        assign = _decode_assign(packet)
        if os.path.isdir(self._job.launch_dir):
            os.chdir(self._job.launch_dir)
        line = SeatLine(seat, assign.task, assign.attempt)
        member.enter(Regrouping(line, address_towards(seat.driver_host), self._job.mark))
        outcome = self._call()
        return Ended(assign.task, assign.attempt, outcome, failed=bool(outcome.code))

    def _call(self) -> Outcome:
        random.seed()  # all ranks were forked with the same state
        try:
            cloudpickle.loads(self._job.function)()
        except SystemExit as leaving:
            if not leaving.code:
                return Outcome()
            is_code = isinstance(leaving.code, int)
            return Outcome(f"exited with code {leaving.code}", int(leaving.code) if is_code else 1)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user has to read it
            return Outcome(to_text(_users_traceback(error)), int(getattr(error, "exit_code", None) or 1))
        return Outcome()


def _users_traceback(error: BaseException) -> str:
    """Return the traceback without our own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE_FOLDER + os.sep):
        trace = trace.tb_next
    if trace is None:
        return f"{type(error).__name__}: {error}"
    lines: list[Any] = traceback.format_exception(type(error), error, trace, chain=False)
    text = "".join(lines).rstrip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n[…]\n{text[-_LONGEST // 2 :]}"


def main(control_fd: int) -> None:
    """Run the host of such workers."""
    host.main(control_fd, RegroupingProgram)
