"""A command as a train function: real programs, without workers."""

from __future__ import annotations

import pickle
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import FunctionError, ProgramError, SignatureError, TrialStopped
from cargobike.experiments.asking.function import check_signature, find_train
from cargobike.experiments.trial.command.command import Command
from support.watched_trial import WatchedTrial, inside


def python(code: str, *arguments: str, **options: Any) -> Command:
    return Command([sys.executable, "-c", code, *arguments], **options)


ARGPARSE = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--name", default="none")
arguments = parser.parse_args()
print("training", arguments.name)
print(json.dumps({"loss": arguments.lr * 2, "seed": int(os.environ["CARGOBIKE_SEED"])}))
"""


SPELLINGS = [["--lr", "{lr}", "--name", "{name}"], ["--lr={lr}", "--name={name}"], ["--name=x", "{flags}"]]


@pytest.mark.parametrize("arguments", SPELLINGS)
def test_parameters_reach_a_program_and_its_last_line_is_the_score(arguments: list[str]) -> None:
    assert python(ARGPARSE, *arguments)(lr=0.25, name="; $(x) 'y'") == {"loss": 0.5, "seed": 0}


def test_a_plain_number_gets_the_name_of_the_metric(capfd: pytest.CaptureFixture[str]) -> None:
    assert python("print('hello'); print({x} + 1)", metric="score")(x=2) == {"score": 3.0}


def test_a_score_is_read_from_a_file(tmp_path: Path) -> None:
    code = "import os; open(os.environ['CARGOBIKE_FOLDER'] + '/s.json', 'w').write('{\"a\": 1}')"
    with inside(WatchedTrial(tmp_path)):
        assert python(code, file="{folder}/s.json")() == {"a": 1}
    with pytest.raises(ProgramError, match="has not written its score"):
        python("print(9)", file="{folder}/s.json")()


def test_the_last_match_of_a_pattern_is_the_score() -> None:
    pattern = r"acc=(?P<accuracy>[\d.]+)"
    assert python("print('acc=0.5'); print('acc=0.75'); print('bye')", pattern=pattern)() == {"accuracy": 0.75}
    assert python("import sys; print('acc=0.25', file=sys.stderr)", pattern=pattern)() == {"accuracy": 0.25}
    assert python("print('acc=0.5')", pattern=r"acc=([\d.]+)", metric="top1")() == {"top1": 0.5}
    with pytest.raises(ProgramError, match=r"no line matched pattern='acc(.|\n)*  bye"):
        python("print('bye')", pattern="acc=(.*)")()


EPOCHS = "for epoch in range(4): print('epoch', epoch, 'loss', 1 / (epoch + 1))"
REPORT = r"epoch (?P<step>\d+) loss (?P<loss>\S+)"


def test_reports_are_streamed_and_the_last_is_the_score(tmp_path: Path) -> None:
    with inside(WatchedTrial(tmp_path)) as trial:
        assert python(EPOCHS, report=REPORT)() == {"loss": 0.25}
    assert trial.reports == [(0, {"loss": 1.0}), (1, {"loss": 0.5}), (2, {"loss": 1 / 3}), (3, {"loss": 0.25})]


ENDLESS = """
import itertools, os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
def end(*_):
    open(os.environ["CARGOBIKE_FOLDER"] + "/ended", "w").write(str(child.pid))
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
for epoch in itertools.count():
    print("epoch", epoch, "loss 1.0")
    time.sleep(0.05)
"""


def test_a_stop_ends_the_program_politely_and_what_it_started(tmp_path: Path) -> None:
    with inside(WatchedTrial(tmp_path, stop_at=2)) as trial, pytest.raises(TrialStopped):
        python(ENDLESS, report=REPORT)()
    assert trial.steps == [0, 1, 2]
    child = int((trial.files / "ended").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_program_that_fails_says_its_last_lines() -> None:
    program = python("import sys; print('out'); sys.exit('no such data')")
    with pytest.raises(ProgramError, match="ended with exit code 1") as caught:
        program()
    assert caught.value.exit_code == 1
    *_, first, second, title, command = str(caught.value).splitlines()
    assert sorted([first, second]) == ["  no such data", "  out"]
    assert title == "It was run as:"
    assert shlex.split(command)[1:] == ["-c", "import sys; print('out'); sys.exit('no such data')"]


def test_a_program_that_is_killed_names_the_signal() -> None:
    with pytest.raises(ProgramError, match="was killed by SIGKILL") as caught:
        python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")()
    assert caught.value.exit_code == -signal.SIGKILL


def test_a_program_that_says_nothing_useful_has_no_score() -> None:
    with pytest.raises(ProgramError, match="neither a number nor a JSON object: 'done'"):
        python("print('done')")()


def test_environment_variables_have_placeholders_too() -> None:
    assert python("import os; print(os.environ['LR'])", env={"LR": "{lr}"}, metric="lr")(lr=0.5) == {"lr": 0.5}


def test_what_cannot_be_run_is_refused_when_it_is_made() -> None:
    with pytest.raises(FunctionError, match="no program 'no-such-program'"):
        Command("no-such-program --lr {lr}")
    with pytest.raises(FunctionError, match="The command is empty"):
        Command([])
    with pytest.raises(FunctionError, match=r"pattern='\('.*no regular expression"):
        python("", pattern="(")
    with pytest.raises(FunctionError, match="report='loss' must have a group"):
        python("", report="loss")


def test_a_space_is_checked_against_the_placeholders() -> None:
    train = find_train(python("", "--lr", "{lr}", "--depth={depth}"))
    check_signature(train, ["lr", "depth"], optional_names=["depth"])
    with pytest.raises(
        SignatureError, match=r"'rate' is given, but nothing in the command.*\n.*\{lr\} is in the command"
    ):
        check_signature(train, ["rate", "depth"])
    check_signature(find_train(python("", "{flags}")), ["anything"])
    check_signature(find_train(python("", "{seed}")), ["seed"])


def test_names_that_lead_into_a_configuration_have_places() -> None:
    train = find_train(python("", "lr={model.lr}"))
    check_signature(train, ["model.lr"])
    with pytest.raises(SignatureError, match=r"Did you mean 'model\.lr'\?"):
        check_signature(train, ["model.rl"])


def test_all_parameters_need_an_argument_of_their_own() -> None:
    with pytest.raises(SignatureError, match=r"\{overrides\} stands for all parameters only as an argument of its own"):
        check_signature(find_train(python("", "+{overrides}")), ["lr"])


def test_a_file_that_is_named_by_a_parameter_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ProgramError, match="names a parameter that this trial does not have"):
        python("print(1)", file="{name}.json")()


def test_a_command_travels() -> None:
    program = pickle.loads(pickle.dumps(python("print({x})", pattern="(.*)")))
    assert program(x=4) == {"value": 4.0}
    assert program.title == Path(sys.executable).name


def test_long_lines_and_bytes_that_are_no_text_do_no_harm() -> None:
    code = "import sys; sys.stdout.buffer.write(b'x' * 300000 + b'\\xff\\n'); print(5)"
    assert python(code)() == {"value": 5.0}
