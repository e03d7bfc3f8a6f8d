"""A real Spark cluster on this machine: a master and workers as processes of their own, each with its own address."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark

from cargobike.engines.spark.java import java_home
from cargobike.testing.networks import Networks
from cargobike.workers.processes import die_with_parent

START_S = 120.0
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SOURCE = str(Path(__file__).resolve().parents[2])


class SparkCluster:
    """A standalone master and some workers, which Spark takes for different machines.

    Args:
        hosts: An address for each worker; those of the loopback network need no set-up.
        cores: Cores of each worker.
        gpus: Addresses of made-up GPUs of each worker.
        environment: Variables for the executors of each worker, by its address.
        networks: Where the workers live, each in a network of its own; `hosts` are their addresses then.
    """

    def __init__(
        self,
        hosts: Sequence[str] = ("127.0.0.2", "127.0.0.3"),
        *,
        cores: int = 2,
        gpus: Sequence[str] = (),
        environment: dict[str, dict[str, str]] | None = None,
        networks: Networks | None = None,
    ) -> None:
        self.hosts = tuple(hosts) if networks is None else networks.addresses
        self._networks = networks
        self._head = "127.0.0.1" if networks is None else networks.head
        self._folder = Path(tempfile.mkdtemp(prefix="cargobike-spark-"))
        self._exits = contextlib.ExitStack()
        self._exits.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._processes: list[subprocess.Popen[bytes]] = []
        home = self._exits.enter_context(java_home())
        self._environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH", "")])),
            SPARK_NO_DAEMONIZE="1",
            SPARK_DAEMON_JAVA_OPTS=QUICK_JAVA,
            SPARK_DAEMON_MEMORY="256m",
            SPARK_HOME=str(Path(pyspark.__file__).parent),
            **({"JAVA_HOME": home} if home else {}),
        )
        try:
            self._start(cores, tuple(gpus), environment or {})
        except BaseException:
            self.close()
            raise

    def _start(self, cores: int, gpus: tuple[str, ...], environment: dict[str, dict[str, str]]) -> None:
        port, self._page = _free_port(), _free_port()
        self.master = f"spark://{self._head}:{port}"
        where = ["--host", self._head, "--port", str(port), "--webui-port", str(self._page)]
        self._spawn("master", ["org.apache.spark.deploy.master.Master", *where], SPARK_LOCAL_IP=self._head)
        self._await(lambda state: state is not None, "the master has come")
        for host in self.hosts:
            options = {"SPARK_LOCAL_IP": host, **environment.get(host, {})}
            if gpus:
                options["SPARK_WORKER_OPTS"] = self._fake_gpus(gpus)
            work = self._folder / f"work-{host}"
            command = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", str(_free_port())]
            self._spawn(
                f"worker-{host}",
                [*command, "-c", str(cores), "-m", "8g", "-d", str(work), self.master],
                inside=() if self._networks is None else self._networks.inside(host),
                **options,
            )
        self._await(
            lambda state: state is not None and state["aliveworkers"] == len(self.hosts), "all workers have come"
        )

    def settings(self, **more: str) -> dict[str, str]:
        """Return Spark properties for an application that starts quickly here; dots in names as underscores."""
        return {
            "spark.driver.host": self._head,
            "spark.driver.bindAddress": self._head,
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.executor.memory": "512m",
            "spark.pyspark.python": sys.executable,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            **{name.replace("__", "."): value for name, value in more.items()},
        }

    def state(self) -> dict[str, Any] | None:
        """Return what the master's page says, `None` if it does not answer."""
        page = f"http://{self._head}:{self._page}/json/"
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(page, timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
        return None

    def executors(self, host: str | None = None) -> list[int]:
        """Return the process ids of the executors, of one worker or of all."""
        found = []
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdigit() else []
                if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" not in words:
                    continue
                if host is not None and host.encode() != words[words.index(b"--hostname") + 1]:
                    continue
                if str(self._folder).encode() in (process / "cwd").readlink().__bytes__():
                    found.append(int(process.name))
        return found

    def words(self) -> str:
        """Return what master and workers have written, for a test that fails."""
        return "\n".join(f"== {file.name}\n{file.read_text()[-3000:]}" for file in self._folder.glob("*.log"))

    def close(self) -> None:
        """End everything."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()
        self._exits.close()

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn(self, name: str, command: list[str], inside: Sequence[str] = (), **environment: str) -> None:
        program = Path(self._environment["SPARK_HOME"]) / "bin" / "spark-class"
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*inside, str(program), *command],
                    env=self._environment | environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=functools.partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - no threads of ours
                )
            )

    def _await(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + START_S
        while not condition(self.state()):
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise TimeoutError(f"waited in vain until {what}\n{self.words()}")
            time.sleep(0.1)

    def _fake_gpus(self, gpus: tuple[str, ...]) -> str:
        script = self._folder / "gpus.sh"
        script.write_text(f"#!/bin/sh\necho '{json.dumps({'name': 'gpu', 'addresses': list(gpus)})}'\n")
        script.chmod(0o755)
        return f"-Dspark.worker.resource.gpu.amount={len(gpus)} -Dspark.worker.resource.gpu.discoveryScript={script}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
