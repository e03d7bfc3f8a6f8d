"""The whole product inside the rig: `cargobike share publish`, `serve`, `get` and `limit`, in projects of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from namespaces import RECEIVER, SENDER, Rig

STEP_S = 0.1
LOOK_S = 0.25
START_S = 60.0
PORT = 7777
RECEIVED = re.compile(r"bytes_received:(\d+)")
OWNER = re.compile(r"pid=(\d+)")


class Sockets:
    """What the processes of a namespace have received over TCP, by process: the kernel is asked four times a second."""

    def __init__(self, namespace: str) -> None:
        self._command = ("ip", "netns", "exec", namespace, "ss", "-tinpH")
        self._looks: list[tuple[float, dict[int, int]]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            out = subprocess.run(self._command, capture_output=True, text=True, timeout=20, check=False).stdout
            totals: dict[int, int] = {}
            for owner, received in zip(OWNER.finditer(out), _received_by_socket(out), strict=False):
                totals[int(owner[1])] = totals.get(int(owner[1]), 0) + received
            self._looks.append((time.monotonic(), totals))

    def total(self, pid: int) -> int:
        """Return the bytes that a process has received until now."""
        return self._looks[-1][1].get(pid, 0) if self._looks else 0

    def counts(self, pid: int) -> dict[int, int]:
        """Return the bytes of each 100 ms, as a receiver of `flows.py` counts them."""
        counts: dict[int, int] = {}
        for (begin, before), (end, after) in zip(self._looks, self._looks[1:], strict=False):
            more = max(0, after.get(pid, 0) - before.get(pid, 0))
            steps = range(int(begin / STEP_S), max(int(begin / STEP_S) + 1, int(end / STEP_S)))
            for step in steps:
                counts[step] = counts.get(step, 0) + more // len(steps)
        return counts

    def close(self) -> None:
        """End the thread."""
        self._is_over.set()
        self._thread.join(timeout=30)


def _received_by_socket(out: str) -> Iterator[int]:
    """Return the bytes of each socket, in order: its owner stands in one line, its figures in the next."""
    for line in out.splitlines():
        if line[:1] in (" ", "\t"):
            found = RECEIVED.search(line)
            yield int(found[1]) if found else 0


class Site:
    """A project in a folder of its own, in one of the namespaces."""

    def __init__(self, made: Rig, namespace: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._made, self._namespace, self.folder = made, namespace, folder
        self._env = {
            **os.environ,
            "CARGOBIKE_PROJECT": str(folder / "project"),
            "CARGOBIKE_SHARE_SECRET": "the secret of the rig",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of `cargobike share`."""
        program = (sys.executable, "-m", "cargobike.cli", "share", *words)
        return self._made.start(self._namespace, *program, env=self._env, stderr=subprocess.DEVNULL)

    def call(self, *words: str) -> dict[str, object]:
        """Run a command to its end; return what it says for programs."""
        out, _ = self.start(*words, "--json").communicate(timeout=START_S)
        answer = json.loads(out)
        assert isinstance(answer, dict)
        return answer

    def serve(self, host: str) -> str:
        """Start the daemon; return its address once it listens."""
        daemon = self.start("serve", "--network", "rig", "--host", host, "--port", str(PORT))
        assert daemon.stdout
        said = daemon.stdout.readline()
        assert f"{host}:{PORT}" in said, said
        return f"{host}:{PORT}"

    def get(self, address: str) -> subprocess.Popen[str]:
        """Start to get what the rig publishes."""
        return self.start("get", "data", "--network", "rig", "--peer", address, "--to", str(self.folder / "to"))


class Swarm:
    """One member that serves a file, and members that get it, each a project and a process."""

    def __init__(self, made: Rig, folder: Path, mb: int) -> None:
        self._made, self._folder = made, folder
        self.sockets = Sockets(made.receiver)
        self.seed = Site(made, made.sender, folder / "seed")
        (self.seed.folder / "data").mkdir()
        with (self.seed.folder / "data" / "file.bin").open("wb") as file:
            for _ in range(mb):
                file.write(os.urandom(1_000_000))
        source = str(self.seed.folder / "data")
        self.seed.call("publish", "data", source, "--network", "rig", "--description", "Noise", "--yes")
        self._address = self.seed.serve(SENDER)
        self.sites: dict[int, Site] = {}

    def get(self, receive: str | None = None) -> subprocess.Popen[str]:
        """Have one more member get the file, with a limit of what it receives; return its process once bytes come."""
        site = Site(self._made, self._made.receiver, self._folder / f"member{len(self.sites)}")
        if receive is not None:
            site.serve(RECEIVER)
            site.call("limit", "--network", "rig", "--receive", receive)
        process = site.get(self._address)
        self.sites[process.pid] = site
        deadline = time.monotonic() + START_S
        while self.sockets.total(process.pid) < 200_000:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nothing comes: {process.communicate(timeout=5)}")
            time.sleep(0.05)
        return process


@contextmanager
def swarm(made: Rig, mb: int) -> Iterator[Swarm]:
    """Publish and serve a file of some megabytes; everything is ended and removed with the block."""
    folder = Path(tempfile.mkdtemp(prefix="cargobike-give-way-"))
    one: Swarm | None = None
    try:
        one = Swarm(made, folder, mb)
        yield one
    finally:
        if one is not None:
            one.sockets.close()
        made.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
