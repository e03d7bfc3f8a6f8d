"""Runs functions as the ranks of a gang, each in a process of its own, forked from one that has PyTorch ready.

As a program (`python rank_host.py`) this is the process that forks; `RankHost` is what tests talk to it with. The host
imports and computes nothing, so its children may.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READY = (
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.checkpoint.state_dict",
    "sklearn.datasets",
    "cargobike.torch",
)
FOLDER = Path(__file__).resolve().parent
DEADLINE_S = 240.0


@dataclass(frozen=True)
class Call:
    """One function to run in a process of its own, with variables of its own."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a rank ended: what it returned, or what it raised, or the signal that killed it."""

    value: Any = None
    error: str = ""
    exit_code: int = 0


class RankHost:
    """A process that forks ranks; made once, used by many tests.

    After a test that was interrupted while it waited, there is a new one: the old one would give its late answer to the
    next test.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        from support import left_running  # not in the process that forks

        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        theirs.close()
        self._socket = ours
        left_running.shared.add(self._process.pid)

    def run(self, *calls: Call, deadline_s: float = DEADLINE_S) -> list[Outcome]:
        """Run all calls at the same time and return how each ended; kill those that do not end."""
        request = {
            "deadline_s": deadline_s,
            "path": [entry for entry in sys.path if entry],
            "calls": [
                (call.function.__module__, call.function.__qualname__, dict(call.arguments), dict(call.variables))
                for call in calls
            ],
        }
        self._socket.settimeout(deadline_s + 60)
        try:
            _send(self._socket, request)
            return [Outcome(**fields) for fields in _receive(self._socket)]
        except BaseException:
            self._process.kill()
            self.close()
            self._start()
            raise

    def ranks(
        self, function: Callable[..., Any], world_size: int = 2, deadline_s: float = DEADLINE_S, **arguments: Any
    ) -> list[Any]:
        """Run a function in every rank of a gang, with the variables of torchrun, and return what each returned."""
        outcomes = self.run(*gang(function, world_size, **arguments), deadline_s=deadline_s)
        failed = [f"rank {rank}: exit {o.exit_code}\n{o.error}" for rank, o in enumerate(outcomes) if o.error]
        assert not failed, "\n".join(failed)
        return [outcome.value for outcome in outcomes]

    def close(self) -> None:
        """End the host and whatever it has forked."""
        self._socket.close()
        self._process.wait(timeout=30)


def gang(function: Callable[..., Any], world_size: int = 2, **arguments: Any) -> list[Call]:
    """Return one call for each rank, with the variables of torchrun."""
    port = free_port()
    return [
        Call(
            function,
            arguments,
            {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "LOCAL_WORLD_SIZE": str(world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
        )
        for rank in range(world_size)
    ]


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _send(connection: socket.socket, message: Any) -> None:
    data = pickle.dumps(message)
    connection.sendall(struct.pack("!Q", len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    (length,) = struct.unpack("!Q", _exactly(connection, 8))
    return pickle.loads(_exactly(connection, length))


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise EOFError("the other end has closed")
        data += piece
    return bytes(data)


def _serve(connection: socket.socket) -> None:
    for name in READY:
        importlib.import_module(name)
    while True:
        try:
            request = _receive(connection)
        except EOFError:
            return
        _send(connection, _run_calls(request, connection))


def _run_calls(request: dict[str, Any], connection: socket.socket) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        children = {}
        for index, (module, name, arguments, variables) in enumerate(request["calls"]):
            result = Path(folder) / str(index)
            pid = os.fork()
            if pid == 0:
                connection.close()
                faulthandler.dump_traceback_later(0.9 * request["deadline_s"])  # shows who hangs, and where
                _be_rank(request["path"], module, name, arguments, variables, result)
            children[pid] = index
        codes = _wait(children, request["deadline_s"])
        outcomes = []
        for index in range(len(codes)):
            file = Path(folder) / str(index)
            fields = pickle.loads(file.read_bytes()) if file.exists() else {"error": f"ended by {codes[index]}"}
            outcomes.append({**fields, "exit_code": codes[index]})
        return outcomes


def _wait(children: dict[int, int], deadline_s: float) -> dict[int, int]:
    """Wait for all; after the deadline kill those that are left."""

    def kill_all(*_: object) -> None:
        for pid, index in children.items():
            if index not in codes:
                os.kill(pid, signal.SIGKILL)

    codes: dict[int, int] = {}
    signal.signal(signal.SIGALRM, kill_all)
    signal.setitimer(signal.ITIMER_REAL, deadline_s)
    while len(codes) < len(children):
        pid, status = os.waitpid(-1, 0)
        codes[children[pid]] = os.waitstatus_to_exitcode(status)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return codes


def _be_rank(
    path: list[str], module: str, name: str, arguments: dict[str, Any], variables: dict[str, str], result: Path
) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: die with the host
    os.environ.update(variables)
    sys.path[:] = path
    sys.modules["torch"].set_num_threads(1)  # two ranks share two cores with everything else
    try:
        value = getattr(importlib.import_module(module), name)(**arguments)
        fields = {"value": value}
        data = pickle.dumps(fields)
    except BaseException:
        data = pickle.dumps({"error": traceback.format_exc()})
    scratch = result.with_suffix(".part")
    scratch.write_bytes(data)
    scratch.rename(result)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
