"""What is done once in the host, for all workers: it must work as workers do, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.experiments.trial.messages import AttemptEnd
from cargobike.experiments.trial.payload import Payload
from cargobike.experiments.trial.program import TrialProgram
from cargobike.workers import rehearsal
from cargobike.workers.wire.messages import Ended, decode_worker_message
from support.scripts import run_script


@pytest.fixture
def understudy() -> rehearsal.Understudy:
    return TrialProgram(Payload(function=b"not to be loaded", sys_path=[], launch_dir="/nowhere")).understudy()


@pytest.mark.parametrize("reuse", [True, False])
def test_an_agent_passes_on_every_assignment_and_leaves(reuse: bool) -> None:
    assert rehearsal.rehearse_agent(reuse=reuse, count=7) == 7


def test_an_agent_that_does_not_come_to_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(rehearsal._PlayedTemplate, "_work", lambda self, packet: None)
    with pytest.raises(ChildProcessError, match="the template has ended"):
        rehearsal.rehearse_agent(reuse=True)


@pytest.mark.parametrize(("reuse", "count"), [(True, 2), (False, 1)])
def test_a_runner_works_on_the_understudys_assignment(
    understudy: rehearsal.Understudy, reuse: bool, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = [decode_worker_message(packet) for packet in rehearsal.rehearse_runner(*understudy, reuse=reuse)]
    assert len(said) == count
    for one in said:
        assert isinstance(one, Ended)
        assert not one.failed
    assert Path.cwd() == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_understudy_of_a_trial_completes(understudy: rehearsal.Understudy) -> None:
    program, packet = understudy
    agent, seat = rehearsal._seat(reuse=False)
    with agent, seat.agent:
        end = program.run(seat, packet).body
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.value) == ("completed", 0.5)


def test_a_whole_rehearsal_leaves_nothing_behind(tmp_path: Path) -> None:
    script = """
    import json, os, random, sys, threading
    from cargobike.experiments.trial import context
    from cargobike.experiments.trial.payload import Payload
    from cargobike.experiments.trial.program import TrialProgram
    from cargobike.workers.rehearsal import rehearse

    def state():
        return [sorted(os.listdir("/proc/self/fd")), os.getcwd(), os.listdir(), threading.active_count()]

    before = state()
    modules = set(sys.modules)
    rehearse(TrialProgram(Payload(function=b"", sys_path=[], launch_dir="")).understudy())
    rehearse(None)
    try:
        child = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        child = None
    loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - modules} - {"cargobike"})
    print(json.dumps([before == state(), child, context.is_inside(), loaded]))
    """
    assert run_script(tmp_path, script) == [True, None, False, []]


@pytest.mark.parametrize("isolation", ["reuse", "fresh"])
def test_workers_that_were_rehearsed_work(tmp_path: Path, isolation: str) -> None:
    script = f"""
    import json, os
    from cargobike import Searchspace, experiment

    def train(x):
        return {{"x": x, "random": __import__("random").random()}}

    if __name__ == "__main__":
        space = Searchspace(x=("DOUBLE", [0, 1]))
        result = experiment.launch(
            train, space, optimizer="random", num_trials=24, workers=8, isolation="{isolation}", metric="x", quiet=True
        )
        values = [one.value == one.params["x"] for one in result.trials]
        print(json.dumps([values, len({{one.metrics["random"] for one in result.trials}})]))
    """
    assert run_script(tmp_path, script) == [[True] * 24, 24]
