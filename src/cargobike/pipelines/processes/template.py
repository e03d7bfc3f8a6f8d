"""The template of a run's steps: a process that has imported what they need and computed nothing, and forks them.

It has one thread. A step's process asks the kernel to be killed with the template, and the template ends when its
driver is gone: whichever of the three is killed, the others do not stay. Each step adopts what its own children leave
behind; what a step itself leaves behind becomes the template's child, and is ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import linecache
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import ConnectionLostError
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.trial.shipped_modules import install
from cargobike.pipelines.processes.attempt import run_attempt
from cargobike.pipelines.processes.messages import EndTask, Frames, Gone, Setup, Task, ToTemplate, send
from cargobike.pipelines.record import RunFolder
from cargobike.pipelines.values import pickling
from cargobike.store.files import project
from cargobike.workers.processes import adopt_orphans, children_of, die_with_parent, end_descendants, volunteer

_FAILED: Final = 70  # the exit code of an attempt whose process could not even say what went wrong


class _Attempt:
    """An attempt whose process was forked."""

    def __init__(self, task: Task, pid: int) -> None:
        self.step = task.step
        self.attempt = task.attempt
        self.pid = pid
        self.began_at = time.monotonic()
        self.kill_at: float | None = None


class Template:
    """Listens to the driver and to the ends of its children."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._frames = Frames()
        self._attempts: dict[int, _Attempt] = {}
        self._decoder = msgspec.msgpack.Decoder(ToTemplate)
        self._imported: set[str] = set()
        self._setup: Setup | None = None
        self._wake_fd, wake_end = os.pipe()
        os.set_blocking(wake_end, False)
        os.set_blocking(self._wake_fd, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)
        self._poller.register(self._wake_fd, select.POLLIN)

    def serve(self) -> None:
        """Fork attempts on demand until the driver is gone; then end them."""
        try:
            while True:
                self._serve_once()
        except ConnectionLostError:
            end_descendants()

    def _serve_once(self) -> None:
        kill_times = [attempt.kill_at for attempt in self._attempts.values() if attempt.kill_at is not None]
        wait_ms = max(0.0, min(kill_times) - time.monotonic()) * 1000 if kill_times else None
        ready = dict(self._poller.poll(wait_ms))
        if self._wake_fd in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_fd, 4096)
        self._bury()
        if self._connection.fileno() in ready:
            for data in self._frames.read(self._connection):
                self._hear(self._decoder.decode(data))
        now = time.monotonic()
        for attempt in self._attempts.values():
            if attempt.kill_at is not None and now >= attempt.kill_at:
                attempt.kill_at = None
                _signal_all(attempt.pid, signal.SIGKILL)

    def _hear(self, message: ToTemplate) -> None:
        if isinstance(message, Setup):
            self._prepare(message)
        elif isinstance(message, Task):
            self._fork(message)
        else:
            self._end(message)

    def _prepare(self, setup: Setup) -> None:
        self._setup = setup
        theirs = set(setup.sys_path)
        sys.path[:] = [*setup.sys_path, *(path for path in sys.path if path not in theirs)]
        sys.argv[:] = setup.argv
        install(setup.modules)
        sys.meta_path.insert(0, sys.meta_path.pop())  # as they were when the run began, not as they are now
        for name, text in setup.sources.items():
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        project.use(setup.project)
        pickling.homes.append(setup.home)
        # As long as one of us lives, another driver cannot know what we still do.
        lock = os.open(RunFolder(Path(setup.run)).processes_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(lock, fcntl.LOCK_SH)

    def _fork(self, task: Task) -> None:
        assert self._setup is not None
        self._import(task.libraries)
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                die_with_parent(me)
                adopt_orphans()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._connection.close()
                folder = RunFolder(Path(self._setup.run))
                run_attempt(task, folder, ProjectFolder(Path(self._setup.project)))
            except BaseException:  # noqa: BLE001 - no exception may leave a forked child, only its exit status
                traceback.print_exc()
            finally:
                os._exit(_FAILED)
        self._attempts[pid] = _Attempt(task, pid)

    def _import(self, names: list[str]) -> None:
        for name in names:
            if name not in self._imported:
                self._imported.add(name)
                with contextlib.suppress(Exception):  # the step says what is wrong with it
                    importlib.import_module(name)
                gc.freeze()

    def _end(self, message: EndTask) -> None:
        for attempt in self._attempts.values():
            if (attempt.step, attempt.attempt) == (message.step, message.attempt):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(attempt.pid, signal.SIGINT)
                attempt.kill_at = time.monotonic() + message.grace_s

    def _bury(self) -> None:
        """Reap attempts that have ended, and end what they left behind."""
        for pid, attempt in list(self._attempts.items()):
            reaped, status, usage = os.wait4(pid, os.WNOHANG)
            if not reaped:
                continue
            del self._attempts[pid]
            left = [child for child in children_of(os.getpid()) if child not in self._attempts]
            if left:
                _signal_all(pid, signal.SIGKILL)
                end_descendants(spare=set(self._attempts))
            send(
                self._connection,
                Gone(
                    step=attempt.step,
                    attempt=attempt.attempt,
                    code=os.waitstatus_to_exitcode(status),
                    seconds=time.monotonic() - attempt.began_at,
                    cpu_s=usage.ru_utime + usage.ru_stime,
                    peak_memory_bytes=usage.ru_maxrss * 1024,
                    left=len(left),
                ),
            )


def _signal_all(pid: int, number: int) -> None:
    """Signal a step and what it started in its own session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> None:
    """Run a template; its only argument is the number of the socket that it inherited."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    if os.getppid() != int(sys.argv[2]):
        return
    # Not killed with the driver by the kernel: it sees the connection close, and ends all that steps have started.
    adopt_orphans()
    volunteer()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    Template(connection).serve()
