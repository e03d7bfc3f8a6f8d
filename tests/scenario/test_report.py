"""From a real search to what people look at: figures, importance, the report in a browser, a notebook's output."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.result import Result
from cargobike.search.optimizers.ablation import Ablation
from support import programs

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def train(lr: float, act: str) -> dict[str, float]:
    print("printed", act)
    for step in range(3):
        trial.report(score=lr * step, step=step)
    if act == HOSTILE and lr > 0.5:
        raise ValueError(f"cannot use {act}")
    return {"score": lr, "cost": 1 - lr}


@pytest.fixture(scope="module")
def result() -> Result:
    space = Searchspace(lr=("DOUBLE", [0.0, 1.0]), act=["relu", HOSTILE])
    return experiment.launch(train, space, metric="score", num_trials=24, workers=2, seed=4, quiet=True)


def test_a_result_has_figures_and_knows_what_matters(result: Result) -> None:
    found = result.importance()
    assert set(found.main) == {"lr", "act"}
    assert found.main["lr"] > 0.5 > found.main["act"]  # how much depends on the order in which two workers report
    assert result.importance(step=2).trials == 24
    line = result.plot.best_so_far().data[-1]
    assert result.best is not None
    assert line.y[-1] == result.best.metric
    assert {bar.name for bar in result.plot.timeline().data} == {"idle", "completed", "failed"}
    assert len(result.plot.learning_curves().data) > 2
    assert [line.name for line in result.plot.trial_curves(0).data] == ["score"]
    assert result.plot.pareto("score", "cost").layout.xaxis.title.text == "score (more is better)"
    with pytest.raises(InvalidInputError, match="is not an ablation"):
        result.ablation()


def test_a_loaded_experiment_is_reported_just_the_same(result: Result, tmp_path: Path) -> None:
    written = result.report(tmp_path / "one.html", pareto=[("score", "cost")])
    again = _loaded(result)
    assert again.report(tmp_path / "two.html", pareto=[("score", "cost")]).read_bytes() == written.read_bytes()


def _loaded(result: Result) -> Result:
    """Return the result as its folder tells it; the fixture outlives the project that each test has."""
    folder = ExperimentFolder(result.folder)
    return Result.from_record(read_record(folder), folder)


def test_a_notebook_shows_the_result(result: Result) -> None:
    shown = result._repr_html_()
    assert "<svg" in shown
    assert "<img" not in shown


def test_an_ablation_tells_what_each_part_is_worth() -> None:
    def train(lr: float, dropout: float, augment: bool) -> float:
        noise = trial.seed % 1000 / 1000
        return noise + (0.5 if dropout else 0.0) + (0.01 if augment else 0.0) + lr

    optimizer = Ablation({"lr": 0.1, "dropout": 0.3, "augment": True}, {"augment": False, "dropout": 0.0}, repeats=3)
    result = experiment.launch(train, optimizer=optimizer, workers=2, quiet=True)
    table = result.ablation()
    assert [row.component for row in table] == ["dropout", "augment"]
    assert [row.difference for row in table] == pytest.approx([-0.5, -0.01])
    assert all(row.is_clear for row in table), "rounds share a seed, so the noise of both sides is the same"
    assert {mark.name for mark in result.plot.ablation().data} == {"worse without it"}


@pytest.mark.timeout(300)  # drawing without a GPU takes a browser seconds, and minutes on a machine that is busy
def test_a_browser_draws_the_report_and_runs_nothing_else(result: Result, tmp_path: Path) -> None:
    page = result.report(tmp_path / "report.html")
    dom = _rendered(page, tmp_path)
    figures = re.findall(r'data-figure="([\w-]+)"', dom)
    assert figures
    # Each drawn figure has its own main drawing; a script that broke would leave bare places.
    assert dom.count('class="main-svg"') >= len(figures)
    assert len(re.findall(r"<tr[ >]", dom)) >= 1 + 24
    assert "24 of 24 trials" in dom
    assert "<title>train · report</title>" in dom
    assert '<img src="x"' not in dom


def _rendered(page: Path, tmp_path: Path) -> str:
    """Return the page's elements after a browser has run its scripts, all of it being in view."""
    command: list[Any] = [
        programs.require("chromium"), "--headless", "--no-sandbox",
        "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--enable-unsafe-swiftshader", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,6000",
        "--virtual-time-budget=10000", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)
    return done.stdout


def test_the_data_of_the_page_can_be_read_by_a_program(result: Result, tmp_path: Path) -> None:
    text = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="table-data">(.*?)</script>', text, re.DOTALL)
    table = json.loads(data)
    assert [row[0] for row in table["rows"]] == list(range(24))
    assert "last lines on stdout" in text
    assert "printed &lt;img" in text
