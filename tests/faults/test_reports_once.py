"""Every report is in the curves once, whatever is reported and however often, if agents and drivers are killed.

What a function reports is known from its script; the journal is read with a parser that shares no code with ours.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, trial
from faults.chaos.outside import facts_of, whole_lines
from faults.chaos.ways import WAYS, script
from support.watching import Script, ancestors

MOMENTS = (0.3, 0.55, 0.9)
"""At which share of its script each attempt loses its agent; the last attempt is spared."""


def curves_of(way: str, x: float, y: int) -> dict[str, list[tuple[int, float]]]:
    """Return what the curves of a trial must be."""
    curves: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for action in script(way, x, y):
        if action is not None:
            for name, value in action[1].items():
                curves[name].append((action[0] or 0, value))
    return dict(curves)


def numbers_of(path: Path) -> dict[int, list[int]]:
    """Return the numbers of the reports of each trial, without those in whose place there are others."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for fact in facts_of(whole_lines(path)):
        if fact["fact"] == "reported":
            mine = numbers[fact["trial"]]
            numbers[fact["trial"]] = [*(number for number in mine if number < fact["number"]), fact["number"]]
    return numbers


@pytest.mark.parametrize("way", list(WAYS))
def test_agents_die_and_every_report_is_there_once(way: str) -> None:
    def train(x: float, y: int) -> float | dict[str, float]:
        actions = script(way, x, y)
        begin = trial.checkpoint.load(0)
        dies_at = [int(share * len(actions)) for share in MOMENTS[: 2 - y]]
        for position in range(begin, len(actions)):
            action = actions[position]
            if action is None:
                trial.checkpoint.save(position + 1)
            else:
                trial.report(action[1], step=action[0])
            if position in dies_at and trial.attempt == dies_at.index(position) + 1:
                os.kill(ancestors(2)[1], signal.SIGKILL)
                time.sleep(60)
        return 1.0 if WAYS[way].metric is None else {"score": 1.0}

    result = experiment.launch(train, {"x": [0.5], "y": [0, 1]}, workers=2, metric=WAYS[way].metric, quiet=True)
    assert [ended.attempts for ended in result.trials] == [3, 2]
    for ended in result.trials:
        expected = curves_of(way, ended.params["x"], ended.params["y"])
        assert {name: list(curve) for name, curve in ended.curves.items()} == expected
        objective = WAYS[way].objective
        assert list(ended.curve) == ([] if objective is None else expected[objective])
    reports = sum(action is not None for action in script(way, 0.5, 0))
    everything = list(range(1, reports + 1))
    assert numbers_of(result.folder / "journal.jsonl") == {0: everything, 1: everything}


SEARCH = """
    import pathlib, time
    from cargobike import experiment, trial

    here = pathlib.Path.cwd()

    def train(x):
        begin = trial.checkpoint.load(0)
        for step in range(begin, 300):
            trial.report(loss=-x - step, accuracy=x + step)
            trial.report({"rate": 0.5 * step}, step=step)
            if step % 20 == 19:
                trial.checkpoint.save(step + 1)
            if step == 150 and not (here / "go on").exists():
                (here / f"waits-{x}").touch()
                time.sleep(1000)
        return {"accuracy": x}

    if (here / "go on").exists():
        result = experiment.resume("last", quiet=True)
    else:
        result = experiment.launch(train, {"x": [1.0, 2.0]}, workers=2, metric="accuracy", quiet=True)
    print("ended", result.state)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_driver_ends_and_what_ran_goes_on_with_every_report_once(number: signal.Signals, tmp_path: Path) -> None:
    first = Script(tmp_path / "work", SEARCH)
    first.wait_for_file("waits-1.0")
    first.wait_for_file("waits-2.0")
    os.kill(first.process.pid, number)
    first.end()
    before = experiment.load("last")
    if number != signal.SIGKILL:
        assert before.state == "interrupted"
        assert [(one.state.value, one.is_interrupted) for one in before.trials] == [("stopped", True)] * 2
    (tmp_path / "work" / "go on").touch()
    again = Script(tmp_path / "work", SEARCH)
    assert again.end() == 0, again.output
    result = experiment.load("last")
    assert result.state == "completed"
    assert len(result.trials) == 2
    for ended in result.trials:
        x = ended.params["x"]
        assert (ended.state.value, ended.value, ended.attempts, ended.is_interrupted) == ("completed", x, 2, False)
        assert list(ended.curves["accuracy"]) == [(step, x + step) for step in range(300)]
        assert list(ended.curves["loss"]) == [(step, -x - step) for step in range(300)]
        assert list(ended.curves["rate"]) == [(step, 0.5 * step) for step in range(300)]
    lines: list[dict[str, Any]] = list(facts_of(whole_lines(result.folder / "journal.jsonl")))
    ends = [fact["trial"] for fact in lines if fact["fact"] == "trial-ended"]
    assert sorted(ends) == [0, 1], f"each trial ends once: {json.dumps(lines[-3:])}"
