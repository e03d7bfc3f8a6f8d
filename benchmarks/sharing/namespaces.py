"""A sender, a router with a slow link, and a receiver, each in a network namespace that is made and removed here.

Traffic goes between these namespaces only. Needs root and iproute2. The bottleneck sits in the router: on the sender
itself the kernel keeps its own queue short, and no delay would show. Names begin with a mark of their own and carry the
number of the process that made them: what a killed one has left behind is removed by the next.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
SENDER, RECEIVER = "10.77.77.1", "10.77.78.2"
MARK = "cbg"
OURS = re.compile(rf"{MARK}(\d+)[srd]")


class Rig:
    """Three namespaces in a row.

    Args:
        mbit: The rate of the link, in Mbit/s.
        buffer_ms: How long a full queue takes to empty.
        delay_ms: How much longer a round trip takes: confirmations are held so long.
        loss: The share of data packets that is lost by chance.
    """

    def __init__(self, mbit: float, buffer_ms: float, delay_ms: float = 0.0, loss: float = 0.0) -> None:
        self.sender, self.router, self.receiver = (f"{MARK}{os.getpid()}{side}" for side in "srd")
        self.mbit, self.buffer_ms, self.delay_ms, self.loss = mbit, buffer_ms, delay_ms, loss
        self._processes: list[subprocess.Popen[str]] = []
        self._lines: list[subprocess.Popen[str]] = []

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
        forwards = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
        _run("ip", "netns", "exec", self.router, "sysctl", "-qw", *forwards)
        self.shape(self.buffer_ms)
        if self.delay_ms:
            self._lengthen("delay0", "toward1", self.delay_ms, 0.0)
        if self.loss:
            self._lengthen("delay1", "toward0", 0.0, self.loss)

    def _lengthen(self, device: str, coming: str, delay_ms: float, loss: float) -> None:
        """Lead what comes from one side through a program that holds it for some time, or loses some of it."""
        line = self.python(self.router, "delay_line.py", device, str(delay_ms), str(loss))
        self._processes.remove(line)
        self._lines.append(line)
        assert line.stdout
        assert line.stdout.readline() == "ready\n"
        table = str(100 + int(device[-1]))
        _run("ip", "-n", self.router, "link", "set", device, "txqueuelen", "10000", "up")
        _run("ip", "-n", self.router, "route", "add", "default", "dev", device, "table", table)
        _run("ip", "-n", self.router, "rule", "add", "iif", coming, "lookup", table)

    def shape(self, buffer_ms: float) -> None:
        """Set the depth of the queue."""
        self.buffer_ms = buffer_ms
        _run(
            *("tc", "-n", self.router, "qdisc", "replace", "dev", "toward1", "root", "tbf"),
            *("rate", f"{self.mbit}mbit", "burst", "32k", "latency", f"{buffer_ms}ms"),
        )

    def start(
        self, namespace: str, *command: str, env: Mapping[str, str] | None = None, stderr: int | None = None
    ) -> subprocess.Popen[str]:
        """Start a program in a namespace; what it prints is read by the caller."""
        program = ["ip", "netns", "exec", namespace, *command]
        process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
            cwd=HERE,
            env=env,
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
        self._processes += self._lines
        self._lines.clear()
        self.stop_all()
        for name in (self.sender, self.router, self.receiver):
            _run("ip", "netns", "del", name, check=False)


def remove_leftovers() -> list[str]:
    """Remove namespaces of rigs whose process is gone, and end what still runs in them; return their names."""
    names = subprocess.run(("ip", "netns", "list"), capture_output=True, text=True, timeout=20, check=False).stdout
    removed = []
    for line in names.splitlines():
        name = line.split()[0]
        match = OURS.fullmatch(name)
        if match is None or os.path.exists(f"/proc/{match[1]}"):
            continue
        pids = subprocess.run(("ip", "netns", "pids", name), capture_output=True, text=True, timeout=20, check=False)
        for pid in pids.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "del", name, check=False)
        removed.append(name)
    return removed


@contextlib.contextmanager
def rig(mbit: float, buffer_ms: float, delay_ms: float = 0.0, loss: float = 0.0) -> Iterator[Rig]:
    """Make a rig, and remove it however the block ends: an interrupt and a termination included."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    remove_leftovers()
    made = Rig(mbit, buffer_ms, delay_ms, loss)
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
