"""The runner: the process in which a program works, on one assignment after the other or on one only."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import logging
import os
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Set, Sized
from typing import TextIO

from cargobike.core.running.forks import end_copy, flush_streams
from cargobike.workers.processes import DEFAULT, die_with_parent, set_handler
from cargobike.workers.program import Program, Seat
from cargobike.workers.wire.inner import Imported, Leave, decode_for_runner
from cargobike.workers.wire.messages import Assign, encode_message
from cargobike.workers.wire.packets import PacketReader

_STANDARD = os.path.dirname(os.__file__) + os.sep  # `sysconfig` says so, too, and reads a hundred kilobytes for it
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_MOST_NAMES = 4000
_LEAVE = encode_message(Leave())
_NOTHING = bytes(4)
_LOOK_AGAIN_S = 0.0002
_READ_WITHIN_S = 1.0

_handlers: Sized | None = getattr(logging, "_handlerList", None)
_HANDLERS_AT_FIRST = len(_handlers) if _handlers is not None else 0

STACK_SIGNAL = signal.SIGRTMIN + 7
"""The signal that makes a runner write the stacks of its threads."""


def settle(seat: Seat) -> None:
    """Prepare a process for runners: what a template does once, none of its runners has to do.

    Each line that a forked process is the first to run copies pages that it shares with its parent.
    """
    set_handler(signal.SIGTERM, DEFAULT)
    if seat.stack_fd >= 0:  # answered even if the interpreter does not respond
        faulthandler.register(STACK_SIGNAL, file=seat.stack_fd, all_threads=True)
    faulthandler.enable(file=2, all_threads=True)  # a crash in compiled code shows which line of Python led to it
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        os.environ[variable] = ",".join(seat.gpus)


def wait_for_first(program: Program, seat: Seat, inbox: socket.socket, *, is_spare: bool) -> bytes:
    """Wait for the first assignment of a runner that was forked before there was one.

    Args:
        program: What to run.
        seat: Where this runner sits.
        inbox: Where the assignment comes from.
        is_spare: Whether there is time until it comes.

    Returns:
        The assignment, empty if it was a spare that was not needed.
    """
    if is_spare:
        program.rehearse(seat)
    with inbox:
        return PacketReader(inbox).receive(wait=True) or b""


def main(program: Program, seat: Seat, first: Callable[[], bytes], parent_pid: int, modules: Set[str]) -> None:
    """Work on an assignment and, if runners are reused, on those that follow; never returns.

    Args:
        program: What to run.
        seat: Where this runner sits.
        first: Returns its first assignment, empty if there is none.
        parent_pid: The template.
        modules: The names of those that the template has imported.
    """
    os.setpgid(0, 0)
    die_with_parent(parent_pid)
    set_handler(signal.SIGINT, signal.default_int_handler)
    packet = first()
    work_on_all(program, seat, packet, modules)
    _leave()
    if packet:
        program.leave(seat)
    os._exit(0)


def work_on_all(program: Program, seat: Seat, first: bytes, modules: Set[str]) -> None:
    """Work on an assignment and on those that follow, if there are any.

    Args:
        program: What to run.
        seat: Where this runner sits.
        first: The first assignment, empty if there is none.
        modules: The names of those that the template has imported.
    """
    packet: bytes | None = first
    streams = (sys.stdout, sys.stderr)
    line = _Line(seat.line) if seat.line is not None else None
    packets = PacketReader(seat.agent) if seat.reuse and line is None else None
    while packet:
        _work(program, seat, packet, modules)
        if not seat.reuse:
            break
        _restore(streams)
        packet = line.next() if line is not None else _next(packets) if packets is not None else None


def _work(program: Program, seat: Seat, packet: bytes, modules: Set[str]) -> None:
    me = os.getpid()
    ended = program.run(seat, packet)
    flush_streams()
    if os.getpid() != me:
        end_copy(None)  # the original speaks for both
    if not seat.reuse:
        _tell_imports(seat, modules)
    elif seat.line is not None:
        _forget_rest(seat.agent)
    try:
        seat.send(ended)
    except ConnectionError:
        pass  # the agent has ended, and so shall we


def _forget_rest(agent: socket.socket) -> None:
    """Read what was left unread of what the agent has said: before the end is told, it is meant for this assignment.

    Afterwards it may be meant for the next one, which a program tells from its own by its number.
    """
    with contextlib.suppress(BlockingIOError):
        while agent.recv(1, socket.MSG_DONTWAIT):
            pass


class _Line:
    """Where the next assignment comes from, if several may be there: reading one means to begin it.

    Args:
        source: Carries assignments and nothing else.
    """

    def __init__(self, source: socket.socket) -> None:
        self._packets = PacketReader(source)

    def next(self) -> bytes | None:
        """Return the next assignment, `None` if there is none any more; nobody may be blamed for earlier output."""
        if _has_printed():  # the agent could not tell whose it is
            self._await_reading()
        packet = self._packets.receive(wait=False)
        if packet is None:
            packet = self._packets.receive(wait=True)
        return packet if packet and packet != _LEAVE else None

    @staticmethod
    def _await_reading() -> None:
        give_up_at = time.monotonic() + _READ_WITHIN_S  # user code may have put something else in place of the pipes
        while _has_printed() and time.monotonic() < give_up_at:
            time.sleep(_LOOK_AGAIN_S)


def _has_printed() -> bool:
    """Tell whether the agent has not yet read all that was printed."""
    with contextlib.suppress(OSError):  # user code may have closed them
        for fd in (1, 2):
            if fcntl.ioctl(fd, termios.FIONREAD, _NOTHING) != _NOTHING:
                return True
    return False


def _next(packets: PacketReader) -> bytes | None:
    while packet := packets.receive(wait=True):
        message = decode_for_runner(packet)
        if isinstance(message, Assign):
            return packet
        if isinstance(message, Leave):
            return None
    return None


def _restore(streams: tuple[TextIO, TextIO]) -> None:
    """Restore the streams for the next assignment: the last one may have closed or replaced them."""
    for fd, name, stream in zip((1, 2), ("stdout", "stderr"), streams, strict=True):
        setattr(sys, name, open_stream(fd) if stream.closed else stream)


def open_stream(fd: int) -> TextIO:
    """Open a text stream on a descriptor that the agent listens to, line by line."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _tell_imports(seat: Seat, before: Set[str]) -> None:
    """Name the libraries that were imported here, so that the template can import them for the next runner."""
    if len(sys.modules) == len(before):
        return
    names = [name for name in sys.modules if name not in before and is_library(name)]
    if names:
        with contextlib.suppress(OSError):  # the template can do without it
            seat.send(Imported(names[:_MOST_NAMES]))


def is_library(name: str) -> bool:
    """Tell whether a module is installed or ours: the user's may compute at import, and must not run before a fork.

    Installed are also those that a virtual environment takes from the system, of the user's home, and on paths that
    were added: all lie in folders with such names.
    """
    if name.startswith("cargobike."):  # under development it may lie anywhere
        return True
    module = sys.modules.get(name)
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return isinstance(origin, str) and (origin.startswith(_STANDARD) or any(part in origin for part in _INSTALLED))


def _leave() -> None:
    """Run what user code registered for the end, but no destructors: some of them deadlock."""
    if (
        _handlers is not None and len(_handlers) == _HANDLERS_AT_FIRST
    ):  # the program has no handler of its own: nothing waits to be written
        atexit.unregister(logging.shutdown)
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    flush_streams()
