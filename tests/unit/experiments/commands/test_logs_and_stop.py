"""Commands that deal with a living driver, each in a process of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cargobike.core.facts import TrialEnded
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState
from cargobike.testing.stores import JournalBuilder

ID = "20270101-000000-aaaa"
COMMAND = [sys.executable, "-m", "cargobike.cli"]


@pytest.fixture
def journal(tmp_path: Path) -> JournalBuilder:
    return JournalBuilder(ProjectFolder(tmp_path), ID)


def write(journal: JournalBuilder, trial: int, text: bytes, stream: str = "stdout") -> None:
    place = journal.folder.trial(trial)
    place.root.mkdir(parents=True, exist_ok=True)
    with (place.stdout if stream == "stdout" else place.stderr).open("ab") as file:
        file.write(text)


def logs(*words: str) -> bytes:
    return subprocess.run([*COMMAND, "logs", ID, *words], capture_output=True, check=True, timeout=300).stdout


def test_logs_of_one_trial_are_what_it_wrote(journal: JournalBuilder) -> None:
    number = journal.start(lr=1)
    write(journal, number, b"raw \x1b[2J\xff bytes\n")
    write(journal, number, b"warning\n", "stderr")
    journal.let_go()
    assert logs("--trial", "0", "--stdout") == b"raw \x1b[2J\xff bytes\n"
    assert logs("--trial", "0", "--stderr") == b"warning\n"
    assert logs("--trial", "0") == b"raw \x1b[2J\xff bytes\nwarning\n"


def test_logs_of_all_trials_say_whose_they_are(journal: JournalBuilder) -> None:
    for text in (b"one\n", b"two\n"):
        write(journal, journal.start(lr=1), text)
    journal.start(lr=2)
    journal.let_go()
    assert logs() == b"==> trial 0000 stdout <==\none\n\n==> trial 0001 stdout <==\ntwo\n"


def test_a_trial_that_is_not_there_is_an_error(journal: JournalBuilder) -> None:
    journal.start(lr=1)
    journal.let_go()
    done = subprocess.run([*COMMAND, "logs", ID, "--trial", "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "There is no trial 7 in 20270101-000000-aaaa; it has trials 0 to 0." in done.stderr


def test_a_terminal_is_not_at_the_mercy_of_what_was_written(journal: JournalBuilder) -> None:
    number = journal.start(lr=1)
    write(journal, number, b"\x1b]0;owned\x07 \x1b[32mgreen\x1b[0m \x1b[2J\n")
    journal.let_go()
    ours, theirs = pty.openpty()
    try:
        subprocess.run([*COMMAND, "logs", ID, "--trial", "0", "--stdout"], stdout=theirs, check=True, timeout=300)
        shown = os.read(ours, 10_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert "␛]0;owned␇ \x1b[32mgreen\x1b[0m ␛[2J" in shown


@pytest.mark.parametrize("ending", ["trial", "experiment", "death"])
def test_following_ends_when_there_is_nothing_more_to_come(journal: JournalBuilder, ending: str) -> None:
    journal.hold()
    number = journal.start(lr=1)
    write(journal, number, b"first\n")
    command = [*COMMAND, "logs", ID, "--trial", "0", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"first\n"
        write(journal, number, b"second\n")
        assert child.stdout.readline() == b"second\n"
        write(journal, number, b"last\n")
        if ending == "trial":
            journal.add(TrialEnded(at=journal.tick(), trial=number, state="completed", value=1.0))
        elif ending == "experiment":
            journal.end()
        else:
            journal.let_go()
        assert child.stdout.read() == b"last\n"
        assert child.wait(timeout=300) == 0
    journal.let_go()


def test_stop_waits_until_the_driver_has_ended(journal: JournalBuilder) -> None:
    journal.hold()
    journal.complete(0.5, lr=1)
    asked = threading.Event()

    def drive() -> None:
        while not journal.folder.stop_request.exists():
            asked.wait(0.01)
        journal.end(ExperimentState.INTERRUPTED, "asked to stop")

    driver = threading.Thread(target=drive)
    driver.start()
    done = subprocess.run([*COMMAND, "stop", ID], capture_output=True, text=True, timeout=300, check=False)
    driver.join()
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{ID} is interrupted, with 1 trials done.\n"
    assert not journal.folder.stop_request.exists()


PATIENT = """
import time

def train(x):
    print("begun", flush=True)
    while True:
        time.sleep(0.05)
"""


def test_a_real_search_can_be_followed_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    run = [*COMMAND, "run", f"{tmp_path}/patient.py:train", "--param", "x=1", "--name", "patient"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as search:
        assert search.stdout is not None
        assert "patient" in search.stdout.readline()
        with subprocess.Popen([*COMMAND, "logs", "patient", "-f"], stdout=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == b"==> trial 0000 stdout <==\n"
            assert follower.stdout.readline() == b"begun\n"
            stop = subprocess.run([*COMMAND, "stop", "patient"], capture_output=True, text=True, check=False)
            assert stop.returncode == 0, stop.stderr
            assert " is interrupted, with " in stop.stdout
            assert follower.wait(timeout=300) == 0
        assert search.wait(timeout=300) == 1
