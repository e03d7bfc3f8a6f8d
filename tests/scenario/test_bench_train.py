"""`cargobike bench train`, for real: every way, a few steps each."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app
from support.scripts import environment

STEP = re.compile(r"^(\d+) +images/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\) +(\d+\.\d+)$", re.MULTILINE)


def call(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["bench", "train", *words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, Any]]:
    """Every way on the smallest network, by its word."""
    told = json.loads(call("--model", "mnist", "--steps", "12", "--warmup", "1", "--batch", "16", "--json").stdout)
    assert told["settings"]["batch"] == 16
    return {run["case"]["way"]: run for run in told["runs"]}


def test_every_way_is_measured(runs: dict[str, dict[str, Any]]) -> None:
    assert list(runs) == ["one", "allreduce", "ps-sync", "ps-async", "local-sgd"]
    assert [run["case"]["workers"] for run in runs.values()] == [1, 2, 2, 2, 2]
    for run in runs.values():
        assert run["images_per_s"] > 0
        assert 0 <= run["communication"] < 1
        assert [step for step, _, _ in run["curve"]] == [1, 10, 12]
        seconds = [at for _, at, _ in run["curve"]]
        assert seconds == sorted(seconds)


def test_what_is_sent_is_what_the_way_needs(runs: dict[str, dict[str, Any]]) -> None:
    whole = 4 * 1_863_690
    sent = {way: run["sent_bytes"] for way, run in runs.items()}
    assert sent["one"] == 0
    assert sent["allreduce"] == sent["ps-sync"] == sent["ps-async"] == whole
    assert sent["local-sgd"] < whole / 10  # every sixteenth step at most


def test_synchronous_ways_learn_the_same(runs: dict[str, dict[str, Any]]) -> None:
    """A mean of gradients is the same wherever it is taken; and twice the rows are not what one process sees."""
    allreduce, server = runs["allreduce"]["loss"], runs["ps-sync"]["loss"]
    assert server == pytest.approx(allreduce, rel=1e-3)
    assert runs["one"]["loss"] != pytest.approx(allreduce, rel=1e-4)


def test_only_servers_know_of_delays(runs: dict[str, dict[str, Any]]) -> None:
    assert [way for way, run in runs.items() if run["delay"] is not None] == ["ps-sync", "ps-async"]
    assert runs["ps-sync"]["dropped"] == 0


def test_the_report_has_the_shape_people_know_and_the_page_its_figures(tmp_path: Path) -> None:
    page = tmp_path / "bench.html"
    output = call(
        *("--model", "mnist", "--way", "allreduce", "--workers", "1", "--workers", "2"),
        *("--steps", "10", "--warmup", "0", "--batch", "8", "--report", str(page)),
    ).stdout
    assert [int(step) for step, _ in STEP.findall(output)] == [1, 10, 1, 10]
    assert len(re.findall(r"^total images/sec: \d+\.\d\d$", output, re.MULTILINE)) == 2
    assert "[2/2] mnist · all-reduce · 2 workers · 1,863,690 parameters" in output
    assert f"Figures: {page}" in output
    assert 'data-figure="workers-mnist"' in page.read_text()
    assert [experiment.load(each).name for each in experiment.list()] == [
        "bench mnist allreduce 1",
        "bench mnist allreduce 2",
    ]


@pytest.mark.parametrize(
    "words", [("--model", "cifar"), ("--way", "gossip"), ("--steps", "0"), ("--workers", "0"), ("--batch", "many")]
)
def test_wrong_calls_say_what_is_allowed(words: tuple[str, ...]) -> None:
    assert "Usage:" in call(*words, code=2).stderr
    assert experiment.list() == []


def test_ctrl_c_tells_what_was_measured(tmp_path: Path) -> None:
    words = ["bench", "train", "--model", "mnist", "--way", "one", "--way", "allreduce", "--batch", "8"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cargobike.cli", *words, "--steps", "20000"],
        cwd=tmp_path,
        env={**environment(), "CARGOBIKE_PROJECT": str(tmp_path / "project"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if STEP.match(line.rstrip("\n")):
                break
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "Interrupted after 0 of 2 runs." in errors
