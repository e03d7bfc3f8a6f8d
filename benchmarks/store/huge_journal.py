"""A journal of gigabytes: what it takes to write it, read it, list it, show it, resume it, and read one curve of it.

    python benchmarks/store/huge_journal.py --megabytes 1000  # in a temporary folder, removed afterwards
    python benchmarks/store/huge_journal.py --megabytes 10000 --folder /big/disk
    python benchmarks/store/huge_journal.py --folder /big/disk --keep --only write  # in parts
    python benchmarks/store/huge_journal.py --folder /big/disk --keep --only ls --only show

A real experiment is launched whose trials do nothing; then its journal is made long, by 2,000 reports of eight metrics
of each, and left as by a driver that was killed. Readers are the real commands in fresh processes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from zlib import crc32

from cargobike.core.facts import encode_fact
from cargobike.core.layout import ProjectFolder
from cargobike.journals import ExperimentEnded, Reported, TrialEnded, read_journal
from cargobike.store.journal.lines import Link, seal_all

POINTS = 2000
_KINDS = 10
_METRICS = ("loss", "accuracy", "val_loss", "val_accuracy", "lr", "grad_norm", "rows_per_s", "epoch_s")
_BYTES_OF_A_TRIAL = 376 * POINTS
COMMAND = [sys.executable, "-P", "-c", "from cargobike.cli import main; main()"]

PROGRAM = """
import sys
from cargobike import Searchspace, experiment

def train(lr, layers, act):
    return lr

if __name__ == "__main__":
    space = Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"), layers=("INTEGER", [1, 5]), act=["relu", "gelu"])
    count = int(sys.argv[1])
    asked = dict(optimizer="random", metric="loss", workers=2, isolation="reuse", quiet=True)
    experiment.launch(train, space, num_trials=count, **asked)
"""
CURVE = """
import sys, time
from pathlib import Path
from cargobike.core.layout import ProjectFolder
from cargobike.journals import read_record
from cargobike.results import Result
experiment = ProjectFolder(Path(sys.argv[1])).experiment(sys.argv[2])
record = read_record(experiment)
print(f"{len(record.trials):,} trials", end="; ")
result = Result.from_record(record, experiment)
begun = time.perf_counter()
found = result.trials[len(result.trials) // 2].curves
print(f"{1000 * (time.perf_counter() - begun):.1f} ms for {len(found['loss'])} points")
"""


def lengthen(journal: Path) -> None:
    """Let every trial of a journal have reported, and the driver be gone before the end."""
    short = [fact for fact in read_journal(journal) if not isinstance(fact, ExperimentEnded)]
    curves = [_points(kind) for kind in range(_KINDS)]
    link = Link()
    with journal.open("wb") as file:
        for fact in short:
            if isinstance(fact, TrialEnded):
                lines, link = _reports(fact, curves[fact.trial % _KINDS], link)
                file.write(lines)
            lines, link = seal_all([fact], link)
            file.write(lines)


def _points(kind: int) -> list[bytes]:
    """Return what the reports of a trial say, as their lines have it."""
    points = list[bytes]()
    for step in range(POINTS):
        loss = math.exp(-step * (1 + kind) / 1000)
        fact = Reported(at=0.0, trial=0, step=step, metrics=dict.fromkeys(_METRICS, loss), number=step + 1)
        points.append(encode_fact(fact).partition(b'"trial":0')[2].rpartition(b"0.0")[0])
    return points


def _reports(end: TrialEnded, points: list[bytes], link: Link) -> tuple[bytes, Link]:
    """Return the lines of a trial's reports, put together by hand: a journal of 10 GB has 50 million of them."""
    line, crc = link
    begin, at = b'{"fact":"reported","trial":%d' % end.trial, repr(end.at).encode()
    lines = list[bytes]()
    for point in points:
        line += 1
        body = b'%b%b%b,"line":%d,"prev":"%b"' % (begin, point, at, line, crc)
        crc = b"%08x" % crc32(body)
        lines.append(b'%b,"crc":"%b"}\n' % (body, crc))
    return b"".join(lines), Link(line, crc)


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


def write(folder: Path, megabytes: int) -> None:
    """Launch an experiment, and make its journal long."""
    trials = max(2, megabytes * 1_000_000 // _BYTES_OF_A_TRIAL)
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "program.py", str(trials)], cwd=folder, check=True)
    begun, (journal,) = time.process_time(), ProjectFolder(folder / "project").journals
    lengthen(journal)
    shutil.rmtree(folder / "project" / "index", ignore_errors=True)
    size = journal.stat().st_size / 1e6
    print(f"{size:,.0f} MB, {trials:,} trials, written in {time.process_time() - begun:.0f} CPU s\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where to make a temporary one; with --keep, this one")
    parser.add_argument("--keep", action="store_true", help="use what --folder holds, and remove nothing")
    parser.add_argument("--only", choices=["write", "ls", "show", "read", "resume"], action="append")
    options = parser.parse_args()
    wanted = options.only or ["write", "ls", "show", "read", "resume"]
    folder = options.folder if options.keep else Path(tempfile.mkdtemp(prefix="huge-journal-", dir=options.folder))
    folder.mkdir(exist_ok=True)
    try:
        os.environ["CARGOBIKE_PROJECT"] = str(folder / "project")
        if "write" in wanted:
            write(folder, options.megabytes)
        (journal,) = ProjectFolder(folder / "project").journals
        print("| what | s | CPU s | peak MB | said last |\n| --- | ---: | ---: | ---: | --- |", flush=True)
        if "ls" in wanted:
            run("`ls`, the first time", *COMMAND, "ls")
            run("`ls` again", *COMMAND, "ls")
        if "show" in wanted:
            run("`show last`", *COMMAND, "show", "last")
        if "read" in wanted:
            read = [sys.executable, "-c", CURVE, str(folder / "project"), journal.parent.name]
            run("read whole, then a curve of one trial", *read)
        if "resume" in wanted:
            trials = json.loads(subprocess.check_output([*COMMAND, "show", "last", "--json"]))["trials"] + 2
            os.chdir(folder)
            run("`resume` for two more trials", *COMMAND, "resume", "last", "--num-trials", str(trials))
    finally:
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
