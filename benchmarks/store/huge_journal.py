"""A journal of gigabytes: what it takes to write it, read it, list it, show it, resume it, and read one curve of it.

    python benchmarks/store/huge_journal.py --megabytes 1000  # in a temporary folder, removed afterwards
    python benchmarks/store/huge_journal.py --megabytes 10000 --folder /big/disk

A real experiment is launched whose trials do nothing; then its journal is made long, by 2,000 reports of each, and left
as by a driver that was killed. Readers are the real commands in fresh processes.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cargobike.core.layout import ProjectFolder
from cargobike.journals import ExperimentEnded, Fact, JournalWriter, Reported, TrialEnded, read_journal

POINTS = 2000
_BYTES_OF_A_TRIAL = 185 * POINTS
COMMAND = [sys.executable, "-P", "-c", "from cargobike.cli import main; main()"]

PROGRAM = """
import sys
from cargobike import Searchspace, experiment

def train(lr, layers, act):
    return lr

if __name__ == "__main__":
    space = Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"), layers=("INTEGER", [1, 5]), act=["relu", "gelu"])
    count = int(sys.argv[1])
    experiment.launch(train, space, optimizer="random", num_trials=count, workers=2, isolation="reuse", quiet=True)
"""
READ = """
import sys
from pathlib import Path
from cargobike.core.layout import ProjectFolder
from cargobike.journals import read_record
record = read_record(ProjectFolder(Path(sys.argv[1])).experiment(sys.argv[2]))
print(len(record.trials))
"""
CURVE = """
import sys, time
from pathlib import Path
from cargobike.core.layout import ProjectFolder
from cargobike.journals import read_record
from cargobike.results import Result
experiment = ProjectFolder(Path(sys.argv[1])).experiment(sys.argv[2])
result = Result.from_record(read_record(experiment), experiment)
begun = time.perf_counter()
found = result.trials[len(result.trials) // 2].curves
print(f"{1000 * (time.perf_counter() - begun):.1f} ms for {len(found['loss'])} points")
"""


def lengthen(journal: Path) -> None:
    """Let every trial of a journal have reported, and the driver be gone before the end."""
    short = [fact for fact in read_journal(journal) if not isinstance(fact, ExperimentEnded)]
    journal.unlink()
    with JournalWriter(journal) as writer:
        for fact in short:
            if isinstance(fact, TrialEnded):
                writer.append(_reports(fact))
            writer.append([fact])


def _reports(end: TrialEnded) -> list[Fact]:
    found: list[Fact] = []
    for step in range(POINTS):
        loss = math.exp(-step * (1 + end.trial % 10) / 1000)
        found.append(
            Reported(
                at=end.at, trial=end.trial, step=step, metrics={"accuracy": 1 - loss, "loss": loss}, number=step + 1
            )
        )
    return found


def run(what: str, *command: str) -> None:
    """Run a command and print what it took."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.read().strip().splitlines()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    last = said[-1][:60] if said else ""
    cpu_s = used.ru_utime + used.ru_stime
    took = f"{time.perf_counter() - begun:.1f} | {cpu_s:.1f} | {used.ru_maxrss / 1024:.0f}"
    print(f"| {what} | {took} | {last if process.returncode == 0 else f'FAILED: {last}'} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="huge-journal-", dir=options.folder))
    try:
        os.environ["CARGOBIKE_PROJECT"] = str(folder / "project")
        trials = max(2, options.megabytes * 1_000_000 // _BYTES_OF_A_TRIAL)
        (folder / "program.py").write_text(PROGRAM)
        subprocess.run([sys.executable, "program.py", str(trials)], cwd=folder, check=True)
        project = ProjectFolder(folder / "project")
        name = next(path.name for path in (folder / "project").glob("experiments/*"))
        begun, journal = time.process_time(), project.experiment(name).journal
        lengthen(journal)
        shutil.rmtree(folder / "project" / "index", ignore_errors=True)
        size = journal.stat().st_size / 1e6
        print(f"{size:,.0f} MB, {trials:,} trials, written in {time.process_time() - begun:.0f} CPU s\n", flush=True)
        print("| what | s | CPU s | peak MB | said last |\n| --- | ---: | ---: | ---: | --- |", flush=True)
        arguments = [str(folder / "project"), name]
        run("`ls`, the first time", *COMMAND, "ls")
        run("`ls` again", *COMMAND, "ls")
        run("`show last`", *COMMAND, "show", "last")
        run("read whole", sys.executable, "-c", READ, *arguments)
        run("a curve of one trial, after that", sys.executable, "-c", CURVE, *arguments)
        os.chdir(folder)
        run("`resume` for two more trials", *COMMAND, "resume", "last", "--num-trials", str(trials + 2))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
