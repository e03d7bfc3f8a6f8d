"""Ctrl-C and its relatives: what is known is kept, the prompt comes back soon, and nothing runs on."""

from __future__ import annotations

import ast
import functools
import os
import signal
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.experiments.driving.loop import POLITE_STOP_S
from support.watching import Script, marked, wait_for

SEARCH = """
    import os, pathlib, signal, sys, time
    from cargobike import Searchspace, experiment, trial
    from cargobike.experiments.driving import loop

    here = pathlib.Path.cwd()
    loop.POLITE_STOP_S = GRACE

    def polite(x):
        for step in range(10**9):
            trial.report(score=x, step=step)
            (here / f"running-{x}").touch()
            time.sleep(0.01)

    def deaf(x):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            try:
                trial.report(score=x)
                (here / f"running-{x}").touch()
                time.sleep(0.01)
            except BaseException:
                (here / f"told-{x}").touch()

    def busy(x):
        (here / f"running-{x}").touch()
        while True:
            pass

    def train(x):
        if x < 2:
            return x
        return {"polite": polite, "deaf": deaf, "busy": busy}[KIND](x)

    result = experiment.launch(train, {"x": [0, 1, 2, 3, 4]}, workers=2, isolation=ISOLATION, quiet=True)
    (here / "result").write_text(repr((
        result.id, result.state.value, result.reason, result.best.metric, [t.state.value for t in result.trials],
    )))
    time.sleep(WAIT)
"""


def search(
    folder: Path, kind: str, isolation: str = "fresh", wait_s: float = 0.0, grace_s: float = POLITE_STOP_S
) -> Script:
    words = {"KIND": kind, "ISOLATION": isolation, "WAIT": wait_s, "GRACE": grace_s}
    text = functools.reduce(lambda text, word: text.replace(word, repr(words[word])), words, SEARCH)
    script = Script(folder, text)
    wait_for(lambda: len(running(folder)) == 2 or script.process.poll() is not None, f"two trials\n{script.output}")
    assert len(running(folder)) == 2, script.output
    return script


def running(folder: Path) -> list[int]:
    """Return the trials that do not end by themselves, as far as they have begun: a worker may hold one for later."""
    return [int(path.name.removeprefix("running-")) for path in folder.glob("running-*")]


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
@pytest.mark.parametrize("kind", ["polite", "deaf", "busy"])
def test_ctrl_c_returns_what_is_known(kind: str, isolation: str, tmp_path: Path) -> None:
    script = search(tmp_path / "work", kind, isolation)
    script.send(signal.SIGINT)
    assert script.end() == 0, script.output
    known = ast.literal_eval((tmp_path / "work" / "result").read_text())
    name, state, reason, best, states = known
    assert (state, best) == ("interrupted", 1.0)
    assert "interrupted by the user" in reason
    assert states[:2] == ["completed", "completed"]
    assert {states[number] for number in running(tmp_path / "work")} == {"stopped"}
    again = experiment.load(name)
    assert (again.state, [ended.state.value for ended in again.trials]) == ("interrupted", states)
    assert marked(tmp_path) == []


def test_the_script_goes_on_as_usual_after_ctrl_c(tmp_path: Path) -> None:
    script = search(tmp_path / "work", "polite", wait_s=100.0)
    script.send(signal.SIGINT)
    script.wait_for_file("result")
    wait_for(lambda: [p.pid for p in marked(tmp_path)] == [script.process.pid], "all workers to end")
    script.send(signal.SIGINT)
    assert script.end() != 0
    assert "KeyboardInterrupt" in script.output


def test_ctrl_c_twice_ends_at_once(tmp_path: Path) -> None:
    script = search(tmp_path / "work", "deaf", grace_s=600.0)
    script.send(signal.SIGINT)
    script.wait_for_file(f"told-{running(tmp_path / 'work')[0]}")
    script.send(signal.SIGINT)
    assert script.end() != 0, "long before the trials would have been ended by force"
    assert "KeyboardInterrupt" in script.output
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    assert experiment.load("last").state == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_batch_system_or_a_lost_terminal_ends_the_script_with_all_that_is_known(
    number: signal.Signals, tmp_path: Path
) -> None:
    script = search(tmp_path / "work", "polite")
    os.kill(script.process.pid, number)
    assert script.end() == -number, script.output
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    result = experiment.load("last")
    assert result.state == "interrupted"
    assert [ended.state.value for ended in result.trials[:4]] == ["completed", "completed", "stopped", "stopped"]


def test_a_script_with_its_own_sigterm_handler_keeps_it(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "work",
        """
        import pathlib, signal, time
        from cargobike import experiment, trial

        here = pathlib.Path.cwd()
        signal.signal(signal.SIGTERM, lambda *_: (here / "handled").touch())

        def train(x):
            (here / "running").touch()
            while not (here / "handled").exists():
                time.sleep(0.01)
            return x

        result = experiment.launch(train, {"x": [1]}, quiet=True)
        (here / "result").write_text(result.state.value)
        """,
    )
    script.wait_for_file("running")
    os.kill(script.process.pid, signal.SIGTERM)
    assert script.end() == 0, script.output
    assert (tmp_path / "work" / "result").read_text() == "completed"


@pytest.mark.parametrize("moment", ["before the first fact", "workers starting", "first trial suggested"])
def test_ctrl_c_while_workers_start(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOMENT", moment)
    script = Script(
        tmp_path / "work",
        """
        import os, pathlib, signal, sys
        from cargobike import Searchspace, experiment, AbstractOptimizer

        MOMENT = os.environ["MOMENT"]

        class Presses(AbstractOptimizer):
            def press(self, moment):
                if moment == MOMENT:
                    os.kill(os.getpid(), signal.SIGINT)
            def initialize(self):
                self.press("before the first fact")
            def get_suggestion(self, trial=None):
                self.press("first trial suggested")
                return {"x": 1.0}

        class Watch:
            def on_facts(self, facts):
                if MOMENT == "workers starting" and not any(f.worker for f in facts if hasattr(f, "worker")):
                    os.kill(os.getpid(), signal.SIGINT)
                    self.on_facts = lambda facts: None

        def train(x):
            import time
            time.sleep(1000)

        state = "none"
        try:
            result = experiment.launch(
                train, Searchspace(x=("DOUBLE", [0, 1])), optimizer=Presses(), num_trials=50, workers=2, quiet=True,
                callbacks=[Watch()],
            )
            state = result.state.value
        except KeyboardInterrupt:
            state = "raised"
        pathlib.Path("state").write_text(state)
        """,
    )
    assert script.end() == 0, script.output
    state = (tmp_path / "work" / "state").read_text()
    assert state == ("raised" if moment == "before the first fact" else "interrupted")
    wait_for(lambda: not marked(tmp_path), "all processes to end")


def test_ctrl_c_does_not_wait_for_an_optimizer_that_thinks(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "work",
        """
        import pathlib, time
        from cargobike import AbstractOptimizer, Searchspace, experiment

        here = pathlib.Path.cwd()

        class Thinks(AbstractOptimizer):
            count = 0
            def initialize(self):
                pass
            def get_suggestion(self, trial=None):
                self.count += 1
                time.sleep(0.05)
                if self.count > 4:
                    (here / "thinking").touch()
                    time.sleep(1000)
                return {"x": float(self.count)}

        result = experiment.launch(
            lambda x: x, Searchspace(x=("DOUBLE", [0, 99])), optimizer=Thinks(), num_trials=50, workers=2, quiet=True
        )
        (here / "result").write_text(repr((result.state.value, result.best.metric)))
        """,
    )
    script.wait_for_file("thinking")
    wait_for(lambda: experiment.load("last").counts == {"completed": 4}, "four results")
    script.send(signal.SIGINT)
    assert script.end() == 0, script.output
    assert (tmp_path / "work" / "result").read_text() == repr(("interrupted", 4.0))


def test_an_experiment_in_a_thread_leaves_signals_alone(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "work",
        """
        import pathlib, signal, threading
        from cargobike import experiment

        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        found = []
        thread = threading.Thread(
            target=lambda: found.append(experiment.launch(lambda x: x, {"x": [1, 2]}, quiet=True).best.metric)
        )
        thread.start()
        thread.join()
        assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        found.append(experiment.launch(lambda x: x, {"x": [1, 2]}, quiet=True).best.metric)
        assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        pathlib.Path("found").write_text(str(found))
        """,
    )
    assert script.end() == 0, script.output
    assert (tmp_path / "work" / "found").read_text() == "[2.0, 2.0]"
