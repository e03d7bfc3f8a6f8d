"""Fresh processes and reused ones: what is kept between trials and what is not."""

from __future__ import annotations

import os
from typing import Any

import pytest

from cargobike import experiment, trial


def _collecting() -> Any:
    seen: list[int] = []

    def train(x: int) -> dict[str, float]:
        seen.append(x)
        os.environ["LEFT_BY_A_TRIAL"] = os.environ.get("LEFT_BY_A_TRIAL", "") + "x"
        return {"pid": os.getpid(), "seen": len(seen), "left": len(os.environ["LEFT_BY_A_TRIAL"])}

    return train


def test_a_fresh_process_knows_nothing_of_earlier_trials() -> None:
    result = experiment.launch(_collecting(), {"x": [1, 2, 3, 4]}, metric="pid", workers=1, quiet=True)
    assert len({ended.value for ended in result.trials}) == 4
    assert {(ended.metrics["seen"], ended.metrics["left"]) for ended in result.trials} == {(1.0, 1.0)}


def test_a_reused_process_keeps_its_pid_and_its_state() -> None:
    result = experiment.launch(
        _collecting(), {"x": [1, 2, 3, 4]}, metric="pid", workers=1, isolation="reuse", quiet=True
    )
    assert len({ended.value for ended in result.trials}) == 1
    assert [ended.metrics["seen"] for ended in result.trials] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("how", ["raise", "exit", "die"])
def test_a_reused_process_that_fails_is_replaced_if_it_must(how: str) -> None:
    def train(x: int) -> float:
        if x == 2:
            if how == "raise":
                raise ValueError("no luck")
            if how == "exit":
                raise SystemExit(3)
            os._exit(3)
        return float(os.getpid())

    result = experiment.launch(train, {"x": [1, 2, 3, 4]}, isolation="reuse", workers=1, quiet=True)
    assert [ended.state.value for ended in result.trials] == ["completed", "failed", "completed", "completed"]
    pids = [ended.value for ended in result.trials if ended.value is not None]
    assert len(set(pids)) == (2 if how == "die" else 1)


def test_a_reused_process_that_dies_between_trials_costs_none_its_result() -> None:
    def train(x: int) -> float:
        if x == 2:
            import threading

            threading.Timer(0.05, os._exit, [5]).start()
        return x

    result = experiment.launch(train, {"x": list(range(60))}, isolation="reuse", workers=1, quiet=True)
    assert len(result.trials) == 60
    assert result.counts.get("completed", 0) >= 59
    assert [ended.value for ended in result.trials if ended.value is not None] == [
        float(ended.params["x"]) for ended in result.trials if ended.value is not None
    ]


def test_each_trial_of_a_reused_process_has_its_own_context() -> None:
    def train(x: int) -> float:
        assert trial.params == {"x": x}
        assert trial.attempt == 1
        assert trial.id in os.getcwd()
        trial.report(score=float(x))
        return float(trial.number)

    result = experiment.launch(train, {"x": [5, 6, 7]}, isolation="reuse", workers=1, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0]
    assert [list(ended.curve) for ended in result.trials] == [[(0, 5.0)], [(0, 6.0)], [(0, 7.0)]]


def test_a_reused_process_gives_the_next_trial_what_the_last_one_broke() -> None:
    def train(x: int) -> float:
        import shutil
        import sys

        print(f"trial {x} in {sorted(os.listdir('.'))}")
        if x == 1:
            sys.stdout.close()
        if x == 2:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if x == 3:
            shutil.rmtree(os.getcwd())
        if x == 4:
            os.chdir("/")
        if x == 5:
            os.environ.clear()
        return x

    result = experiment.launch(train, {"x": list(range(7))}, isolation="reuse", workers=1, quiet=True)
    assert [ended.error for ended in result.trials] == [None] * 7
    assert [result.logs(ended) for ended in result.trials] == [f"trial {x} in []\n" for x in range(7)]
