"""The dashboard of a project with 10,000 things of each kind: how long each page takes.

    python benchmarks/ui/many_objects.py                        # some minutes, most of them for writing the project
    python benchmarks/ui/many_objects.py --count 500            # does it work?
    python benchmarks/ui/many_objects.py --data FOLDER          # keep the project, or take the one that is there

One thing of each kind is made through the front door, and copied under other names. The index of experiments is made
before, as experiments do it one by one. `first` is the first answer of a server that was just started, and has read
nothing: a list that is not there after a second is announced, and comes later. `later` are medians when everything was
read once, and `worst` the longest of them, with the lists, cards and edges made again in the background meanwhile. A
page that takes long on a busy machine says nothing: believe the figures of a quiet one, and their order.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig import findings
from rig.machine import facts as machine_facts

from cargobike import data, features, models
from cargobike import project as project_door
from cargobike.core.facts import ExperimentEnded
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.opening import open_index
from cargobike.monitoring.facts import MonitorStarted, Watched, WatcherEnded
from cargobike.monitoring.record import folder_of as monitor_folder
from cargobike.pipelines.facts import RunEnded, RunStarted, RunState
from cargobike.serving.facts import DeploymentStarted
from cargobike.serving.specification import Specification
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

PORT = 18530
START_S = 1_790_000_000.0
FIRST = "thing00000"
PAGES = (
    "/",
    "/experiments",
    "/data",
    "/features",
    "/feature-views",
    "/training-datasets",
    "/models",
    "/deployments",
    "/monitors",
    "/pipelines",
    "/models?words=thing09",
    "/monitors?offset=9900",
    "/search?q=thing09",
    "/search?q=spending",
    "/api/v1/search?q=thing0999",
    "/lineage/group/thing00000",
    "/data/thing00000:1",
    "/features/thing00000",
    "/models/thing00000/1",
    "/deployments/thing00000",
    "/monitors/thing00000",
)
SETTLED_S = 120.0
UNREAD = (b'http-equiv="refresh"', b"data-unread", b"Not everything was listed yet")
"""What pages say as long as something of them is being read for the first time."""


def twice(rows: list[float]) -> list[float]:
    return [2 * row for row in rows]


def make_one(root: Path) -> None:
    """Make one thing of each kind that is copied as files."""
    project_door.use(root)
    data.write({"amount": [1.0, 2.0], "account": [1, 2]}, FIRST)
    group = features.create_group(FIRST, key="account", event_time="at", description="Spending", tags=["money"])
    group.insert({"account": [1, 2], "at": ["2026-01-01"] * 2, f"{FIRST}_spent": [10.0, 4.0]})
    view = features.create_view(FIRST, features=[f"{FIRST}_spent"], label="value")
    view.create_training_dataset(FIRST, {"account": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]})
    models.register(FIRST, twice, metrics={"accuracy": 0.9}, example=[1.0], tags=["vision"], description="Sees digits")
    project_door.use(None)


def copy_files(root: Path, count: int) -> None:
    """Copy what describes the first thing of each kind, not its rows, under other names."""
    described = [
        *root.glob(f"data/{FIRST}/*/manifest.json"),
        *root.glob(f"features/{FIRST}.*.json"),
        *root.glob(f"views/{FIRST}/**/*.json"),
        *root.glob(f"datasets/{FIRST}/*/*.json"),
        *root.glob(f"models/{FIRST}/*/manifest.json"),
        root / "models" / "_names" / FIRST,
    ]
    contents = {file.relative_to(root): file.read_bytes() for file in described}
    for number in range(1, count):
        name = f"thing{number:05}"
        for path, content in contents.items():
            target = root / str(path).replace(FIRST, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.replace(FIRST.encode(), name.encode()))


def write_journals(project: ProjectFolder, count: int) -> None:
    """Write the journals of experiments, deployments, monitors and runs."""
    for number in range(count):
        name, at = f"thing{number:05}", START_S + 60 * number
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(at))
        folder = project.experiment(f"{stamp}-bench")
        started = first_fact(at=at, id=folder.id, name=name, description="A search", function="train.py:train")
        _journal(folder.journal, started, ExperimentEnded(at=at + 30, state="completed"))
        run = f"{stamp}-run{number:05}"
        _journal(
            project.root / "runs" / run / "journal.jsonl",
            RunStarted(at=at, id=run, pipeline=f"retrain{number % 100}"),
            RunEnded(at=at + 5, state=RunState.COMPLETED),
        )
        watched = MonitorStarted(at=at, id=name, watched=Watched(subject=name))
        _journal(monitor_folder(project, name).journal, watched, WatcherEnded(at=at + 9, reason="stopped"))
        _journal(
            project.root / "deployments" / name / "journal.jsonl",
            DeploymentStarted(at=at, id=name, specification=Specification(name=name, model=name)),
        )


def _journal(path: Path, *facts: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with JournalWriter(path) as journal:
        journal.append(facts)


def ask(path: str) -> float:
    """Return how long an answer took, in seconds."""
    return ask_whole(path)[0]


def ask_whole(path: str) -> tuple[float, bool]:
    """Return how long an answer took, in seconds, and whether everything is in it that it is about."""
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=300) as answer:
        text = answer.read()
    return time.perf_counter() - began, not any(sign in text for sign in UNREAD)


def _all_there() -> bool:
    """Ask for every page, and tell whether all had everything."""
    answers = [ask_whole(path) for path in PAGES]
    return all(is_whole for _, is_whole in answers)


def measure(root: Path, rounds: int) -> tuple[dict[str, tuple[float, float, float]], float]:
    """Start a server and ask it for every page: first, then again; returns also how long all was read, in seconds."""
    command = [sys.executable, "-m", "cargobike.cli", "--project", str(root), "ui", "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                ask("/healthz")
                break
            except OSError:
                time.sleep(0.1)
        first = {path: ask(path) for path in PAGES}
        began = time.monotonic()
        while time.monotonic() - began < SETTLED_S and not _all_there():
            time.sleep(0.2)
        settled_s = time.monotonic() - began
        later: dict[str, list[float]] = {path: [] for path in PAGES}
        for _ in range(rounds):
            for path in PAGES:
                later[path].append(ask(path))
    finally:
        server.terminate()
        server.wait(20)
    return {path: (first[path], statistics.median(later[path]), max(later[path])) for path in PAGES}, settled_s


def judged(figures: dict[str, tuple[float, float, float]], count: int, settled_s: float) -> list[findings.Target]:
    """Return what was found beside what is wanted."""
    each = f"with {count:,} things of each kind"
    lists = [path for path in PAGES if path.count("/") == 1 and path != "/" and "search" not in path]
    searches = [path for path in PAGES if "search" in path]
    return [
        findings.at_most(f"the start page {each}", figures["/"][1], 1, " s"),
        findings.at_most("the slowest of all lists", max(figures[path][1] for path in lists), 0.5, " s"),
        findings.at_most("the slowest search", max(figures[path][1] for path in searches), 0.5, " s"),
        findings.at_most("the lineage of a group", figures["/lineage/group/thing00000"][1], 0.5, " s"),
        findings.at_most("the longest of all answers", max(worst for _, _, worst in figures.values()), 1, " s"),
        findings.at_most("the longest first answer of a server", max(one for one, *_ in figures.values()), 3, " s"),
        findings.at_most("everything was read once after", settled_s, 60, " s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    root = asked.data or Path(tempfile.mkdtemp(prefix="cargobike-many-"))
    try:
        if not (root / "runs").exists():
            root.mkdir(parents=True, exist_ok=True)
            make_one(root)
            copy_files(root, asked.count)
            write_journals(ProjectFolder(root), asked.count)
            with open_index(ProjectFolder(root)) as index:
                index.sync()
        figures, settled_s = measure(root, asked.rounds)
    finally:
        if asked.data is None:
            shutil.rmtree(root, ignore_errors=True)
    print(f"{asked.count:,} things of each kind; {machine_facts()}")
    print(f"{'page':<28}{'first, s':>10}{'later, s':>10}{'worst, s':>10}")
    for path, (first, later, worst) in figures.items():
        print(f"{path:<28}{first:>10.3f}{later:>10.3f}{worst:>10.3f}")
    print(f"everything was there {settled_s:.0f} s after each page was asked for once")
    findings.hand_on("many-objects", judged(figures, asked.count, settled_s))
    if asked.json:
        asked.json.write_text(json.dumps({"count": asked.count, "pages": figures}, indent=1))


if __name__ == "__main__":
    main()
