"""A trial that fails in any way fails alone, says why, and the search goes on."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.errors import ExperimentFailedError, TrialFailedError
from cargobike.core.records import Decision, Trial
from cargobike.experiments.results.result import Result

OURS = os.path.dirname(experiment.__file__)


def fail(how: str) -> float:
    print(f"about to try {how}")
    if how == "raise":
        raise ValueError("too deep")
    if how == "chain":
        try:
            os.environ["MISSING"]
        except KeyError as error:
            raise RuntimeError("second") from error
    if how == "sys.exit":
        sys.exit("giving up")
    if how == "sys.exit zero":
        sys.exit()
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "exit":
        os._exit(7)
    if how == "exit zero":
        os._exit(0)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "terminated":
        os.kill(os.getpid(), signal.SIGTERM)
    if how == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        bytearray(4 << 30)
    if how == "import":
        import a_module_that_does_not_exist  # type: ignore[import-not-found]  # noqa: F401
    if how == "recursion":
        return fail(how)
    if how == "huge message":
        raise ValueError("x" * 1_000_000)
    if how == "unprintable":

        class Odd(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        raise Odd
    if how == "no text":
        raise ValueError("a name \udcff")
    if how == "no attributes":

        class Hidden(Exception):
            def __getattribute__(self, name: str) -> Any:
                raise RuntimeError(name)

        raise Hidden("somewhere")
    if how == "closed streams":
        sys.stdout.close()
        sys.stderr.close()
        raise ValueError("in silence")
    return 1.0


EXPECTED = {
    "raise": ['raise ValueError("too deep")', "ValueError: too deep"],
    "chain": ["KeyError: 'MISSING'", "RuntimeError: second", "direct cause"],
    "sys.exit": ["sys.exit('giving up')"],
    "sys.exit zero": ["ended with sys.exit(), without a score", "return score"],
    "interrupt": ["KeyboardInterrupt"],
    "exit": ["exited with code 7"],
    "exit zero": ["exited with code 0 before the train function returned", "os._exit(0)"],
    "segfault": ["SIGSEGV", "\nCurrent thread ", f'File "{__file__}", line'],
    "abort": ["SIGABRT", "\nCurrent thread ", f'File "{__file__}", line'],
    "killed": ["SIGKILL", "out of memory", "MiB"],
    "terminated": ["SIGTERM"],
    "memory": ["MemoryError", "bytearray(4 << 30)"],
    "import": ["No module named 'a_module_that_does_not_exist'"],
    "recursion": ["RecursionError"],
    "huge message": ["ValueError: xxxx", "characters left out"],
    "unprintable": ["Odd"],
    "no text": ["ValueError: a name \\udcff"],
    "no attributes": ["Hidden: somewhere"],
    "closed streams": ["ValueError: in silence"],
}


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_each_failure_fails_its_trial_alone(isolation: Any) -> None:
    result = experiment.launch(fail, {"how": ["fine", *EXPECTED, "fine too"]}, isolation=isolation, quiet=True)
    assert result.counts == {"completed": 2, "failed": len(EXPECTED)}
    for failed in result.failures:
        how = failed.params["how"]
        error = failed.error or ""
        for words in EXPECTED[how]:
            assert words in error, f"{how}: {error}"
        assert "Last output:\n" in error
        assert f"\nabout to try {how}\n" in error, error
        assert OURS not in error, error
        assert failed.attempts == 1
        assert (failed.peak_memory_bytes or 0) > 5 << 20
        assert len(error) < 100_000
    assert experiment.load(result.id).failures == result.failures


def test_the_traceback_begins_in_the_users_code() -> None:
    def inner(x: int) -> float:
        return 1 / x

    def train(x: int) -> float:
        return inner(x)

    [failed] = experiment.launch(train, {"x": [0, 1]}, quiet=True).failures
    lines = (failed.error or "").splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert __file__ in lines[1]
    assert "in train" in lines[1]
    assert lines[2].strip() == "return inner(x)"
    assert "ZeroDivisionError" in lines[-1]


def test_an_endless_loop_is_ended_when_its_time_is_up() -> None:
    # No trial here would ever complete: on a busy machine, one that should might miss any limit worth waiting for.
    def train(x: int) -> float:
        if x == 1:
            print("and round", flush=True)
            while True:
                pass
        if x == 2:
            time.sleep(1000)
        if x == 3:
            while True:
                try:
                    trial.report(score=1.0)
                except BaseException:
                    pass
        if x == 4:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                os.write(1, b"noise " * 10_000)
        return x

    with pytest.raises(ExperimentFailedError) as caught:
        experiment.launch(train, {"x": [1, 2, 3, 4]}, workers=4, trial_timeout_s=3.0, quiet=True)
    result = caught.value.result
    assert isinstance(result, Result)
    assert [ended.state.value for ended in result.trials] == ["failed"] * 4
    for failed in result.failures:
        assert "ran longer than trial_timeout_s=3" in (failed.error or "")
    assert "Last output:\nand round\n" in (result.trials[0].error or "")
    assert (result.trials[0].peak_memory_bytes or 0) > 5 << 20


def test_a_function_that_ignores_stops_is_ended() -> None:
    class AtOnce:
        def judge(self, trial: Trial, step: int, trials: Any, direction: str) -> Any:
            return Decision.STOP if trial.params["x"] else Decision.CONTINUE

    def train(x: int) -> float:
        for step in range(3 if x < 2 else 10**9):
            try:
                trial.report(score=float(step), step=step)
            except BaseException:
                pass
        return x

    result = experiment.launch(train, {"x": [0, 1, 2]}, early_stop=AtOnce(), quiet=True)
    assert [(ended.state.value, ended.value) for ended in result.trials] == [
        ("completed", 0.0),
        ("stopped", None),
        ("stopped", None),
    ]


def test_the_first_ones_failing_alike_end_the_search_at_once() -> None:
    def train(x: float) -> float:
        raise ValueError(f"no data for {x}")

    with pytest.raises(ExperimentFailedError, match="failed alike") as caught:
        experiment.launch(train, Searchspace(x=("DOUBLE", [0, 1])), num_trials=500, quiet=True)
    result = caught.value.result
    assert isinstance(result, Result)
    assert result.state == "failed"
    assert 3 <= len(result.failures) <= 10
    assert "ValueError: no data for" in str(caught.value)
    assert experiment.load(result.id) == result


def test_failures_of_different_kinds_do_not_end_it() -> None:
    def train(x: int) -> float:
        if x == 0:
            raise ValueError
        if x == 1:
            raise KeyError(x)
        if x < 6:
            os._exit(x)
        return x

    result = experiment.launch(train, {"x": list(range(8))}, workers=1, quiet=True)
    assert result.counts == {"completed": 2, "failed": 6}


def test_too_many_failures_end_it() -> None:
    def train(x: int) -> float:
        if x % 2:
            raise ValueError(x)
        return x

    with pytest.raises(ExperimentFailedError, match="max_failures=2") as caught:
        experiment.launch(train, {"x": list(range(100))}, max_failures=2, workers=1, quiet=True)
    result = caught.value.result
    assert isinstance(result, Result)
    assert len(result.failures) == 3
    assert result.best is not None


def test_when_all_trials_failed_that_is_said() -> None:
    def train(x: int) -> float:
        raise ValueError("never")

    with pytest.raises(ExperimentFailedError, match="all 2 trials"):
        experiment.launch(train, {"x": [1, 2]}, quiet=True)


@pytest.mark.parametrize("how", ["raise", "segfault", "sys.exit"])
def test_a_single_run_that_fails_raises(how: str) -> None:
    with pytest.raises(TrialFailedError) as caught:
        experiment.launch(fail, params={"how": how}, quiet=True)
    for words in EXPECTED[how]:
        assert words in str(caught.value)
    assert OURS not in str(caught.value)


def test_a_function_whose_module_cannot_be_imported_there(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "picky_module.py").write_text(
        "import os\n"
        "if os.environ.get('CARGOBIKE_CPUS'):\n"
        "    raise ImportError('not on a worker')\n"
        "def train(x):\n"
        "    return x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    module = importlib.import_module("picky_module")
    with pytest.raises(TrialFailedError, match="not on a worker") as caught:
        experiment.launch(module.train, params={"x": 1}, quiet=True)
    assert "picky_module.py" in str(caught.value)
    assert OURS not in str(caught.value)


def test_a_crash_in_a_library_the_function_starts_with_is_the_trials(tmp_path: Any) -> None:
    def train(x: int) -> float:
        done = subprocess.run(["sh", "-c", "echo broken >&2; exit 3"], check=False)
        raise RuntimeError(f"child ended with {done.returncode}")

    with pytest.raises(TrialFailedError, match="child ended with 3") as caught:
        experiment.launch(train, params={"x": 1}, quiet=True)
    assert "Last output:\nbroken\n" in str(caught.value)
