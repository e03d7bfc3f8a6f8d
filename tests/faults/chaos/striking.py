"""Strikes a search from outside, at the moments that its schedule names."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

POLL_S = 0.002
LOCAL_PLACES = ("host", "agent", "runner")
TEMPLATE_PLACES = ("host", "agent", "template", "runner")
SPARK_PLACES = ("executor", "daemon", "worker", "host", "agent", "template", "runner")


@dataclass
class Victim:
    """A search that runs.

    Attributes:
        process: Its driver.
        disk: Where its project lies on this machine.
        spark_workers: Below which its workers are, if it runs on a cluster.
        has_templates: Whether its agents have templates below them.
    """

    process: subprocess.Popen[bytes]
    disk: Path
    spark_workers: list[int] | None = None
    has_templates: bool = True

    def journal(self) -> Path | None:
        """Return its journal, once there is one."""
        found = files_like(self.disk, "**/experiments/*/journal.jsonl")
        return found[-1] if found else None

    def checkpoints(self) -> list[Path]:
        """Return all folders of checkpoints, those that are being written included."""
        return files_like(self.disk, "**/experiments/*/trials/*/checkpoints/*")

    def place(self, name: str) -> list[psutil.Process]:
        """Return its processes in a place, such as its agents."""
        if name == "driver":
            return [psutil.Process(self.process.pid)]
        places = TEMPLATE_PLACES if self.has_templates else LOCAL_PLACES
        if name == "template" and self.spark_workers is None and not self.has_templates:
            name = "agent"  # which is its own template there
        roots = [self.process.pid] if self.spark_workers is None else self.spark_workers
        generation = [psutil.Process(pid) for pid in roots if psutil.pid_exists(pid)]
        for place in places if self.spark_workers is None else SPARK_PLACES:
            generation = [child for parent in generation for child in _children(parent)]
            if place == "host" and self.spark_workers is None:
                generation = [child for child in generation if not is_fork(child)]
            if place == name:
                return generation
        return []


def files_like(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern, while others make and delete files beside them."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            return sorted(folder.glob(pattern))


def _children(parent: psutil.Process) -> list[psutil.Process]:
    try:
        return parent.children()
    except psutil.Error:
        return []


def is_fork(process: psutil.Process) -> bool:
    """Tell whether a process is the driver's program itself, or a copy that it has forked."""
    try:
        return "search.py" in " ".join(process.cmdline())
    except psutil.Error:
        return False


class Striker(threading.Thread):
    """Waits for the moment of each fault, one after the other in the order of their moments, and strikes.

    It ends when all have struck, or when the search is over.
    """

    def __init__(self, victim: Victim, faults: list[dict[str, Any]], seed: int) -> None:
        super().__init__(daemon=True)
        self.struck: list[str] = []
        self._victim = victim
        self._faults = list(faults)
        self._rng = random.Random(seed)
        self._began = time.monotonic()
        self._written = 0
        self._journal_size = 0
        self._checkpoints: set[str] = set()

    def run(self) -> None:
        while self._faults and self._victim.process.poll() is None:
            self._look()
            for fault in [fault for fault in self._faults if self._is_due(fault)]:
                self._faults.remove(fault)
                time.sleep(0.0 if fault["after"] == "start" else fault["delay_s"])
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    if self._strike(fault["kind"]):
                        self.struck.append(fault["kind"])
            time.sleep(POLL_S)

    def _look(self) -> None:
        """Count how often the journal has grown, and the checkpoints that were begun."""
        journal = self._victim.journal()
        if journal is None:
            return
        with contextlib.suppress(OSError):
            size = journal.stat().st_size
            self._written += size > self._journal_size
            self._journal_size = size
        if any(fault["after"] == "checkpoint" for fault in self._faults):
            self._checkpoints |= {str(path) for path in self._victim.checkpoints()}

    def _is_due(self, fault: dict[str, Any]) -> bool:
        if fault["after"] == "start":
            return bool(time.monotonic() - self._began >= fault["delay_s"])
        return bool(fault["count"] <= (self._written if fault["after"] == "journal" else len(self._checkpoints)))

    def _strike(self, kind: str) -> bool:
        """Do it; returns whether there was something to do it to."""
        if kind.startswith("SIG"):
            *words, target = kind.split()
            return self._signal(words, target)
        if kind.startswith("cut network"):
            words = kind.split()
            return self._ask("abandon" if "ever" in words else f"cut {words[2] if len(words) > 2 else 0}")
        if kind.startswith("clock"):
            return self._ask(f"clock {86_400 if kind == 'clock ahead' else -86_400}")
        if kind == "disk full":
            return self._fill_disk()
        return self._damage(flip=kind == "damage checkpoint")

    def _ask(self, line: str) -> bool:
        assert self._victim.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._victim.process.stdin.write(line.encode() + b"\n")
            self._victim.process.stdin.flush()
        return True

    def _signal(self, words: list[str], target: str) -> bool:
        """Send signals: `SIGSTOP 1 s agent`, `SIGSTOP SIGKILL agent`, `SIGKILL host+agent`, `SIGINT twice driver`."""
        numbers = [signal.Signals[word] for word in words if word.startswith("SIG")]
        if target == "group":
            os.killpg(self._victim.process.pid, numbers[0])
            return True
        victims: list[psutil.Process] = []
        for place in target.split("+"):
            candidates = [process for process in self._victim.place(place) if process not in victims]
            if candidates:
                victims.append(self._rng.choice(candidates))
        if not victims:
            return False
        _send(victims, numbers[0])
        if "s" in words:
            _later(float(words[1]), lambda: _send(victims, signal.SIGCONT))
        for number in numbers if "twice" in words else numbers[1:]:
            time.sleep(self._rng.uniform(0.0, 0.3))
            _send(victims, number)
        return True

    def _fill_disk(self) -> bool:
        journal = self._victim.journal()
        if journal is None:
            return False
        room = journal.stat().st_size + self._rng.randint(0, 300)
        resource.prlimit(self._victim.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        return True

    def _damage(self, *, flip: bool) -> bool:
        files = files_like(self._victim.disk, "**/experiments/*/trials/*/checkpoints/*/state*")
        if not files:
            return False
        path = self._rng.choice(files)
        with contextlib.suppress(OSError):  # a newer one has just taken its place
            data = path.read_bytes()
            path.write_bytes(bytes([data[0] ^ 255]) + data[1:] if flip and data else data[: len(data) // 2])
        return True


def _send(victims: list[psutil.Process], number: signal.Signals) -> None:
    for process in victims:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _later(seconds: float, what: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()
