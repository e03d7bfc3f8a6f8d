"""What runs inside a Spark task: a worker, as on a machine of one's own, on a tether to the engine that wants it.

This file travels to the executor by value and imports only the standard library before it has looked around: an
executor without Cargobike, or with another Python, can so say what is wrong with it instead of failing strangely.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import importlib.metadata
import json
import os
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

NONCE_BYTES = 32
MAC_BYTES = 32
LONGEST_FRAME = 1 << 16

GO = b"G"
"""The engine wants this worker."""
NOT_WANTED = b"X"
"""It does not, any more: the worker was killed meanwhile, or this is Spark's repetition of a task that died."""
ELSEWHERE = b"E"
"""It does, but not on this executor, where too many have died."""
STOP = b"S"
"""End, now."""
FREE = b"F"
"""Give the task's slot back, and go on without it."""

_CONNECT_S = 20.0
_LOOK_S = 0.1
_COME_BACK_S = 1.0


def run_worker(order: dict[str, Any], payload: Any, _: Iterator[Any]) -> Iterator[dict[str, str]]:
    """Be a worker until it has ended; yields how it did: the fields of an `Ending`, which may not be known here."""
    place = look_around(order)
    tether = Tether(order, place)
    try:
        answer = tether.attach(_CONNECT_S)
    except OSError as error:
        host, port = order["address"]
        text = (
            f"could not reach the driver at {host}:{port} from {place['host']} ({error}); "
            "the driver's address must be one that executors can connect to"
        )
        yield {"kind": "never-came", "text": text}
        return
    if answer == ELSEWHERE:
        time.sleep(1.0)  # else Spark's retries would come back to us before another executor has a free slot
        raise RuntimeError(f"cargobike: the executor on {place['host']} is excluded, because workers kept dying on it")
    if answer != GO:
        yield {"kind": "ended", "text": "was not wanted any more"}
        return
    if order["may_detach"]:
        from cargobike.engines.spark.detaching import run_beside  # noqa: PLC0415 - it was found a moment ago

        code = payload.value
        yield run_beside(lambda aside: _work(order, code, place, tether, aside), tether)
        return
    ending = _work(order, payload.value, place, tether)
    tether.let_go(ending)
    yield ending


def _work(
    order: dict[str, Any], payload: bytes, place: dict[str, Any], tether: Tether, aside: Any = None
) -> dict[str, str]:
    from cargobike.core import settings  # noqa: PLC0415 - may not exist here; then we have said so before
    from cargobike.core.records import Resources  # noqa: PLC0415
    from cargobike.engines.engine import WorkerSpec  # noqa: PLC0415
    from cargobike.engines.local.engine import LocalEngine  # noqa: PLC0415

    gpus = tuple(place["gpus"])
    package = os.path.dirname(os.path.dirname(settings.__file__))
    inside = [os.path.join(package, folder) for folder in order["package_path"].split(os.pathsep) if folder]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*inside, *sys.path]))  # with what Spark has added to it
    scratch = os.path.join(_spark_folder(), f"cargobike-{os.urandom(8).hex()}")  # made where it is needed
    os.environ[settings.SCRATCH] = scratch
    engine = LocalEngine(cores=place["cpus"], gpus=gpus)
    try:
        handle = engine.start_worker(
            WorkerSpec(
                name=order["worker"],
                module=order["module"],
                config=order["config"],
                payload=payload,
                resources=Resources(cpus=place["cpus"], gpus=len(gpus)),
                version=order["version"],
            )
        )
        while (ending := handle.poll()) is None:
            if aside is not None and not aside.goes_on():
                handle.kill()
                return {"kind": "place-lost", "text": f"was lost with its executor on {place['host']}"}
            if tether.is_pulled(_LOOK_S):
                handle.kill()
                return {"kind": "ended", "text": "was ended by its engine"}
        return {"kind": ending.kind.value, "text": ending.text}
    finally:
        engine.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


def _spark_folder() -> str:
    """Return a folder that Spark removes with the application, should we not come to it."""
    for folder in (os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or "").split(","):
        if folder and os.access(folder, os.W_OK):
            return folder
    return tempfile.gettempdir()


def look_around(order: dict[str, Any]) -> dict[str, Any]:
    """Say where this is, and what about it would keep a train function from running as it does in the driver."""
    from pyspark import TaskContext  # noqa: PLC0415 - this is where it is needed, and it is loaded

    task = TaskContext.get()
    assert task is not None
    resources = task.resources()
    executor_pid = _parent_of(os.getppid())  # our parent is the daemon that forks the Python workers of an executor
    return {
        "worker": order["worker"],
        "task": f"{task.taskAttemptId()}.{os.getpid()}.{os.urandom(4).hex()}",
        "host": socket.gethostname(),
        "address": "",
        "executor": f"{os.environ.get('SPARK_LOCAL_IP') or socket.gethostname()}/{executor_pid}",
        "pid": os.getpid(),
        "cpus": int(order["cpus"] or task.cpus()),
        "gpus": list(resources["gpu"].addresses) if "gpu" in resources and order["uses_gpus"] else [],
        "obstacles": _obstacles(order),
        "differences": _differences(order),
    }


def _obstacles(order: dict[str, Any]) -> list[str]:
    here = "{}.{}".format(*sys.version_info[:2])
    if here != order["python"]:
        return [f"Python {here} runs there and {order['python']} in the driver"]
    try:
        version = __import__("cargobike.core.version", fromlist=["__version__"]).__version__
        __import__(order["module"])
    except ImportError as error:
        return [
            f"Cargobike cannot be imported there by {sys.executable} ({error}); install it, or name another Python: "
            "PYSPARK_PYTHON, or the property spark.pyspark.python"
        ]
    found = []
    if version != order["cargobike"]:
        found.append(f"Cargobike {version} is installed there and {order['cargobike']} in the driver")
    for library, wanted in order["libraries"].items():
        if _version_of(library) is None:
            found.append(f"{library} {wanted} is not installed there")
    return found


def _differences(order: dict[str, Any]) -> list[str]:
    return [
        f"{library} {found} there, {wanted} in the driver"
        for library, wanted in order["libraries"].items()
        if (found := _version_of(library)) is not None and found != wanted
    ]


def _version_of(library: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(library)
    return None


def _parent_of(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


class Tether:
    """The task's end of its connection to the engine: proves who it is, then listens for the pull.

    The connection carries no secret: the key that proves both our name and what we say came with the task.
    """

    def __init__(self, order: dict[str, Any], place: dict[str, Any]) -> None:
        self._address = tuple(order["address"])
        self._key: bytes = order["key"]
        self._place = place
        self._socket: socket.socket | None = None
        self._nonce = b""
        self.is_freed = False

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return -1 if self._socket is None else self._socket.fileno()

    def forget(self) -> None:
        """Close our end without a word: another process holds it, too."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def attach(self, timeout_s: float) -> bytes:
        """Connect and introduce ourselves; returns the engine's answer."""
        link = socket.create_connection(self._address, timeout=timeout_s)
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._place["address"] = os.environ.get("SPARK_LOCAL_IP") or link.getsockname()[0]
            self._nonce = b""
            while len(self._nonce) < NONCE_BYTES:
                part = link.recv(NONCE_BYTES - len(self._nonce))
                if not part:
                    raise ConnectionError("the driver hung up")
                self._nonce += part
            self._socket = link
            self._say(self._place)
            return link.recv(1) or NOT_WANTED
        except OSError:
            self._socket = None
            link.close()
            raise

    def is_pulled(self, timeout_s: float) -> bool:
        """Wait a moment; tell whether the engine wants us to end, or is gone."""
        if self._socket is None:
            return True
        readable, _, _ = select.select([self._socket], [], [], timeout_s)
        if not readable:
            return False
        try:
            said = self._socket.recv(1)
        except OSError:
            said = b""
        if said == FREE:
            self.is_freed = True
            return False
        return said == STOP or not self._comes_back()

    def let_go(self, ending: dict[str, str]) -> None:
        """Say how the worker ended, and close."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._say({"worker": self._place["worker"], "ending": ending})
            self._socket.close()
            self._socket = None

    def _comes_back(self) -> bool:
        """Try to connect again after the network cut us off; a driver that is gone refuses at once."""
        give_up_at = time.monotonic() + _COME_BACK_S
        while time.monotonic() < give_up_at:
            try:
                return self.attach(_COME_BACK_S) == GO
            except ConnectionRefusedError:
                return False
            except OSError:
                time.sleep(0.05)
        return False

    def _say(self, words: dict[str, Any]) -> None:
        body = json.dumps(words).encode()
        mac = hmac.new(self._key, self._nonce + body, hashlib.sha256).digest()
        frame = mac + body
        assert self._socket is not None
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
