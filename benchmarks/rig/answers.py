"""How a measured program answers: one JSON object on the last line of its standard output.

Every program is called as `python PROGRAM TASK [ARGUMENT ...]`, with a folder of its own in `BENCH_FOLDER`.
Kept tiny and free of imports beyond the cheap ones, because its import time is part of what is measured.
"""

from __future__ import annotations

import os
import time


def folder() -> str:
    """Return the folder in which this run may leave files."""
    return os.environ["BENCH_FOLDER"]


def mark(name: str) -> None:
    """Note the time of day under a name: the first time only, whichever process comes first."""
    now_s = time.time()
    try:
        descriptor = os.open(os.path.join(folder(), name), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return
    os.write(descriptor, repr(now_s).encode())
    os.close(descriptor)


def append(name: str, line: str) -> None:
    """Append a line to a file of this run; small appends of several processes do not mix."""
    descriptor = os.open(os.path.join(folder(), name), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)


def lines(name: str) -> list[str]:
    """Read what `mark` or `append` wrote; empty if nothing was."""
    try:
        with open(os.path.join(folder(), name), encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def numbers(name: str) -> list[float]:
    """Read lines as numbers."""
    return [float(line) for line in lines(name)]


def tree_memory() -> dict[str, float]:
    """Count this process and all below it; returns their number and their proportional memory in MiB."""
    waiting, pids = [os.getpid()], []
    while waiting:
        pid = waiting.pop()
        pids.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    waiting += map(int, file.read().split())
        except OSError:
            continue
    pss_kb = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                pss_kb += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return {"processes": len(pids), "tree_pss_mb": pss_kb / 1024}


def memory_mb() -> dict[str, float]:
    """Return resident, proportional and peak resident memory of this process in MiB."""
    found: dict[str, float] = {}
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith(("Rss:", "Pss:")):
                found[line[:3].lower() + "_mb"] = int(line.split()[1]) / 1024
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                found["peak_rss_mb"] = int(line.split()[1]) / 1024
    return found


def answer(**values: object) -> None:
    """Print the answer; the last thing a measured program does."""
    import json  # its import would count as start-up time of the measured program

    print("\n" + json.dumps(values), flush=True)
