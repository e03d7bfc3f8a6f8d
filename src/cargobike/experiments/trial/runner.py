"""The runner: the process in which user code runs, one trial after the other or one only."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import logging
import mmap
import os
import resource
import signal
import socket
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

import msgspec

from cargobike.core.errors import InvalidInputError, TrialPaused, TrialStopped
from cargobike.core.settings import project_url
from cargobike.experiments.trial import context
from cargobike.experiments.trial.context import Reporter, TrialContext
from cargobike.experiments.trial.failure import describe_exception, is_symptom
from cargobike.experiments.trial.outcome import check_names, read_outcome
from cargobike.experiments.trial.payload import Payload
from cargobike.experiments.trial.seeding import seed_everything
from cargobike.workers.packets import PacketReader
from cargobike.workers.processes import die_with_parent
from cargobike.workers.wire import Assign, Ended, decode_driver_message, encode_message

_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})

SERVER = "server"
STACK_SIGNAL = signal.SIGRTMIN + 7
"""Makes a runner of a gang write down where its threads stand."""

LEAVE = b"Q"
"""Tells a runner that waits for its next assignment that there is none."""


@dataclass(slots=True)
class Seat:
    """Where a runner sits: its connections and its surroundings; made before the fork, used after it."""

    agent: socket.socket
    flags: mmap.mmap
    payload: Payload
    experiment: Path
    gpus: tuple[str, ...]
    reuse: bool
    driver_host: str = ""
    stack_fd: int = -1
    files_travel: bool = False
    desk: Desk = field(init=False)
    packets: PacketReader | None = None
    function: Callable[..., Any] | None = None
    modules_before: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.desk = Desk(str(self.experiment / "files"))


class Desk:
    """The directory that user code works in: one for each trial, kept only if something was left in it.

    Making and removing a directory is the dearest part of a tiny trial. An empty one is therefore renamed for the next
    trial, which costs a tenth, and the working directory goes with it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._path: str | None = None

    def move_to(self, trial: str) -> None:
        """Work in an empty directory of this trial's own, or the one where an earlier attempt has worked."""
        target = f"{self._root}/{trial}"
        if self._path is not None:
            with contextlib.suppress(OSError):  # something was left here or, by an earlier attempt, in the target
                if not os.listdir(self._path):
                    os.rename(self._path, target)
                    self._path = target
                    os.chdir(target)
                    return
            with contextlib.suppress(OSError):
                os.rmdir(self._path)
        os.makedirs(target, exist_ok=True)
        os.chdir(target)
        self._path = target

    def clear(self) -> None:
        """Leave, and take the directory away if it is empty."""
        os.chdir("/")
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._path)


def main(seat: Seat, inbox: socket.socket, parent_pid: int, *, is_spare: bool) -> None:
    """Wait for an assignment, run it and, if runners are reused, those that follow; never returns.

    Args:
        seat: Where this runner sits.
        inbox: Where its first assignment comes from.
        parent_pid: The template.
        is_spare: Whether there is time until it comes.
    """
    os.setpgid(0, 0)
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        os.environ[variable] = ",".join(seat.gpus)
    seat.modules_before = set(sys.modules)
    streams = (sys.stdout, sys.stderr)
    if is_spare:
        _rehearse(seat)
    first = assignment = _first(inbox)
    while assignment is not None:
        _run_and_tell(seat, assignment)
        _restore(streams)
        assignment = _next(seat) if seat.reuse else None
    _leave()
    if first is not None and first.membership is None:  # others of a gang may still work in the same directory
        seat.desk.clear()
    os._exit(0)


def _rehearse(seat: Seat) -> None:
    """Do, without a trace, what every attempt begins with.

    Whoever writes to a page that is shared with the template copies it first, which takes longer than what is written.
    """
    nobody = Assign(trial=-1, attempt=0, params={}, seed=0)
    decode_driver_message(encode_message(nobody))
    place = _place(seat, nobody)
    if "cargobike.experiments.trial.checkpoints.checkpoint" in sys.modules:
        place.checkpoint.load()


def _first(inbox: socket.socket) -> Assign | None:
    with inbox:
        packet = PacketReader(inbox).receive(wait=True)
    message = decode_driver_message(packet) if packet else None  # else it was forked ahead of need, and there was none
    return message if isinstance(message, Assign) else None


def _restore(streams: tuple[TextIO, TextIO]) -> None:
    """Give the next trial the streams that it expects, whatever the last one did to them."""
    for fd, name, stream in zip((1, 2), ("stdout", "stderr"), streams, strict=True):
        setattr(sys, name, open_stream(fd) if stream.closed else stream)


def open_stream(fd: int) -> TextIO:
    """Open a text stream on a descriptor that the agent listens to, line by line."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _run_and_tell(seat: Seat, assignment: Assign) -> None:
    ended = run(seat, assignment)
    _flush()
    _tell_imports(seat)
    kind = b"F" if ended.outcome == "failed" else b"E"
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        seat.agent.send(kind + encode_message(ended))


def run(seat: Seat, assignment: Assign) -> Ended:
    """Call the train function once and say how it went."""
    me = os.getpid()
    payload = seat.payload
    place = _place(seat, assignment)
    context.enter(place)
    try:
        if place.membership is not None:
            show_stack_when_asked(seat.stack_fd)
        if payload.own_directory:
            seat.desk.move_to(place.id)
        else:
            os.chdir(payload.launch_dir)
        ended = _call(seat, assignment, place)
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit included
        if os.getpid() != me:
            _end_copy(error, payload.launch_dir)
        ended = _failure(assignment, error, payload.launch_dir)
    finally:
        context.enter(None)
    if os.getpid() != me:
        _end_copy(None, payload.launch_dir)
    place.settle()
    return msgspec.structs.replace(ended, peak_memory_bytes=peak_memory_bytes())


def _place(seat: Seat, assignment: Assign) -> TrialContext:
    payload = seat.payload
    place = TrialContext(
        assignment,
        folder=seat.experiment / "trials" / f"{assignment.trial:04d}",
        agent=seat.agent,
        flags=seat.flags,
        direction=payload.direction,
        options=payload.options,
        driver_host=seat.driver_host,
        files_travel=seat.files_travel,
    )
    place.force_checkpoints_every_s = payload.force_checkpoints_every_s
    return place


def _call(seat: Seat, assignment: Assign, place: TrialContext) -> Ended:
    trial, attempt = assignment.trial, assignment.attempt
    payload = seat.payload
    try:
        returned = _call_member(seat, place) if place.membership is not None else _call_function(seat, place)
    except TrialPaused:
        return Ended(trial, attempt, "paused")
    except TrialStopped:
        return Ended(trial, attempt, "stopped")
    if place.role == SERVER:
        return Ended(trial, attempt, "completed")
    try:
        outcome = read_outcome(returned, payload.metric, optional=payload.value_is_optional)
        check_names(outcome, payload.needed_metrics)
    except InvalidInputError as error:
        # The traceback would point into our code: the message alone says what is wrong with the user's.
        return Ended(trial, attempt, "failed", error=str(error), alike="returned value")
    return Ended(trial, attempt, "completed", value=outcome.value, metrics=outcome.metrics)


def _call_function(seat: Seat, place: TrialContext) -> object:
    arguments = dict(place.params)
    _load(seat)
    seed_everything(place.seed)
    if seat.payload.data is not None:
        # Few functions are given data, and every import delays every worker.
        from cargobike.data.shard import Shard  # noqa: PLC0415

        root = Path(project_url())
        arguments["data"] = Shard(seat.payload.data, root, place.rank, place.world_size, place.bring)
    if seat.payload.wants_reporter:
        arguments["reporter"] = Reporter(place)
    assert seat.function is not None
    return seat.function(**arguments)


def _load(seat: Seat) -> None:
    if seat.function is None:
        seat.function = seat.payload.load()


def _call_member(seat: Seat, place: TrialContext) -> object:
    """Meet the other members of the gang, then train or serve."""
    # Only gangs have anybody to meet, and every import delays every worker.
    from cargobike.experiments.trial.rendezvous import meet  # noqa: PLC0415

    if place.role == SERVER:
        module, _, name = seat.payload.server.partition(":")
        serve = getattr(importlib.import_module(module), name)
        meeting = meet(place, seat.gpus)
        return serve()
    _load(seat)
    meeting = meet(place, seat.gpus)
    returned = _call_function(seat, place)
    place.finish()
    meeting.leave(place)
    return returned


def show_stack_when_asked(fd: int) -> None:
    """Let the agent see where every thread stands, even if the interpreter does not respond."""
    if fd >= 0:
        faulthandler.register(STACK_SIGNAL, file=fd, all_threads=True)


def _failure(assignment: Assign, error: BaseException, launch_dir: str) -> Ended:
    text, alike = describe_exception(error, launch_dir)
    if assignment.membership is not None and len(assignment.membership.roles) > 1 and is_symptom(error):
        return Ended(assignment.trial, assignment.attempt, "lost", error=text, alike=alike, is_symptom=True)
    return Ended(assignment.trial, assignment.attempt, "failed", error=text, alike=alike)


def _end_copy(error: BaseException | None, launch_dir: str) -> NoReturn:
    """End a copy of this process that the train function forked and that came out of it: the original speaks for both.

    It ends as a Python program would, with the exit code that its parent may be waiting for.
    """
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif error is not None:
        text = str(error.code) if isinstance(error, SystemExit) else describe_exception(error, launch_dir)[0]
        os.write(2, f"{text}\n".encode(errors="replace"))
    _flush()
    os._exit(code & 0xFF)


def peak_memory_bytes() -> int:
    """Return the most memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _tell_imports(seat: Seat) -> None:
    """Name the libraries that were imported here, so that the template can have them ready for the next runner."""
    if seat.reuse or len(sys.modules) == len(seat.modules_before):
        return
    names = [name for name in sys.modules if name not in seat.modules_before and _is_library(name)]
    if names:
        with contextlib.suppress(OSError):
            seat.agent.send(b"M" + msgspec.msgpack.encode(names[:4000]))


def _is_library(name: str) -> bool:
    """Tell whether a module is installed or ours: the user's may compute at import, which no fork survives."""
    if name.startswith("cargobike."):  # may lie anywhere, where it is developed
        return True
    module = sys.modules.get(name)
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return isinstance(origin, str) and origin.startswith(_LIBRARIES)


def _next(seat: Seat) -> Assign | None:
    if seat.packets is None:
        seat.packets = PacketReader(seat.agent)
    while True:
        packet = seat.packets.receive(wait=True)
        if not packet or packet == LEAVE:
            return None
        message = decode_driver_message(packet[1:])
        if isinstance(message, Assign):
            return message


def _leave() -> None:
    """Run what user code registered for the end, but no destructors: some of them deadlock."""
    logging.shutdown()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    _flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # user code may have closed or replaced it
            stream.flush()
