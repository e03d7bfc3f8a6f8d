"""A small program for workers that is not a trial: it answers questions until it is told that there are no more.

Start its workers with `module="cargobike.testing.programs"`. It shows all that a program needs, and can be made to
misbehave: to print, to hang, to crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from cargobike.workers import host
from cargobike.workers.program import Seat
from cargobike.workers.wire.inner import Brought, Kept, Leave
from cargobike.workers.wire.mailbox import Mailbox
from cargobike.workers.wire.messages import Assign, Beat, Bye, Died, Ended, Hello, Output, Quiet, Said, Tell

MODULE = "cargobike.testing.programs"
PATIENCE_S = 60.0


Kind = Literal["square", "print", "start", "hang", "crash", "raise", "finish"]


class Session(msgspec.Struct, frozen=True):
    """The body of an assignment: answer questions, and remember so many answers."""

    memory: int = 10


class Question(msgspec.Struct, frozen=True):
    """The body of what the driver tells the program.

    Attributes:
        kind: `square` a number, `print` it, `start` a process, answer and then `hang` without listening, `crash`
            with a signal of that number, `raise` an error, or `finish` the session.
        number: The number.
    """

    kind: Kind
    number: int = 0


class Answer(msgspec.Struct, frozen=True):
    """The body of what the program says; also of how a session ended: with the sum of its answers."""

    number: int
    pid: int


Heard = Hello | Beat | Said[Answer] | Ended[Answer] | Died | Quiet | Output | Bye
_Told = Assign[Session] | Tell[Question] | Kept | Brought | Leave

decode_heard = msgspec.msgpack.Decoder(Heard).decode
_decode_assign = msgspec.msgpack.Decoder(Assign[Session]).decode
_decode_told = msgspec.msgpack.Decoder(_Told).decode


class CalculatorProgram:
    """Squares numbers."""

    def __init__(self, payload: bytes) -> None:
        self._greeting = payload.decode()

    @property
    def preload(self) -> Sequence[str]:
        """A module that is not loaded otherwise."""
        return ["colorsys"]

    def prepare(self) -> None:
        """Nothing is needed."""

    def rehearse(self, seat: Seat) -> None:
        """Nothing takes time."""

    def understudy(self) -> None:
        """There is none: few workers run this."""

    def run(self, seat: Seat, packet: bytes) -> Ended[Answer]:
        """Answer questions until there are no more, or until asked to stop."""
        assign = _decode_assign(packet)
        mailbox = Mailbox[_Told](seat.agent, _decode_told)
        sys.stdout.write(f"{self._greeting}\n")
        answers: list[int] = []

        def is_meant(message: _Told) -> bool:
            return isinstance(message, Tell) and (message.task, message.attempt) == (assign.task, assign.attempt)

        while not seat.is_asked_to_stop:
            told = mailbox.wait(is_meant, PATIENCE_S, lambda: seat.is_asked_to_stop)
            if not isinstance(told, Tell) or told.body.kind == "finish":
                break
            number = _answer(told.body)
            answers = [*answers, number][-assign.body.memory :]
            seat.send(Said(assign.task, assign.attempt, Answer(number, os.getpid())))
            if told.body.kind == "hang":
                time.sleep(1000)
        return Ended(assign.task, assign.attempt, Answer(sum(answers), os.getpid()))

    def leave(self, seat: Seat) -> None:
        """Nothing is left."""


def _answer(question: Question) -> int:
    if question.kind == "crash":
        os.kill(os.getpid(), question.number)
    elif question.kind == "raise":
        raise ValueError(f"{question.number} is not a number")
    elif question.kind == "start":
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid
    elif question.kind == "print":
        sys.stdout.write(f"{question.number}\n")
    return question.number**2


def main(control_fd: int) -> None:
    """Be the host of workers that run this program."""
    host.main(control_fd, CalculatorProgram)
