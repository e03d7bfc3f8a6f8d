"""The driver dies without a word: its workers end by themselves, and what they had reported can be read."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app
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


@pytest.mark.parametrize("first", ["driver", "host"])
def test_killing_the_driver_and_its_host_leaves_no_process(first: str, tmp_path: Path) -> None:
    script = Script(tmp_path / "work", SEARCH.replace("ISOLATION", "'fresh'"))
    script.wait_for_file("running-2")
    script.wait_for_file("running-3")
    [host] = psutil.Process(script.process.pid).children()
    victims = [script.process.pid, host.pid]
    for pid in victims if first == "driver" else reversed(victims):
        os.kill(pid, signal.SIGKILL)
    assert script.end() == -signal.SIGKILL
    wait_for(lambda: not marked(tmp_path), "all processes to end")


KILLED_AT_ONCE = """
    import pathlib, subprocess, time
    from cargobike import experiment, trial

    here = pathlib.Path.cwd()

    def train(x):
        if trial.attempt > 1:
            return x
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        (here / f"running-{x}").touch()
        time.sleep(1000)

    experiment.launch(train, {"x": [0, 1]}, workers=2, quiet=True)
"""


@pytest.mark.parametrize("ended_by", ["resume", "launch", "doctor"])
def test_what_driver_host_and_agents_leave_if_killed_at_once_is_ended_next_time(ended_by: str, tmp_path: Path) -> None:
    script = Script(tmp_path / "work", KILLED_AT_ONCE)
    script.wait_for_file("running-0")
    script.wait_for_file("running-1")
    driver = psutil.Process(script.process.pid)
    [host] = driver.children()
    victims = [driver, host, *host.children()]
    for process in victims:
        process.suspend()  # so that none of them notices the end of another
    for process in victims:
        process.kill()
    assert script.end() == -signal.SIGKILL
    if ended_by == "resume":
        assert experiment.resume("last", quiet=True).counts == {"completed": 2}
    elif ended_by == "launch":
        experiment.launch(lambda x: x, {"x": [1]}, workers=1, quiet=True)
    else:
        CliRunner().invoke(app, ["doctor"])
    assert marked(tmp_path) == []


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


FORKS = """
    import ctypes, os, pathlib, signal, subprocess, time
    from cargobike import experiment

    here = pathlib.Path.cwd()

    def fork():
        child = ctypes.PyDLL(None).fork() if WAY == "C" else os.fork()
        if child == 0:
            while True:
                time.sleep(1)

    class Fork:
        def on_facts(self, facts):
            fork()

    def train(x):
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        while not (here / "go").exists():
            (here / f"running-{x}").touch()
            time.sleep(0.01)
        return x

    if __name__ == "__main__":
        fork()
        experiment.launch(train, {"x": [0, 1, 2]}, workers=2, quiet=True, callbacks=[Fork()])
"""


@pytest.mark.parametrize("way", ["Python", "C"])
def test_copies_of_a_killed_driver_keep_neither_its_workers_nor_its_experiment(tmp_path: Path, way: str) -> None:
    work = tmp_path / "work"
    script = Script(work, FORKS.replace("WAY", repr(way)), "search.py")
    script.wait_for_file("running-0")
    script.wait_for_file("running-1")
    os.kill(script.process.pid, signal.SIGKILL)
    assert script.end() == -signal.SIGKILL
    try:
        wait_for(lambda: all(map(_is_copy, marked(tmp_path))), "all but the copies to end")
        assert len(marked(tmp_path)) > 3
        assert experiment.load("last").state == "lost"
        (work / "go").touch()
        again = Script(work, "from cargobike import experiment; experiment.resume('last', quiet=True)")
        assert again.end() == 0, again.output
        assert experiment.load("last").counts == {"completed": 3}
    finally:
        for process in filter(_is_copy, marked(tmp_path)):
            process.kill()


def _is_copy(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):  # it has ended meanwhile
        return "search.py" in process.cmdline()
    return False


@pytest.mark.parametrize("how", ["sys.exit(3)", "raise ValueError('in the copy')", "return"])
def test_a_copy_of_the_driver_that_comes_out_of_a_callback_ends_nothing(tmp_path: Path, how: str) -> None:
    script = Script(
        tmp_path / "work",
        f"""
        import os, pathlib, sys
        from cargobike import experiment

        class Fork:
            def on_facts(self, facts):
                if not any(type(fact).__name__ == "TrialEnded" for fact in facts):
                    return
                self.on_facts = lambda facts: None
                child = os.fork()
                if child == 0:
                    {how}
                else:
                    pathlib.Path("status").write_text(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))

        result = experiment.launch(lambda x: x, {{"x": [0, 1, 2, 3]}}, workers=2, quiet=True, callbacks=[Fork()])
        print(result.counts)
        """,
    )
    assert script.end() == 0, script.output
    assert script.output.startswith("{'completed': 4}\n")
    assert (tmp_path / "work" / "status").read_text() == {"sys": "3", "rai": "1", "ret": "0"}[how[:3]]
    assert ("ValueError: in the copy" in script.output) == how.startswith("raise")
