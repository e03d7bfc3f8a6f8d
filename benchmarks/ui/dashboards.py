"""Dashboards at 10,000 trials and 1,000,000 points: ours, MLflow's and optuna-dashboard's, on the same data.

    python benchmarks/ui/dashboards.py                          # about ten minutes; peers get venvs in .venvs/
    python benchmarks/ui/dashboards.py --quick                  # 500 trials: does it work?
    python benchmarks/ui/dashboards.py --only cargobike --json out.json

Every server is asked over HTTP on this machine, in rounds in which each has its turn. `first` is the first answer after
the server was started (everything must still be read), the others are medians of later ones. A page's time runs from
the request to the first contentful paint, and to the first row or figure with data in it, in a Chromium with an empty
cache. Data is written into the peers' databases in bulk, through their own tables: only reading is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from data import METRIC, START_S, runs
from rig import findings
from rig.machine import facts as machine_facts
from rig.venvs import python_of

from cargobike.core.facts import (
    AnyFact,
    AttemptStarted,
    ExperimentEnded,
    Reported,
    TrialEnded,
    TrialSuggested,
)
from cargobike.core.layout import ProjectFolder
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

HERE = Path(__file__).resolve().parent
OURS = "20231114-221320-bigg"
PORTS = {"cargobike": 18520, "mlflow": 18521, "optuna-dashboard": 18522}
DATA = "data shown"
PATIENCE_S = 120.0
"""Who has not answered by then has not answered."""
SPACE: list[dict[str, Any]] = [
    {"name": "lr", "type": "DOUBLE", "low": 1e-4, "high": 1e-1, "scale": "log"},
    {"name": "layers", "type": "INTEGER", "low": 1, "high": 5},
    {"name": "act", "type": "CATEGORICAL", "values": ["relu", "gelu", "silu"]},
    {"name": "batch", "type": "DISCRETE", "values": [32, 64, 128]},
    {"name": "dropout", "type": "DOUBLE", "low": 0.0, "high": 0.5},
]


@dataclass
class System:
    """A dashboard: how its server is started, what it is asked, where its page is and what shows that it is there."""

    name: str
    command: list[str]
    questions: dict[str, tuple[str, dict[str, Any] | None]]
    page: str
    shown: str
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{PORTS[self.name]}"


def write_ours(root: Path, trials: int, points: int) -> None:
    now = START_S
    facts: list[AnyFact] = [
        first_fact(
            at=now, id=OURS, name="big", space=SPACE, optimizer="asha", num_trials=trials, metric=METRIC, workers=8
        )
    ]
    with JournalWriter(ProjectFolder(root).experiment(OURS).journal) as journal:
        for run in runs(trials, points):
            facts.append(TrialSuggested(at=now, trial=run.number, params=run.params))
            facts.append(AttemptStarted(at=now, trial=run.number, attempt=1, workers=(f"w{run.number % 8}",)))
            for step, value in enumerate(run.curve):
                now += 0.01
                facts.append(Reported(at=now, trial=run.number, step=step, metrics={METRIC: value}))
            state: Any = run.state
            facts.append(TrialEnded(at=now, trial=run.number, state=state, value=run.value))
            journal.append(facts)
            facts.clear()
        journal.append([ExperimentEnded(at=now, state="completed")])


def systems(folder: Path, trials: int, points: int, only: list[str]) -> Iterator[System]:
    """Yield the dashboards that were asked for, each with the data written."""
    root = HERE.parents[1]
    middle = trials // 2
    if not only or "cargobike" in only:
        if not (folder / "ours").exists():
            write_ours(folder / "ours", trials, points)
        api = f"/api/v1/experiments/{OURS}"
        yield System(
            "cargobike",
            [sys.executable, "-m", "cargobike.cli", "ui", "--port", str(PORTS["cargobike"])],
            {
                "100 best trials": (f"{api}/trials?sort=value&descending=true&limit=100", None),
                "one curve": (f"{api}/trials/{middle}/metrics", None),
                "curves of 100 trials": (f"{api}/figures/learning-curves?most=100", None),
                "best so far": (f"{api}/figures/best-so-far", None),
            },
            f"/experiments/{OURS}",
            "article[data-name=best-so-far] .main-svg",
            {"CARGOBIKE_PROJECT": str(folder / "ours")},
        )
    for peer, script in (("mlflow", "mlflow_data.py"), ("optuna-dashboard", "optuna_data.py")):
        if only and peer not in only:
            continue
        python = python_of(peer, root)
        database = folder / f"{peer}.sqlite"
        if not database.exists():
            subprocess.run(
                [str(python), str(HERE / script), str(database), str(trials), str(points)],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        program, port = str(python.parent / peer), str(PORTS[peer])
        if peer == "mlflow":
            ids = [uuid.UUID(int=number + 1).hex for number in range(100)]
            search = {"experiment_ids": ["1"], "max_results": 100, "order_by": [f"metrics.{METRIC} DESC"]}
            bulk = "&".join(f"run_ids={one}" for one in ids)
            yield System(
                peer,
                [program, "server", "--backend-store-uri", f"sqlite:///{database}", "--port", port, "--workers", "1"],
                {
                    "100 best trials": ("/api/2.0/mlflow/runs/search", search),
                    "one curve": (f"/api/2.0/mlflow/metrics/get-history?run_id={ids[50]}&metric_key={METRIC}", None),
                    "curves of 100 trials": (
                        f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?{bulk}&metric_key={METRIC}&max_results=320",
                        None,
                    ),
                },
                "/#/experiments/1/runs",
                r"text=/^trial \d+$/",
            )
        else:
            yield System(
                peer,
                [program, f"sqlite:///{database}", "--port", port],
                {"everything (its one question)": ("/api/studies/1?after=0", None)},
                "/dashboard/studies/1",
                ".main-svg",
            )


def ask(address: str, body: dict[str, Any] | None) -> tuple[float, int]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"} if data else {})
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


@contextmanager
def serving(system: System) -> Iterator[None]:
    with subprocess.Popen(
        system.command, env={**os.environ, **system.variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as server:  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    ask(f"{system.address}/healthz" if system.name == "cargobike" else system.address, None)
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{system.name} did not start") from None
                    time.sleep(0.1)
            yield
        finally:
            os.killpg(server.pid, 15)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, 9)


def painted(system: System) -> dict[str, float]:
    """Open the system's page in a browser with an empty cache; returns seconds."""
    from playwright.sync_api import TimeoutError, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_S * 1000)
        began = time.perf_counter()
        page.goto(f"{system.address}{system.page}", wait_until="commit")
        page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length > 0")
        first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        found = {"first paint": first}
        try:
            page.locator(system.shown).first.wait_for(state="visible", timeout=120_000)
            found[DATA] = time.perf_counter() - began
        except TimeoutError as error:
            print(f"{system.name} showed nothing: {error}", file=sys.stderr)
        browser.close()
    return found


def measure(found: list[System], rounds: int) -> dict[str, dict[str, list[float]]]:
    samples: dict[str, dict[str, list[float]]] = {system.name: {} for system in found}
    for number in range(rounds):
        for system in found:
            mine = samples[system.name]
            with serving(system):
                # In turn the page and the questions meet a server that has read nothing yet.
                if number % 2 == 0:
                    for name, seconds in painted(system).items():
                        mine.setdefault(f"page cold: {name}", []).append(seconds)
                for place, (name, (path, body)) in enumerate(system.questions.items()):
                    try:
                        seconds, size = ask(f"{system.address}{path}", body)
                        mine[f"{name}: kB"] = [size / 1000]
                        if number % 2 == 1 and place == 0:
                            mine.setdefault(f"{name}: first", []).append(seconds)
                        for _ in range(3):
                            mine.setdefault(name, []).append(ask(f"{system.address}{path}", body)[0])
                    except OSError as error:
                        print(f"{system.name}: {name}: {error}", file=sys.stderr)
                        mine.setdefault(name, []).append(math.inf)
                if number % 2 == 0:
                    for name, seconds in painted(system).items():
                        mine.setdefault(f"page warm: {name}", []).append(seconds)
            print(f"round {number + 1}: {system.name} done, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=list(PORTS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--data", type=Path, help="Keep the data here, and use what is there.")
    options = parser.parse_args()
    trials, points = (500, 20) if options.quick else (10_000, 100)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.data or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        found = list(systems(folder, trials, points, options.only))
        samples = measure(found, options.rounds)
    print(f"\n{trials:,} trials, {trials * points:,} points. {machine_facts()}\n")
    table(samples)
    findings.hand_on("dashboards", judged(samples))
    if options.json:
        options.json.write_text(json.dumps(samples, indent=2))


def judged(samples: dict[str, dict[str, list[float]]]) -> list[findings.Target]:
    """Return what was found beside what is wanted: no peer answers or shows the same data sooner."""

    def median(system: str, question: str) -> float | None:
        values = samples.get(system, {}).get(question)
        return statistics.median(values) if values else None

    targets = [
        findings.at_most("the page shows its figures at first", median("cargobike", f"page cold: {DATA}"), 5, " s"),
        findings.at_most("the page shows its figures, later", median("cargobike", f"page warm: {DATA}"), 1.5, " s"),
        findings.at_most("the 100 best of 10,000 trials", median("cargobike", "100 best trials"), 0.2, " s"),
    ]  # fmt: skip
    pairs = [
        ("mlflow", "100 best trials", "100 best trials"),
        ("mlflow", "curves of 100 trials", "curves of 100 trials"),
        ("mlflow", f"page warm: {DATA}", f"page warm: {DATA}"),
        ("optuna-dashboard", f"page warm: {DATA}", f"page warm: {DATA}"),
    ]
    for peer, question, theirs in pairs:
        ours, other = median("cargobike", question), median(peer, theirs)
        ratio = None if ours is None or other is None else other / ours
        targets.append(findings.at_least(f"{question}: sooner than {peer}", ratio, 1, " ×", gate=True))
    return targets


def table(samples: dict[str, dict[str, list[float]]]) -> None:
    """Print what was found."""
    print("| system | question | median s | range |\n| --- | --- | ---: | --- |")
    for system, questions in samples.items():
        for name, values in questions.items():
            if name.endswith(": kB"):
                continue
            size = questions.get(f"{name}: kB")
            note = f" ({size[0]:,.0f} kB)" if size else ""
            print(
                f"| {system} | {name}{note} | {statistics.median(values):.3f} | {min(values):.3f} … {max(values):.3f} |"
            )


if __name__ == "__main__":
    main()
