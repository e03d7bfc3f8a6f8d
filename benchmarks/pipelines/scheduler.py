"""What a scheduler with many schedules costs: memory and CPU while nothing is due, time for each decision.

    python benchmarks/pipelines/scheduler.py [--schedules 10000] [--idle-s 20]

The schedules lie on the disk of `--folder`; the process that idles is a real one. Runs are only noted: what a run
costs is measured in the other files here.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil

from cargobike.core.registering.triggers import Seen
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.plan import Plan, Target
from cargobike.pipelines.scheduling.policy.events import Asked, Ticked
from cargobike.pipelines.scheduling.policy.policy import begin, handle
from cargobike.pipelines.scheduling.policy.state import Firing, State
from cargobike.pipelines.scheduling.process.clock import RealClock
from cargobike.pipelines.scheduling.process.looking import LookingThreads
from cargobike.pipelines.scheduling.process.runs import RunSeen
from cargobike.pipelines.scheduling.process.scheduler import Scheduler
from cargobike.store.files.storages import open_storage

TARGET = Target("/nowhere/flows.py", "retrain")


class NotedRuns:
    """Runs that are over as soon as they have begun."""

    def __init__(self) -> None:
        self.begun: set[str] = set()

    def look(self, state: State, firing: Firing) -> RunSeen:
        return RunSeen("over", "completed") if firing.run in self.begun else RunSeen("absent")

    def start(self, state: State, firing: Firing) -> None:
        self.begun.add(firing.run)

    def cancel(self, firing: Firing) -> None:
        pass


class AheadClock(RealClock):
    """The real clock, and so many seconds ahead."""

    ahead_s = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_s


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fill(folder: Path, count: int) -> None:
    """Write schedules as they are on the disk, without a fsync for each."""
    now = float(int(time.time()))
    for number in range(count):
        name = f"schedule{number:05d}"
        place = folder / "pipelines" / "schedules" / name
        place.mkdir(parents=True)
        cron = f"{number % 60} 3 * * *"
        plan = Plan(target=TARGET, cron=cron, timezone="Europe/Oslo", overlap="queue", start=now)
        state = begin(name, Asked(now, plan))
        (place / "000000001.json").write_bytes(msgspec.json.encode(state))


def decisions(count: int) -> float:
    """Return the CPU µs for a tick that fires."""
    plan = Plan(target=TARGET, cron="0 3 * * *", timezone="Europe/Oslo", start=0.0)
    at = time.time()
    states = [begin(f"s{n}", Asked(at, plan)) for n in range(count)]
    before = cpu_s()
    for state in states:
        handle(state, Ticked(at + 86400))
    return (cpu_s() - before) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--idle-s", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        measure(folder, given.schedules, given.idle_s)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, count: int, idle_s: float) -> None:
    print(f"a decision that fires: {decisions(2000):.0f} CPU µs")
    fill(folder, count)
    idle(folder, idle_s)
    storage, clock, runs = open_storage(folder), AheadClock(), NotedRuns()
    scheduler = Scheduler(
        book=Book(storage),
        lease=Lease(storage),
        runs=runs,
        looker=LookingThreads(lambda trigger, mark: Seen(mark)),
        most_runs=count,
        clock=clock,
    )
    began, before = time.perf_counter(), cpu_s()
    scheduler.turn()
    print(f"{count} schedules are read: {time.perf_counter() - began:.2f} s, {cpu_s() - before:.2f} CPU s")
    before, turns = cpu_s(), 200
    for _ in range(turns):
        scheduler.turn()
    print(f"a turn in which nothing is due: {(cpu_s() - before) / turns * 1e6:.0f} CPU µs")
    clock.ahead_s = 2 * 86400.0
    began, before = time.perf_counter(), cpu_s()
    while len(runs.begun) < count:
        scheduler.turn()
    wall, cpu = time.perf_counter() - began, cpu_s() - before
    print(f"all fire at once: {wall:.1f} s, {wall / count * 1e3:.2f} ms and {cpu / count * 1e6:.0f} CPU µs for each")
    scheduler.end()


def running_s(pid: int) -> float:
    """Return how long the threads of a process ran, to the nanosecond; its CPU times are counted in hundredths."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def idle(folder: Path, idle_s: float) -> None:
    command = [sys.executable, "-m", "cargobike.pipelines.scheduling", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        popen.stdout.readline()
        process = psutil.Process(popen.pid)
        time.sleep(5)
        before, began = running_s(popen.pid), time.perf_counter()
        time.sleep(idle_s)
        used, passed = running_s(popen.pid) - before, time.perf_counter() - began
        memory = process.memory_full_info()
        print(
            f"idle for {passed:.0f} s: {used / passed * 100:.3f} % of a processor, {memory.rss / 2**20:.0f} MiB RSS, "
            f"{memory.pss / 2**20:.0f} MiB PSS"
        )
        popen.terminate()


if __name__ == "__main__":
    main()
