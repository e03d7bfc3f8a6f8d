"""Any process of a worker may be killed at any moment: its trial is tried again, and nothing is left behind."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cargobike import experiment, trial
from cargobike.core.errors import ExperimentFailedError
from cargobike.core.facts import Reported
from cargobike.engines.local.engine import LocalEngine
from cargobike.experiments.driving.request import Patience, Request
from cargobike.experiments.results.result import Result
from support.watching import Script, ancestors, marked


def facts_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.folder / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
@pytest.mark.parametrize(("victim", "place"), [("template", 0), ("agent", 1)])
def test_a_trial_that_loses_its_worker_goes_on_from_its_checkpoint(victim: str, place: int, isolation: Any) -> None:
    def train(x: int) -> float:
        begun_at = trial.checkpoint.load(0)
        for step in range(begun_at, 6):
            trial.report(score=float(step), step=step)
            trial.checkpoint.save(step + 1)
            if x == 1 and step == 2 and trial.attempt == 1:
                os.kill(ancestors(2)[place], signal.SIGKILL)
                time.sleep(60)
        return float(begun_at + x)

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=2, isolation=isolation, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 4.0, 2.0, 3.0]
    assert [ended.attempts for ended in result.trials] == [1, 2, 1, 1]
    assert list(result.trials[1].curve.steps) == [0, 1, 2, 3, 4, 5]
    kinds = [fact["fact"] for fact in facts_of(result)]
    assert kinds.count("attempt-lost") == 1
    assert kinds.count("worker-lost") == 1
    assert kinds.count("worker-joined") in (2, 3)  # the third may come when nothing is left to do


def test_the_host_may_die_and_its_workers_work_on() -> None:
    def train(x: int) -> float:
        if x == 1 and trial.attempt == 1:
            os.kill(ancestors(3)[2], signal.SIGKILL)
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        return x

    result = experiment.launch(train, {"x": list(range(12))}, workers=2, quiet=True)
    assert [ended.value for ended in result.trials] == [float(x) for x in range(12)]
    assert {ended.attempts for ended in result.trials} == {1}


def test_host_and_agent_may_die_and_a_new_host_takes_over() -> None:
    def train(x: int) -> float:
        if x == 1 and trial.attempt == 1:
            _, agent, host = ancestors(3)
            os.kill(host, signal.SIGKILL)
            os.kill(agent, signal.SIGKILL)
            time.sleep(60)
        return x

    result = experiment.launch(train, {"x": list(range(6))}, workers=2, quiet=True)
    assert [ended.value for ended in result.trials] == [float(x) for x in range(6)]
    assert result.trials[1].attempts == 2


def test_a_trial_that_always_kills_its_worker_is_given_up_and_the_others_go_on() -> None:
    def train(x: int) -> float:
        if x == 1:
            os.kill(ancestors(2)[1], signal.SIGKILL)
            time.sleep(60)
        return x

    result = experiment.launch(train, {"x": [0, 1, 2, 3, 4, 5]}, workers=2, quiet=True)
    assert result.counts == {"completed": 5, "failed": 1}
    [failed] = result.failures
    assert (failed.params, failed.attempts) == ({"x": 1}, 3)
    assert "gave up after 3 lost attempts" in (failed.error or "")
    assert "SIGKILL" in (failed.error or "")


def test_workers_that_never_live_end_the_experiment_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(ExperimentFailedError, match="workers were lost in a row"):
        experiment.launch(lambda x: x, {"x": [1]}, quiet=True)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(Exception, match="/nowhere/python"):
        experiment.launch(lambda x: x, {"x": [1]}, quiet=True)


class _KillsOnReport:
    """Kills, from the driver, the worker of a trial at the n-th report of all, and makes a file that says so."""

    def __init__(self, at_report: int, struck: Path) -> None:
        self.at_report = at_report
        self.struck = struck
        self.pids: dict[str, int] = {}
        self.worker: dict[int, str] = {}
        self.reports = 0

    def on_facts(self, facts: Any) -> None:
        for fact in facts:
            match type(fact).__name__:
                case "WorkerJoined":
                    self.pids[fact.worker] = fact.pid
                case "AttemptStarted":
                    self.worker[fact.trial] = fact.workers[0]
            if isinstance(fact, Reported):
                self.reports += 1
                if self.reports == self.at_report:
                    os.kill(self.pids[self.worker[fact.trial]], signal.SIGKILL)
                    self.struck.touch()


@pytest.mark.parametrize("at_report", [1, 2, 7, 20])
def test_an_agent_killed_from_outside_at_any_moment_costs_one_attempt(at_report: int, tmp_path: Path) -> None:
    struck = tmp_path / "struck"

    def train(x: int) -> float:
        for step in range(trial.checkpoint.load(0), 10):
            trial.report(score=float(step), step=step)
            trial.checkpoint.save(step + 1)
            time.sleep(0.005)
        deadline = time.monotonic() + 120.0
        while not struck.exists():  # a trial that has ended cannot lose its attempt any more
            assert time.monotonic() < deadline, "no agent was killed"
            time.sleep(0.01)
        return x

    killer = _KillsOnReport(at_report, struck)
    result = experiment.launch(train, {"x": [0, 1, 2]}, workers=2, callbacks=[killer], quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0]
    assert sum(ended.attempts for ended in result.trials) == 4
    for ended in result.trials:
        assert sorted(set(ended.curve.steps)) == list(range(10))


def test_an_agent_that_stands_still_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = functools.partial(Request, patience=Patience(silence_s=4.0))
    monkeypatch.setattr("cargobike.experiments.asking.launching.Request", impatient)

    def train(x: int) -> float:
        if x == 1 and trial.attempt == 1:
            os.kill(ancestors(2)[1], signal.SIGSTOP)
            time.sleep(60)
        return x

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=2, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0]
    assert result.trials[1].attempts == 2
    lost = [fact["reason"] for fact in facts_of(result) if fact["fact"] == "worker-lost"]
    assert "it has been silent for 4 s" in lost


def test_a_template_that_stands_still_cannot_keep_a_trial_beyond_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = functools.partial(Request, patience=Patience(end_s=1.0))
    monkeypatch.setattr("cargobike.experiments.asking.launching.Request", impatient)

    def train(x: int) -> float:
        if x == 1:
            os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(600)
        return x

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=2, trial_timeout_s=6.0, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, None, 2.0, 3.0]
    assert "ran longer than trial_timeout_s=6" in (result.trials[1].error or "")
    assert [fact["cause"] for fact in facts_of(result) if fact["fact"] == "worker-lost"] == ["stuck"]


def test_results_are_not_lost_when_agent_and_runner_end_close_together() -> None:
    """The agent stands still while its runner reports, returns and exits: it must read everything before the exit."""

    def train(x: int) -> float:
        _, agent = ancestors(2)
        me = os.getpid()
        subprocess.Popen(
            ["sh", "-c", f"while grep -qs 'State:.[^Z]' /proc/{me}/status; do sleep 0.02; done; kill -CONT {agent}"],
            start_new_session=True,
        )
        os.kill(agent, signal.SIGSTOP)
        for step in range(900):
            trial.report(score=float(step), step=step)
        return x

    result = experiment.launch(train, {"x": [5]}, workers=1, trial_timeout_s=50, quiet=True)
    assert result.trials[0].value == 5.0
    assert len(result.trials[0].curve) == 900


def test_a_stopped_driver_finds_its_workers_again(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "work",
        """
        import functools, pathlib, time
        from cargobike import experiment, trial
        from cargobike.experiments.asking import launching
        from cargobike.experiments.driving.request import Patience, Request

        launching.Request = functools.partial(Request, patience=Patience(silence_s=1.5))
        launch_dir = pathlib.Path.cwd()

        def train(x):
            (launch_dir / f"running-{x}").touch()
            while not (launch_dir / "go").exists():
                trial.report(score=x)
                time.sleep(0.05)
            return x

        result = experiment.launch(train, {"x": [1, 2]}, workers=2, quiet=True)
        (launch_dir / "result").write_text(str([(t.value, t.attempts) for t in result.trials]))
        """,
    )
    script.wait_for_file("running-1")
    script.wait_for_file("running-2")
    os.kill(script.process.pid, signal.SIGSTOP)
    time.sleep(3.5)  # longer than the patience that it has with silent workers
    os.kill(script.process.pid, signal.SIGCONT)
    (tmp_path / "work" / "go").touch()
    assert script.end() == 0, script.output
    assert (tmp_path / "work" / "result").read_text() == "[(1.0, 1), (2.0, 1)]"


def test_gpus_of_a_lost_worker_are_given_to_its_successor() -> None:
    def train(x: int) -> float:
        if x in (1, 2) and trial.attempt == 1:
            os.kill(ancestors(2)[1], signal.SIGKILL)
            time.sleep(60)
        return float(os.environ["CUDA_VISIBLE_DEVICES"])

    result = experiment.launch(
        train, {"x": list(range(6))}, engine=LocalEngine(gpus=("3", "4")), isolation="reuse", quiet=True
    )
    assert result.counts == {"completed": 6}
    joined = [fact["gpus"] for fact in facts_of(result) if fact["fact"] == "worker-joined"]
    assert len(joined) >= 3
    assert all(gpus in (["3"], ["4"]) for gpus in joined)


def test_a_dead_runner_leaves_no_zombies_in_its_agent() -> None:
    def train(x: int) -> float:
        subprocess.Popen(["sh", "-c", "setsid sleep 300 & setsid sleep 300 &"])
        agent = psutil.Process(ancestors(2)[1])
        return sum(child.status() == psutil.STATUS_ZOMBIE for child in agent.children())

    result = experiment.launch(train, {"x": list(range(10))}, workers=1, quiet=True)
    assert max(ended.value or 0.0 for ended in result.trials) <= 1


class _Reaper(threading.Thread):
    """Kills any process of a project, each time some moments after a trial has ended."""

    def __init__(self, project: Path, seed: int, kills: int) -> None:
        super().__init__()
        self.project = project
        self.rng = random.Random(seed)
        self.kills = kills
        self.ended = threading.Event()
        self.over = False

    def on_facts(self, facts: Any) -> None:
        if any(type(fact).__name__ == "TrialEnded" for fact in facts):
            self.ended.set()

    def run(self) -> None:
        while self.kills and self.ended.wait() and not self.over:
            self.ended.clear()
            time.sleep(self.rng.uniform(0.0, 0.05))
            victims = sorted(marked(self.project), key=lambda process: process.pid)
            if victims:
                self.kills -= 1
                try:
                    self.rng.choice(victims).kill()
                except psutil.NoSuchProcess:
                    pass


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
@pytest.mark.parametrize("seed", [1, 2])
def test_any_process_may_die_at_any_moment(seed: int, isolation: Any, tmp_path: Path) -> None:
    def train(x: int) -> float:
        for step in range(trial.checkpoint.load(0), 4):
            trial.report(score=float(x + step), step=step)
            trial.checkpoint.save(step + 1)
            time.sleep(0.01)
        return x

    reaper = _Reaper(tmp_path, seed, kills=6)
    reaper.start()
    try:
        result = experiment.launch(
            train, {"x": list(range(24))}, workers=2, isolation=isolation, callbacks=[reaper], quiet=True
        )
    finally:
        reaper.over = True
        reaper.ended.set()
        reaper.join()
    assert [ended.params["x"] for ended in result.trials] == list(range(24))
    for ended in result.trials:
        if ended.state == "failed":
            assert "gave up after 3 lost attempts" in (ended.error or "") or "SIGKILL" in (ended.error or "")
        else:
            assert ended.value == float(ended.params["x"])
            assert ended.attempts > 1 or list(ended.curve.steps) == [0, 1, 2, 3]
    assert experiment.load(result.id) == result
