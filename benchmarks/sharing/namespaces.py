"""A sender, a router with a slow link, and a receiver, each in a network namespace that is made and removed here.

Traffic goes between these namespaces only. Needs root and iproute2. The bottleneck sits in the router: on the sender
itself the kernel keeps its own queue short, and no delay would show.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
SENDER, RECEIVER = "10.77.77.1", "10.77.78.2"


class Rig:
    """Three namespaces in a row.

    Args:
        mbit: The rate of the link, in Mbit/s.
        buffer_ms: How long a full queue takes to empty.
    """

    def __init__(self, mbit: float, buffer_ms: float) -> None:
        mark = f"cbg{os.getpid() % 100000}"
        self.sender, self.router, self.receiver = (f"{mark}{side}" for side in "srd")
        self.mbit, self.buffer_ms = mbit, buffer_ms
        self._processes: list[subprocess.Popen[str]] = []

    def make(self) -> None:
        """Make the namespaces and the link."""
        for name in (self.sender, self.router, self.receiver):
            _run("ip", "netns", "add", name)
        for name, own, other, address, gateway in (
            (self.sender, "near", "toward0", SENDER, "10.77.77.254"),
            (self.receiver, "far", "toward1", RECEIVER, "10.77.78.254"),
        ):
            _run("ip", "link", "add", own, "netns", name, "type", "veth", "peer", "name", other, "netns", self.router)
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", own)
            _run("ip", "-n", self.router, "addr", "add", f"{gateway}/24", "dev", other)
            _run("ip", "-n", self.router, "link", "set", other, "up")
            _run("ip", "-n", name, "link", "set", own, "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            # Peers take the default, and a machine's may be bbr, which on a path without delay gives way by itself.
            _run("ip", "-n", name, "route", "add", "default", "via", gateway, "congctl", "cubic")
            # One packet at a time: a bottleneck that lets 64 KiB through at once is not one of 80 Mbit/s.
            _run("ip", "netns", "exec", name, "ip", "link", "set", own, "gso_max_segs", "4", check=False)
        _run("ip", "netns", "exec", self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.shape(self.buffer_ms)

    def shape(self, buffer_ms: float) -> None:
        """Set the depth of the queue."""
        self.buffer_ms = buffer_ms
        _run(
            *("tc", "-n", self.router, "qdisc", "replace", "dev", "toward1", "root", "tbf"),
            *("rate", f"{self.mbit}mbit", "burst", "32k", "latency", f"{buffer_ms}ms"),
        )

    def start(self, namespace: str, *command: str) -> subprocess.Popen[str]:
        """Start a program in a namespace; what it prints is read by the caller."""
        program = ["ip", "netns", "exec", namespace, *command]
        process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=HERE
        )
        self._processes.append(process)
        return process

    def python(self, namespace: str, *arguments: str, python: str = sys.executable) -> subprocess.Popen[str]:
        """Start one of the programs beside this file."""
        return self.start(namespace, python, *arguments)

    def stop_all(self) -> None:
        """End everything that was started."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.communicate()
        self._processes.clear()

    def remove(self) -> None:
        """End everything and remove the namespaces, with all links in them."""
        self.stop_all()
        for name in (self.sender, self.router, self.receiver):
            _run("ip", "netns", "del", name, check=False)


@contextlib.contextmanager
def rig(mbit: float, buffer_ms: float) -> Iterator[Rig]:
    """Make a rig, and remove it however the block ends: an interrupt and a termination included."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    made = Rig(mbit, buffer_ms)
    try:
        made.make()
        yield made
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        held = signal.signal(signal.SIGINT, signal.SIG_IGN)
        made.remove()
        signal.signal(signal.SIGINT, held)
        signal.signal(signal.SIGTERM, before)


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")


def is_possible() -> str | None:
    """Return why there can be no rig here, or None."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    return None
