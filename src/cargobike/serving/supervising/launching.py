"""Starting a supervisor in a process of its own, and waiting until it serves."""

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

from cargobike.core.errors import DeploymentError
from cargobike.core.package import PACKAGE_PARENT
from cargobike.serving.record import DeploymentFolder
from cargobike.serving.supervising.config import Started, SupervisorConfig

LOG: Final = "supervisor.log"
_MODULE: Final = "cargobike.serving.supervising.starting"
_BEYOND_S: Final = 60.0
"""How much longer than its model a deployment may take until it serves."""

_running: list[subprocess.Popen[bytes]] = []
"""Supervisors that this process has started: kept, so that it reaps them."""


@atexit.register
def _leave_running() -> None:
    """Leave what was detached to itself: no warning that it still runs."""
    for popen in _running:
        if popen.poll() is None:
            popen.returncode = 0


def launch(config: SupervisorConfig, folder: DeploymentFolder, load_s: float) -> tuple[Started, int]:
    """Start a supervisor; returns what it says about its first version, and its process.

    Raises:
        DeploymentError: If it ends before it has said anything, or takes longer than the model may.
    """
    folder.logs.mkdir(parents=True, exist_ok=True)
    log_fd = os.open(folder.logs / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); from {_MODULE} import main; main()"
    try:
        popen = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_fd,
            start_new_session=True,
        )
    finally:
        os.close(log_fd)
    _running[:] = [other for other in _running if other.poll() is None]
    _running.append(popen)
    assert popen.stdin is not None
    assert popen.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError), popen.stdin as pipe:
            pipe.write(msgspec.msgpack.encode(config))
        with popen.stdout as pipe:
            return _heard(pipe.fileno(), config.name, folder, load_s + _BEYOND_S), popen.pid
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            popen.send_signal(signal.SIGTERM)
        raise


def _heard(fd: int, name: str, folder: DeploymentFolder, timeout_s: float) -> Started:
    give_up_at, text = time.monotonic() + timeout_s, b""
    while b"\n" not in text:
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            raise DeploymentError(
                f"{name} does not serve after {timeout_s:g} s: its model has not been loaded. What it printed is in "
                f"{folder.logs}; limits={{'load_s': …}} gives it longer."
            )
        if not select.select([fd], [], [], left_s)[0]:
            continue
        data = os.read(fd, 1 << 16)
        if not data:
            raise DeploymentError(f"The supervisor of {name} ended at once; {folder.logs / LOG} may say why.")
        text += data
    return msgspec.json.decode(text, type=Started)


def await_end(pid: int, timeout_s: float) -> bool:
    """Wait until a supervisor has ended, and tell whether it did."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))
    finally:
        os.close(handle)
