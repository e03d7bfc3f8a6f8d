"""Starting a watcher in a process of its own, waiting until it watches, and ending it."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError, WaitError
from cargobike.core.package import PACKAGE_PARENT
from cargobike.monitoring.record import MonitorFolder
from cargobike.monitoring.running.process import Said, WatcherConfig
from cargobike.store.files.locking import holder, holds_lock

_MODULE: Final = "cargobike.monitoring.running.process"
_BEGIN_S: Final = 120.0
END_S: Final = 60.0
_LOOK_S: Final = 0.05

_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""A watcher stands beside a deployment: it does not take the cores that models compute on, unless a user says so."""

_running: list[subprocess.Popen[bytes]] = []
"""Watchers that this process has started: kept, so that it reaps them, and so that those it owns end with it."""


@atexit.register
def _leave_running() -> None:
    """Leave what was detached to itself: no warning that it still runs."""
    for popen in _running:
        if popen.stdin is not None:
            popen.stdin.close()  # a watcher that is owned ends
            with contextlib.suppress(subprocess.TimeoutExpired):
                popen.wait(END_S)
        elif popen.poll() is None:
            popen.returncode = 0


def launch(folder: MonitorFolder, *, detach: bool) -> int:
    """Start a watcher; return its process.

    Raises:
        InvalidInputError: If it cannot watch; says why.
        WaitError: If it has not begun in time.
    """
    log_fd = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); from {_MODULE} import main; main()"
    try:
        popen = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_fd,
            env={**dict.fromkeys(_THREADS, "1"), **os.environ},
            start_new_session=True,
        )
    finally:
        os.close(log_fd)
    assert popen.stdin is not None
    assert popen.stdout is not None
    _reap()
    _running.append(popen)
    config = WatcherConfig(
        project=str(folder.project.root),
        name=folder.id,
        is_owned=not detach,
        paths=tuple(os.path.abspath(path) for path in sys.path),
    )
    try:
        with contextlib.suppress(BrokenPipeError):
            popen.stdin.write(msgspec.json.encode(config) + b"\n")
            popen.stdin.flush()
        with popen.stdout as pipe:
            said = _heard(pipe.fileno(), folder)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            popen.send_signal(signal.SIGTERM)
        raise
    finally:
        if detach:
            with contextlib.suppress(BrokenPipeError):
                popen.stdin.close()
            popen.stdin = None
    if said.error:
        popen.wait(END_S)
        _reap()
        raise InvalidInputError(said.error)
    return said.pid


def stop(folder: MonitorFolder, timeout_s: float = END_S) -> bool:
    """Ask a watcher to end, and wait until it has; returns whether there was one.

    Raises:
        WaitError: If it has not ended in time.
    """
    if not holds_lock(folder):
        return False
    folder.stop_request.touch()
    give_up_at = time.monotonic() + timeout_s
    while holds_lock(folder):
        if time.monotonic() > give_up_at:
            raise WaitError(
                f"{folder.id} is still watched by {holder(folder)} after {timeout_s:g} s; see {folder.log}."
            )
        time.sleep(_LOOK_S)
    _reap()
    return True


def _reap() -> None:
    """Forget the watchers of this process that have ended."""
    for popen in list(_running):
        if popen.poll() is not None:
            _running.remove(popen)
            if popen.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    popen.stdin.close()


def _heard(fd: int, folder: MonitorFolder) -> Said:
    give_up_at, text = time.monotonic() + _BEGIN_S, b""
    while b"\n" not in text:
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            raise WaitError(
                f"{folder.id} is not watched after {_BEGIN_S:g} s. What its process printed is in {folder.log}."
            )
        if not select.select([fd], [], [], left_s)[0]:
            continue
        data = os.read(fd, 1 << 16)
        if not data:
            raise InvalidInputError(f"The process that watches {folder.id} ended at once; {folder.log} may say why.")
        text += data
    return msgspec.json.decode(text, type=Said)
