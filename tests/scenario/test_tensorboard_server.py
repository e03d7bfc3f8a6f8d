"""Metrics and hyperparameters are in TensorBoard without a line of user code, and no server outlives its owner."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cargobike import experiment, tensorboard, trial
from cargobike.core.errors import EngineError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.tensorboard.curves_view import write_curves
from cargobike.experiments.tensorboard.server import TensorboardServer
from support.scripts import environment

pytest.importorskip("tensorboard")

PATIENCE_S = 90.0


def ask(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def wait_until(get: Callable[[], Any], is_enough: Callable[[Any], bool]) -> Any:
    """Ask until the answer will do: TensorBoard looks for new data every other second."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        found = get()
        if is_enough(found):
            return found
        assert time.monotonic() < give_up_at, found
        time.sleep(0.1)


def train_with_curves(lr: float, act: str) -> dict[str, float]:
    for step in range(4):
        trial.report(accuracy=lr * step, step=step)
    if (lr, act) == (0.1, "relu"):
        sys.modules["tensorboard.compat.notf"] = types.ModuleType("notf")  # a summary needs no TensorFlow
        # By name, so that workers do not import it for every test of this file.
        summaries = importlib.import_module("torch.utils.tensorboard")
        with summaries.SummaryWriter(tensorboard.logdir()) as writer:
            writer.add_scalar("own/loss", 0.25, 3)
    return {"accuracy": lr * 10, "size": 3}


def test_reported_metrics_hyperparameters_and_own_files_are_shown() -> None:
    space = {"lr": [0.1, 0.2], "act": ["relu", "gelu"]}
    result = experiment.launch(train_with_curves, space, metric="accuracy", quiet=True)
    folder = ExperimentFolder(result.folder)
    with TensorboardServer(write_curves(folder), [folder]) as board:
        address = board.address()
        assert address.startswith("http://127.0.0.1:")
        wanted = {"0000", "0001", "0002", "0003", "0000/own"}
        runs = wait_until(lambda: ask(address, "data/runs"), lambda runs: len(runs) >= 5)
        assert set(runs) == wanted
        points = ask(address, "data/plugin/scalars/scalars?run=0002&tag=accuracy")
        assert [(step, round(value, 5)) for _, step, value in points] == [(0, 0.0), (1, 0.2), (2, 0.4), (3, 0.6)]
        for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{address.rsplit(':')[-1]}", ""):
            with pytest.raises(urllib.error.HTTPError, match="421"):
                urllib.request.urlopen(
                    urllib.request.Request(f"{address}data/runs", headers={"host": host}), timeout=30
                )
        ((_, step, value),) = ask(address, "data/plugin/scalars/scalars?run=0000/own&tag=own/loss")
        assert (step, value) == (3, 0.25)

        hparams = "experiment/defaultExperimentId/data/plugin/hparams/"
        known = ask(address, hparams + "experiment", {})
        assert {one["name"] for one in known["hparamInfos"]} == {"lr", "act"}
        metrics = [{"name": one["name"]} for one in known["metricInfos"]]
        assert {"group": "", "tag": "final/size"} in [one["name"] for one in metrics]
        asked = {"startIndex": 0, "sliceSize": 10, "colParams": [{"metric": one["name"]} for one in metrics]}
        groups = ask(address, hparams + "session_groups", {**asked, "allowedStatuses": ["STATUS_SUCCESS"]})
        shown = {
            group["name"]: (group["hparams"], {one["name"]["tag"]: one["value"] for one in group["metricValues"]})
            for group in groups["sessionGroups"]
        }
        assert set(shown) == {"0000", "0001", "0002", "0003"}
        assert shown["0003"][0] == {"lr": 0.2, "act": "gelu"}
        assert shown["0003"][1]["final/accuracy"] == pytest.approx(2.0)
    assert board.has_ended


def train_and_look(x: int) -> float:
    """Find the trial's own report on the server, while it runs."""
    trial.report(score=x, step=1)
    place = Path(trial.logdir).parents[2] / "tensorboard" / "address"
    address = wait_until(lambda: place.exists() and place.read_text(), bool)

    def points() -> Any:
        try:
            return ask(str(address), f"data/plugin/scalars/scalars?run={trial.id}&tag=score")
        except urllib.error.HTTPError:
            return []

    return float(wait_until(points, bool)[0][2])


def test_a_search_has_its_own_server_while_it_runs() -> None:
    result = experiment.launch(train_and_look, {"x": [7]}, tensorboard=True, quiet=True)
    assert result.best is not None
    assert result.best.metric == 7
    assert not (ExperimentFolder(result.folder).tensorboard / "address").exists()


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_no_server_outlives_the_command_that_started_it(way: signal.Signals, tmp_path: Path) -> None:
    experiment.launch(lambda x: x, {"x": [1]}, quiet=True)
    command = [sys.executable, "-m", "cargobike.cli", "tensorboard"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path) as owner:
        assert owner.stdout is not None
        line = owner.stdout.readline()
        address = line.split()[2]
        assert len(wait_until(lambda: ask(address, "data/runs"), bool)) == 1
        below = psutil.Process(owner.pid).children(recursive=True)
        assert below
        os.kill(owner.pid, way)
        owner.wait(60)
        _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
    with pytest.raises(urllib.error.URLError):
        ask(address, "data/runs")


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with TensorboardServer(tmp_path, []) as first:
        port = int(first.address().rpartition(":")[2].strip("/"))
        with TensorboardServer(tmp_path, [], port=port) as second, pytest.raises(EngineError, match=str(port)):
            second.address()
