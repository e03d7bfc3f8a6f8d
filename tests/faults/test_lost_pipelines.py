"""Drivers, templates and steps of pipelines die at any moment: nothing stays, nothing is done twice."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from cargobike import pipelines
from cargobike.errors import InvalidInputError, StoreError
from cargobike.pipelines import RunState, StepState
from cargobike.pipelines.running import cancel, start, wait
from support import pipeline_steps as steps
from support.pipeline_steps import count
from support.watching import Script, marked, wait_for

PIPELINE = """
    import os, pathlib, subprocess, time
    from dataclasses import dataclass
    from cargobike import pipelines

    here = pathlib.Path(__file__).parent

    @dataclass
    class Sum:
        value: int

    @pipelines.step
    def first(x):
        with open(here / "first", "a") as file:
            file.write("x")
        return Sum(x.value + 1)

    @pipelines.step
    def second(x):
        with open(here / "second", "a") as file:
            file.write("x")
        (here / "pid").write_text(str(os.getpid()))
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        (here / "running").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
        assert isinstance(x, Sum)
        return x.value * 10

    def retrain(x=1):
        total = first(Sum(x))
        assert total == Sum(x + 1)  # also after a resume, which knows the script by another name
        return second(total)

    if __name__ == "__main__":
        pipelines.run(retrain, run_id="mine")
"""


def test_a_run_whose_driver_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", PIPELINE)
    script.wait_for_file("running")
    with pytest.raises(StoreError, match=r"Run mine is being driven by process \d+ on host .*pipelines cancel mine"):
        pipelines.resume("mine")
    script.process.kill()
    script.end()
    wait_for(lambda: not marked(tmp_path), "all processes to end")
    assert pipelines.get("mine").state is RunState.INTERRUPTED

    (tmp_path / "work" / "go").touch()
    run = pipelines.resume("last")

    assert (run.id, run.state, run.result) == ("mine", RunState.COMPLETED, 20)
    assert (count(script.folder, "first"), count(script.folder, "second")) == (1, 2)
    assert [step.attempt for step in run.steps] == [1, 2]


def test_ctrl_c_ends_the_steps_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", PIPELINE)
    script.wait_for_file("running")
    script.send(signal.SIGINT)
    assert script.end() != 0
    assert "KeyboardInterrupt" in script.output
    assert not marked(tmp_path)
    run = pipelines.get("mine")
    assert (run.state, run.steps[1].state) == (RunState.INTERRUPTED, StepState.INTERRUPTED)

    # The code has changed since: that is said, and may be accepted.
    file = tmp_path / "work" / "script.py"
    file.write_text(file.read_text().replace("x.value * 10", "x.value * 100"))
    (tmp_path / "work" / "go").touch()
    with pytest.raises(InvalidInputError, match=r"code of run mine has changed since: second\. .*--accept-changes"):
        pipelines.resume("mine")
    assert pipelines.resume("mine", accept_changes=True).result == 200
    assert count(script.folder, "first") == 1


def test_a_template_that_is_killed_costs_no_attempt(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", PIPELINE)
    script.wait_for_file("running")
    step = psutil.Process(int((script.folder / "pid").read_text()))
    template = step.parent()
    assert template is not None
    template.kill()
    wait_for(lambda: count(script.folder, "second") == 2, "the step to begin again")
    (script.folder / "go").touch()

    assert script.end() == 0, script.output
    assert pipelines.get("mine").result == 20


def test_a_step_that_is_killed_fails_and_says_so(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", PIPELINE)
    script.wait_for_file("running")
    os.kill(int((script.folder / "pid").read_text()), signal.SIGKILL)

    assert script.end() == 1
    assert "Its process was ended by SIGKILL" in script.output
    run = pipelines.get("mine")
    assert (run.state, run.steps[1].state) == (RunState.FAILED, StepState.FAILED)
    (script.folder / "go").touch()
    assert pipelines.resume("mine").result == 20  # the step that ended it is tried again


def test_a_run_in_a_process_of_its_own_is_cancelled_from_here(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "script.py").write_text(textwrap.dedent(PIPELINE))
    started = start(f"{folder}/script.py:retrain", params={"x": 4}, run_id="theirs", cause={"alarm": 7})
    wait_for((folder / "running").exists, "the second step")

    assert cancel("theirs") is RunState.CANCELLED
    assert started.process.wait(60) == 1
    assert not marked(tmp_path)
    record = wait("theirs", 10)
    assert (record.state, record.params, record.started.cause) == (RunState.CANCELLED, {"x": 4}, {"alarm": 7})


def test_a_driver_may_die_between_any_two_lines_of_its_journal(tmp_path: Path) -> None:
    def pipeline() -> Any:
        return steps.marked(str(tmp_path), "b", steps.marked(str(tmp_path), "a", 1))

    journal = pipelines.run(pipeline, run_id="mine").record.folder.journal
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8

    for cut in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:cut]))
        begun = [line for line in lines[:cut] if b'"step-started"' in line]
        before = count(tmp_path, "a"), count(tmp_path, "b")
        run = pipelines.resume("mine", pipeline)
        assert (run.state, run.result) == (RunState.COMPLETED, 1)
        # What had begun had also said how it ended: it is not run again. The others are run once.
        again = count(tmp_path, "a") - before[0], count(tmp_path, "b") - before[1]
        assert again == (int(len(begun) < 1), int(len(begun) < 2))
