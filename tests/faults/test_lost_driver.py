"""The driver dies without a word: its workers end by themselves, and what they had reported can be read."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cargobike import experiment
from support.watching import Script, marked, wait_for

SEARCH = """
    import os, pathlib, subprocess, sys, time
    from cargobike import experiment, trial

    here = pathlib.Path.cwd()

    def train(x):
        for step in range(5):
            trial.report(score=x + step, step=step)
        print("reported", flush=True)
        if x < 2:
            return x
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"])
        (here / f"running-{x}").touch()
        while True:
            time.sleep(0.01)
            if "busy" in sys.argv:
                sum(range(1000))

    def wait():
        experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=2, quiet=True, isolation=ISOLATION)

    wait()
"""


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_killing_the_driver_leaves_no_process_and_a_readable_journal(tmp_path: Path, isolation: str) -> None:
    script = Script(tmp_path / "work", SEARCH.replace("ISOLATION", repr(isolation)))
    script.wait_for_file("running-2")
    script.wait_for_file("running-3")
    wait_for(lambda: len(experiment.load("last").trials[3].curve) == 5, "the reports of trial 3")
    [only] = experiment.list()
    assert experiment.load(only).state == "running"
    assert len(marked(tmp_path)) > 8
    script.send(signal.SIGKILL)
    assert script.end() == -signal.SIGKILL
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    result = experiment.load(only)
    assert result.state == "lost"
    assert [ended.state.value for ended in result.trials] == ["completed", "completed", "running", "running"]
    assert [list(ended.curve) for ended in result.trials] == [
        [(step, float(x + step)) for step in range(5)] for x in range(4)
    ]
    assert result.best is not None
    assert result.best.params == {"x": 1}


def test_killing_the_driver_while_its_workers_start_leaves_nothing(tmp_path: Path) -> None:
    for delay in (0.0, 0.05, 0.1):
        folder = tmp_path / f"work-{delay}"
        script = Script(
            folder,
            f"""
            import os, pathlib, signal, threading
            from cargobike import experiment

            class Kill:
                def on_facts(self, facts):
                    threading.Timer({delay}, os.kill, [os.getpid(), signal.SIGKILL]).start()

            def train(x):
                import time
                time.sleep(1000)

            experiment.launch(train, {{"x": [0, 1, 2, 3]}}, workers=2, quiet=True, callbacks=[Kill()])
            """,
        )
        assert script.end() == -signal.SIGKILL, script.output
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    assert {experiment.load(name).state.value for name in experiment.list()} == {"lost"}


def test_a_driver_that_is_out_of_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "work",
        """
        import os, pathlib, resource
        from cargobike import experiment, trial

        class Fill:
            def on_facts(self, facts):
                journal = next(pathlib.Path(os.environ["CARGOBIKE_PROJECT"]).rglob("journal.jsonl"))
                size = max(4000, journal.stat().st_size)
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                self.on_facts = lambda facts: None

        def train(x):
            for step in range(100):
                trial.report(score=step)
            return x

        try:
            experiment.launch(train, {"x": list(range(50))}, workers=2, quiet=True, callbacks=[Fill()])
        except OSError as error:
            pathlib.Path("error").write_text(f"{type(error).__name__}: {error}")
        """,
    )
    assert script.end() == 0, script.output
    text = (tmp_path / "work" / "error").read_text()
    assert text.startswith("StoreError")
    assert "File too large" in text
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    assert len(experiment.load("last").trials) > 0
