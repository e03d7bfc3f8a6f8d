"""What the container of a pod runs, as a process of this machine: the rendered arguments, environment and files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import msgspec

from cargobike.core.settings import CACHE, PROJECT
from cargobike.serving.kubernetes.asked import Asked
from cargobike.serving.kubernetes.render import render
from cargobike.serving.specification import Specification

TOKEN = "a-token-that-is-long-enough"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
UP_WITHIN_S = 90.0


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Pod:
    """A deployment as a pod runs it, on loopback, with a project of its own.

    Args:
        folder: For what the cluster would mount.
        asked: The deployment.
        environment: What Secrets hold.
        leave_s: How long it takes its leave; by default as rendered.
    """

    def __init__(
        self, folder: Path, asked: Asked, environment: Mapping[str, str] | None = None, leave_s: float | None = None
    ) -> None:
        config, deployment = render(asked)[:2]
        inside = msgspec.json.decode(config["data"]["deployment.json"], type=Specification)
        self.port = free_port()
        self.grpc_port = free_port() if inside.grpc_port else None
        limits = inside.limits if leave_s is None else msgspec.structs.replace(inside.limits, leave_s=leave_s)
        local = msgspec.structs.replace(
            inside, host="127.0.0.1", port=self.port, grpc_port=self.grpc_port, limits=limits
        )
        folder.mkdir(exist_ok=True)
        (folder / "deployment.json").write_bytes(msgspec.json.encode(local))
        (folder / "tokens").mkdir()
        (folder / "tokens" / "predict").write_text(f"{TOKEN}\n")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        arguments = container["args"]
        arguments[1], arguments[3] = str(folder / "deployment.json"), str(folder / "tokens")
        self.address = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cargobike.cli", "serve", *arguments],
            env={**os.environ, **(environment or {}), PROJECT: str(folder / "project"), CACHE: str(folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @classmethod
    def of(cls, process: subprocess.Popen[str], port: int) -> Pod:
        """Return a pod whose process was started in another way."""
        pod = cls.__new__(cls)
        pod.process, pod.port, pod.grpc_port, pod.address = process, port, None, f"http://127.0.0.1:{port}"
        return pod

    def is_ready(self) -> bool:
        """Ask as the probe does, on a connection of its own."""
        try:
            return httpx.get(f"{self.address}/v2/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def await_ready(self) -> None:
        """Wait until the probe passes."""
        give_up_at = time.monotonic() + UP_WITHIN_S
        while not self.is_ready():
            assert self.process.poll() is None, self.close()
            assert time.monotonic() < give_up_at
            time.sleep(0.1)

    def close(self) -> str:
        """End it if it has not ended, and return what it printed."""
        if self.process.poll() is None:
            self.process.kill()
        return str(self.process.communicate()[0])
