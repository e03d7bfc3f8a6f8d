"""The template: a process that has imported everything and run nothing, and forks runners in milliseconds.

It has one thread and executes no user code itself: a single numeric operation before the fork would leave thread pools
behind that do not exist in the child, and hang it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
from collections import deque

import msgspec

from cargobike.worker import runner
from cargobike.worker.processes import die_with_parent, volunteer
from cargobike.worker.runner import Seat
from cargobike.worker.wire import Assign, decode_driver_message


class Exit(msgspec.Struct, frozen=True, array_like=True):
    """How a runner ended: its wait status and the most memory it used.

    `goes_on`, known only after the agent has asked: an assignment was on its way to the runner, and gets a new one.
    """

    pid: int
    status: int
    peak_memory_bytes: int
    goes_on: bool | None = None


def serve(channel: socket.socket, seat: Seat, parent_pid: int) -> None:
    """Fork runners on demand until the agent is gone; never returns.

    Packets from the agent: `A` assignment, `K` kill the runner, `D` have it show its stack,
    `P` modules to import, `U` begin anew if the dead
    runner has left an assignment unread. Packets to it: `X` exit.
    """
    die_with_parent(parent_pid)
    volunteer()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting: deque[Assign] = deque()
    learned: list[str] = []
    child: int | None = None
    child_fd = -1
    end: Exit | None = None
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    while True:
        if child is None and waiting:
            child = _fork(seat, waiting.popleft(), channel)
            child_fd = os.pidfd_open(child)
            poller.register(child_fd, select.POLLIN)
        for fd, _ in poller.poll():
            if fd == child_fd:
                assert child is not None
                poller.unregister(child_fd)
                os.close(child_fd)
                _, status, usage = os.wait4(child, 0)
                end = Exit(child, status, usage.ru_maxrss * 1024)
                channel.send(b"X" + msgspec.msgpack.encode(end))
                child, child_fd = None, -1
                _import(learned)
                continue
            packet = channel.recv(1 << 20)
            if not packet:
                _kill(child)
                os._exit(0)
            if packet[:1] == b"A":
                message = decode_driver_message(packet[1:])
                if isinstance(message, Assign):
                    waiting.append(message)
            elif packet[:1] == b"K":
                _kill(child)
            elif packet[:1] == b"D" and child is not None:
                os.kill(child, runner.STACK_SIGNAL)
            elif packet[:1] == b"U" and end is not None:
                waiting.extend(_unread(seat.agent))
                end = msgspec.structs.replace(end, goes_on=bool(waiting))
                channel.send(b"X" + msgspec.msgpack.encode(end))
            elif packet[:1] == b"P":
                learned += msgspec.msgpack.decode(packet[1:], type=list[str])


def _fork(seat: Seat, assignment: Assign, channel: socket.socket) -> int:
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            channel.close()
            runner.main(seat, assignment, me)
        finally:
            os._exit(70)
    return pid


def _unread(runner_end: socket.socket) -> list[Assign]:
    """Take what the dead runner has not read, so that its successor does not take it for its own."""
    found: list[Assign] = []
    with contextlib.suppress(BlockingIOError):
        while packet := runner_end.recv(1 << 20, socket.MSG_DONTWAIT):
            if packet[:1] == b"A":
                message = decode_driver_message(packet[1:])
                if isinstance(message, Assign):
                    found.append(message)
    return found


def _kill(child: int | None) -> None:
    """Kill a runner and what it started in its own process group."""
    if child is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _import(names: list[str]) -> None:
    """Import what a runner needed, so that the next one finds it there; a failure is the runner's to report."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    names.clear()
