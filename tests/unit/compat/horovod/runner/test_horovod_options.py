from __future__ import annotations

import pytest

from cargobike.compat.horovod.runner.launch import check_build
from cargobike.compat.horovod.runner.options import read_options


def test_the_program_keeps_its_own_options() -> None:
    asked, ignored = read_options(["-np", "2", "--gloo", "python", "train.py", "-np", "7", "--autotune", "--a", "1"])
    assert asked.num_proc == 2
    assert asked.command == ["python", "train.py", "-np", "7", "--autotune", "--a", "1"]
    assert ignored == []


def test_two_dashes_end_the_options() -> None:
    asked, _ = read_options(["-np", "2", "--", "sh", "-c", "true"])
    assert asked.command == ["sh", "-c", "true"]


def test_tuning_options_are_accepted_and_named() -> None:
    words = "-np 2 --fusion-threshold-mb 32 --cycle-time-ms 3.5 --autotune --hierarchical-allreduce -p 22 --tcp x"
    _, ignored = read_options(words.split())
    assert ignored == [
        "--fusion-threshold-mb",
        "--cycle-time-ms",
        "--ssh-port",
        "--hierarchical-allreduce",
        "--autotune",
        "--tcp",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("python train.py", "say how many ranks"),
        ("-np 0 python train.py", "at least 1"),
        ("-np 2", "say what to run"),
        ("-np 2 --mpi python train.py", "no MPI"),
        ("-np 2 --min-np 3 python train.py", "in this order"),
        ("-np 2 --min-np 1 --max-np 1 python train.py", "in this order"),
        ("-np 2 -H a:1 --hostfile b python train.py", "not allowed with"),
        ("-np 2 --no-such-option python train.py", "unrecognized arguments: --no-such-option"),
    ],
)
def test_what_cannot_be_done_is_said(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        read_options(words.split())
    assert leaving.value.code == 2
    assert message in capsys.readouterr().err


def test_check_build_says_what_there_is() -> None:
    text = check_build()
    assert "[X] PyTorch" in text
    assert "[X] Gloo" in text
    assert "[ ] MPI" in text
    assert "[ ] MXNet" in text
