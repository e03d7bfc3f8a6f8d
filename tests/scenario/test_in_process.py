"""Searches without workers: trials run in the process, and the thread, that launched them."""

from __future__ import annotations

import io
import os
import pdb
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cargobike import Searchspace, experiment, project, trial
from cargobike.core.errors import ExperimentFailedError, InvalidInputError, TrialFailedError
from cargobike.core.facts import CheckpointSaved, Fact, Reported
from cargobike.core.records import ExperimentState
from cargobike.experiments.results.result import Result
from cargobike.search.optimizers.asha import ASHA

SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]))
calls: list[tuple[int, threading.Thread]] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


def train(x: float) -> float:
    """Saves, then reports; remembers where it was called."""
    calls.append((os.getpid(), threading.current_thread()))
    for epoch in range(trial.checkpoint.load(0), 9):
        trial.checkpoint.save(epoch + 1)
        trial.report(score=x * (epoch + 1), step=epoch)
    return x * 9 + random.random() / 1000


def launch(function: Any = train, space: Any = SPACE, **options: Any) -> Result:
    return experiment.launch(function, space, **{"workers": 0, "quiet": True, "seed": 7, **options})


def test_trials_run_in_this_process_and_thread() -> None:
    result = launch(num_trials=3)

    assert calls == [(os.getpid(), threading.current_thread())] * 3
    assert result.counts == {"completed": 3}
    assert result.best is not None
    assert result.best.checkpoint is not None
    assert result.best.checkpoint.load() == 9
    assert [step for step, _ in result.best.curve] == list(range(9))


@pytest.mark.parametrize("options", [{}, {"optimizer": ASHA(resource_max=9)}, {"early_stop": "median"}])
def test_the_result_is_the_same_as_with_a_worker(options: dict[str, Any]) -> None:
    # Deterministic, as a worker asks for the next suggestion a little ahead of its need.
    here, there = (launch(num_trials=8, workers=number, deterministic=True, **options) for number in (0, 1))

    assert here.counts == there.counts
    for mine, others in zip(here.trials, there.trials, strict=True):
        assert (mine.params, mine.seed, mine.state) == (others.params, others.seed, others.state)
        assert mine.value == pytest.approx(others.value, nan_ok=True)
        assert list(mine.curve) == list(others.curve)


def test_breakpoint_sees_the_train_function(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["x"]))

    def debugged(x: float) -> float:
        breakpoint()
        return x

    result = launch(debugged, {"x": [1, 2]})

    assert seen == [1, 2]
    assert result.counts == {"completed": 2}


def test_quitting_the_debugger_ends_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    def debugged(x: float) -> float:
        pdb.Pdb(stdin=io.StringIO("quit\n"), stdout=sys.stdout, nosigint=True, readrc=False).set_trace()
        return x

    result = launch(debugged, {"x": [1, 2]})

    assert (result.state, result.reason) == (ExperimentState.INTERRUPTED, "the debugger was quit")
    assert result.counts == {"stopped": 1}
    assert "(Pdb)" in capsys.readouterr().out


def test_an_interrupt_ends_the_search_and_it_can_be_resumed(tmp_path: Path) -> None:
    mark = tmp_path / "interrupted"

    def interrupted(x: float) -> float:
        if x == 2 and not mark.exists():
            mark.touch()
            signal.raise_signal(signal.SIGINT)
        return x

    before = signal.getsignal(signal.SIGINT)
    result = launch(interrupted, {"x": [1, 2, 3]})
    assert (result.state, result.reason) == (ExperimentState.INTERRUPTED, "interrupted by the user")
    assert result.counts == {"completed": 1, "stopped": 1}
    assert signal.getsignal(signal.SIGINT) is before

    assert experiment.resume(result, quiet=True).counts == {"completed": 3}


class Interrupts:
    """Presses Ctrl-C while the driver does its part."""

    def __init__(self, kind: type[Fact]) -> None:
        self._kind = kind

    def on_facts(self, facts: Sequence[Fact]) -> None:
        if any(isinstance(fact, self._kind) for fact in facts):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("kind", [Reported, CheckpointSaved])
def test_an_interrupt_of_the_driver_waits_until_it_has_done_its_part(kind: type[Fact]) -> None:
    result = launch(num_trials=3, callbacks=[Interrupts(kind)])

    assert (result.state, result.counts) == (ExperimentState.INTERRUPTED, {"stopped": 1})
    assert experiment.load(result).trials == result.trials


def test_exits_are_what_they_are_on_a_worker() -> None:
    def leaves(x: int) -> None:
        sys.exit(x)

    with pytest.raises(ExperimentFailedError, match=r"sys\.exit\(3\)"):
        launch(leaves, {"x": [3]})
    assert launch(leaves, None, params={"x": 0}).counts == {"completed": 1}


def test_failures_are_recorded_with_the_traceback_of_the_function_alone() -> None:
    def fails(x: float) -> float:
        raise ValueError(f"no {x}")

    with pytest.raises(TrialFailedError, match="ValueError: no 1") as caught:
        launch(fails, None, params={"x": 1})

    assert "driving/in_process.py" not in str(caught.value)
    assert "workers=0" not in str(caught.value)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failure_on_a_worker_says_how_to_debug_it(workers: int) -> None:
    def fails(x: float) -> float:
        raise ValueError

    with pytest.raises(ExperimentFailedError) as caught:
        launch(fails, {"x": [1]}, workers=workers)

    hint = "To debug it, call fails(x=1), or launch with workers=0: breakpoint() and debuggers work there."
    assert (hint in str(caught.value)) == (workers == 1)


def test_a_callback_that_fails_ends_the_experiment_and_not_the_trial() -> None:
    class Broken:
        def on_facts(self, facts: Sequence[Fact]) -> None:
            if any(isinstance(fact, Reported) for fact in facts):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch(num_trials=3, callbacks=[Broken()])
    assert experiment.load("last").state is ExperimentState.FAILED


def test_a_trial_that_takes_too_long_fails_at_its_next_report() -> None:
    def slow(x: float) -> float:
        time.sleep(0.02)
        trial.report(score=x)
        return x

    with pytest.raises(ExperimentFailedError, match=r"trial_timeout_s=0\.01"):
        launch(slow, {"x": [1]}, trial_timeout_s=0.01)


def test_a_request_to_stop_is_heard_at_the_next_report() -> None:
    def stopped(x: float) -> float:
        (folder,) = project.current().experiments.iterdir()
        (folder / "stop").touch()
        for _ in range(3):
            trial.report(score=x)
        return x

    result = launch(stopped, {"x": [1, 2]})

    assert (result.state, result.reason) == (ExperimentState.INTERRUPTED, "stopped by request")
    assert result.counts == {"stopped": 1}


def test_output_is_shown_and_kept_with_its_trial(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(x: int) -> int:
        print("this is", x)
        print("careful", x, file=sys.stderr)
        return x

    result = launch(talks, {"x": [1, 2]})

    assert [each.logs for each in result.trials] == ["this is 1\n", "this is 2\n"]
    assert result.logs(1, "stderr") == "careful 2\n"
    assert capsys.readouterr() == ("this is 1\nthis is 2\n", "careful 1\ncareful 2\n")


def test_each_trial_works_in_its_directory_and_the_program_in_its_own(tmp_path: Path) -> None:
    before = Path.cwd()

    def writes(x: int) -> int:
        Path("out.txt").write_text(str(x))
        return x

    result = launch(writes, {"x": [1, 2]})

    assert Path.cwd() == before
    assert [[path.read_text() for path in each.artifacts] for each in result.trials] == [["1"], ["2"]]


def test_what_one_process_cannot_do_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="need a process each"):
        launch(num_trials=1, gang=2)
    with pytest.raises(InvalidInputError, match=r"workers must be a whole number of at least 1"):
        experiment.allreduce(train, params={"x": 1.0}, workers=0, quiet=True)
    with pytest.raises(InvalidInputError, match=r"workers must be a whole number of at least 1"):
        launch(num_trials=1, workers=False)


def test_a_search_moves_between_workers_and_this_process() -> None:
    result = launch(num_trials=2)
    with_worker = experiment.resume(result, num_trials=3, workers=1, quiet=True)
    back = experiment.resume(result, num_trials=4, workers=0, quiet=True)

    assert with_worker.counts == {"completed": 3}
    assert back.counts == {"completed": 4}
    assert {seen.pid == os.getpid() for seen in back.record.workers.values()} == {True, False}
