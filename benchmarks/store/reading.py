"""What readers wait for after a long search.

    python benchmarks/store/reading.py lists COUNT fed     # or unfed
    python benchmarks/store/reading.py curves POINTS

The journal of the search is written at the pace of a driver whose trials do nothing, with the process beside it that
feeds the index, or without. Readers are the real commands, each in a fresh process.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from rig.answers import answer, folder

sys.path.insert(0, str(Path(__file__).resolve().parent))

from long_journals import EXPERIMENT, facts, make_project

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.driving.feeding import IndexFeeder
from cargobike.journals import Fact, JournalWriter, read_record
from cargobike.results import Result
from cargobike.store.files.locking import DriverLock

FACTS_PER_S = 5000.0
COMMAND = [sys.executable, "-P", "-c", "from cargobike.cli import main; main()"]
PATIENCE_S = 120.0


def lists(count: str, how: str) -> None:
    project = ProjectFolder(Path(folder()) / "project")
    os.environ["CARGOBIKE_PROJECT"] = str(project.root)
    _search(project, int(count), is_fed=how == "fed")
    ls_s, ls_cpu_s = _run("ls")
    show_s, show_cpu_s = _run("show", "last")
    answer(ls_s=ls_s, ls_cpu_s=ls_cpu_s, show_s=show_s, show_cpu_s=show_cpu_s, page_s=_first_page())


def curves(points: str) -> None:
    root = Path(folder()) / "project"
    make_project(root, int(points) // 100, 100)
    experiment = ProjectFolder(root).experiment(EXPERIMENT)
    result = Result.from_record(read_record(experiment), experiment)
    spent = list[float]()
    for number in range(3, len(result.trials), max(1, len(result.trials) // 20)):
        begun = time.perf_counter()
        found = result.trials[number].curves
        spent.append(time.perf_counter() - begun)
        assert len(found["loss"]) == 100
    answer(curves_ms=1000 * statistics.median(spent))


def _search(project: ProjectFolder, trials: int, *, is_fed: bool) -> None:
    """Write the journal of a search as its driver would."""
    experiment = project.experiment(EXPERIMENT)
    experiment.root.mkdir(parents=True)
    feeder = IndexFeeder(experiment)
    batch, written, begun = list[Fact](), 0, time.monotonic()
    with DriverLock(experiment), JournalWriter(experiment.journal) as journal:
        for fact in facts(trials, 0, 2):
            batch.append(fact)
            if len(batch) < 100:
                continue
            journal.append(batch)
            if is_fed:
                feeder.on_facts(batch)
                written += len(batch)
                time.sleep(max(0.0, written / FACTS_PER_S - (time.monotonic() - begun)))
            batch = []
        journal.append(batch)
        feeder.close()


def _run(*arguments: str) -> tuple[float, float]:
    """Run a command; returns how long it took, and the processor time."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _first_page() -> float:
    """Start the dashboard; returns how long its first page takes once it listens."""
    command = [*COMMAND, "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            _wait_for(address)
            begun = time.perf_counter()
            with urllib.request.urlopen(address, timeout=PATIENCE_S) as page:
                assert EXPERIMENT.encode() in page.read()
            return time.perf_counter() - begun
        finally:
            server.terminate()


def _wait_for(address: str) -> None:
    """Wait until a server answers at all."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        try:
            with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
                connection.sendall(
                    f"GET /nothing HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()
                )
                if connection.recv(1):
                    return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"{address} did not answer within {PATIENCE_S:g} s")


if __name__ == "__main__":
    if sys.argv[1] == "lists":
        lists(*sys.argv[2:])
    else:
        curves(*sys.argv[2:])
