"""Facts about the machine that a reader needs in order to judge a figure."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path


def facts() -> dict[str, object]:
    """Return processor, memory, system and how long an fsync takes where the runs keep their files."""
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1024**2, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "temporary_folder": tempfile.gettempdir(),
        "fsync_ms": round(fsync_ms(), 3),
    }


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def fsync_ms(repeat: int = 50) -> float:
    """Return the median time of appending a line to a file and forcing it to disk."""
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(repeat):
            started = time.perf_counter()
            file.write(b"x" * 100 + b"\n")
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "0"
