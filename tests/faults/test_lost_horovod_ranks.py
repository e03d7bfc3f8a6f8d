"""Elastic jobs for Horovod: a rank is killed, the others go on in their processes, new ones join."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.scripts import environment, run_script

COUNTING = """
    import json, os, signal, sys, time
    import cargobike.compat.horovod.torch as hvd

    def train(state, steps, until_there_are=0):
        while state.step < steps or hvd.size() < until_there_are:
            victim = 0 if "first" in sys.argv else hvd.size() - 1
            if hvd.rank() == victim and state.step == 3 and not os.path.exists("killed"):
                open("killed", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            hvd.allreduce(torch.ones(1000), name="ones")
            state.step += 1
            state.sizes = state.sizes + [hvd.size()]
            state.commit()
            time.sleep(0.01)
        return [os.getpid(), hvd.rank(), hvd.size(), state.step, state.sizes]

    import torch
"""


def job(folder: Path, *words: str, then: str = "", arguments: Sequence[str] = ()) -> tuple[subprocess.Popen[str], Path]:
    """Start a program that counts, as an elastic job."""
    program = folder / "count.py"
    program.write_text(textwrap.dedent(COUNTING) + textwrap.dedent(then))
    command = [sys.executable, "-m", "cargobike.compat.horovod.runner", *words, "python", str(program), *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return process, folder


def outcome(process: subprocess.Popen[str]) -> tuple[int, list[Any], str]:
    """Return how a job ended: its code, what its ranks printed, its errors."""
    out, err = process.communicate(timeout=180)
    lines = [line.partition(":")[2] for line in out.splitlines() if "<stdout>:" in line]
    return process.returncode, [json.loads(line) for line in lines], err


def test_ranks_that_are_left_go_on_and_return_by_rank(tmp_path: Path) -> None:
    answers = run_script(
        tmp_path,
        textwrap.dedent(COUNTING)
        + textwrap.dedent("""
        from cargobike.compat import horovod

        def rank_function(steps):
            hvd.init()
            first = hvd.rank()
            state = hvd.elastic.TorchState(step=0, sizes=[])
            return [first, *hvd.elastic.run(train)(state, steps)]

        if __name__ == "__main__":
            print(json.dumps(horovod.run(rank_function, (8,), num_proc=3, min_num_proc=2, max_num_proc=3)))
        """),
    )
    assert [answer[2] for answer in answers] == list(range(len(answers)))
    assert len(answers) >= 2
    assert all(answer[4] == 8 for answer in answers)
    sizes = answers[0][5]
    assert sizes[:3] == [3, 3, 3]
    assert sizes[3] == 2  # step 3 was begun by three, and done by the two that were left
    assert [answer[0] for answer in answers[:2]] == [0, 1]  # they had been there from the beginning


def test_a_rank_of_two_is_replaced_and_begins_with_the_state_of_the_other(tmp_path: Path) -> None:
    process, _ = job(
        tmp_path, "-np", "2", "--min-np", "1", then="""
        hvd.init()
        state = hvd.elastic.TorchState(step=0, sizes=[])
        print(json.dumps(hvd.elastic.run(train)(state, 10, until_there_are=2)))
        """,
    )  # fmt: skip
    code, answers, errors = outcome(process)
    assert code == 0, errors
    assert sorted(answer[1] for answer in answers) == [0, 1]
    assert answers[0][4] == answers[1][4]  # one history: the newcomer took it over
    assert answers[0][4][3] == 1
    assert [answer[2] for answer in answers] == [2, 2]


def test_the_rank_that_the_others_meet_at_may_be_lost_too(tmp_path: Path) -> None:
    process, _ = job(
        tmp_path, "-np", "3", "--min-np", "2", arguments=("first",), then="""
        hvd.init()
        was = hvd.rank()
        state = hvd.elastic.TorchState(step=0, sizes=[])
        print(json.dumps([was, *hvd.elastic.run(train)(state, 8)]))
        """,
    )  # fmt: skip
    code, answers, errors = outcome(process)
    assert code == 0, errors
    now = {answer[0]: answer[2] for answer in answers if answer[5][:4] == [3, 3, 3, 2]}
    assert now[1] == 0  # the next one keeps the meeting point, and gives its state to the others
    assert now[2] == 1


def test_fewer_than_the_least_are_an_error_within_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\ntest -e killed && echo localhost:1 || echo localhost:2\n")
    (tmp_path / "hosts.sh").chmod(0o755)
    words = ["-np", "2", "--min-np", "2", "--host-discovery-script", "./hosts.sh", "--elastic-timeout", "3"]
    process, _ = job(
        tmp_path, *words, then="""
        hvd.init()
        state = hvd.elastic.TorchState(step=0, sizes=[])
        hvd.elastic.run(train)(state, 10 ** 9)
        """,
    )  # fmt: skip
    code, _, errors = outcome(process)
    assert code == 1
    assert "of at least 2 ranks were there within 3 s" in errors
    assert "rank 1" in errors
    assert "SIGKILL" in errors


def test_ranks_join_when_hosts_are_found_and_leave_when_they_are_gone(tmp_path: Path) -> None:
    (tmp_path / "killed").touch()  # none is killed here
    (tmp_path / "hosts").write_text("localhost:1\n")
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\ncat hosts\n")
    (tmp_path / "hosts.sh").chmod(0o755)
    process, _ = job(
        tmp_path, "-np", "1", "--min-np", "1", "--max-np", "2", "--host-discovery-script", "./hosts.sh", then="""
        hvd.init()
        state = hvd.elastic.TorchState(step=0, sizes=[])

        @hvd.elastic.run
        def train_on(state):
            while not os.path.exists("enough"):
                state.step += 1
                if state.sizes[-1:] != [hvd.size()]:
                    state.sizes = state.sizes + [hvd.size()]
                    if hvd.rank() == 0:
                        open("sizes", "w").write(json.dumps(state.sizes))
                state.commit()
                time.sleep(0.02)
                if hvd.broadcast_object(os.path.exists("enough")):
                    return

        train_on(state)
        print(json.dumps([hvd.rank(), state.sizes]))
        """,
    )  # fmt: skip
    try:
        for sizes, hosts in (([1], "localhost:2\n"), ([1, 2], "localhost:1\n"), ([1, 2, 1], "localhost:1\n")):
            wait_for(process, tmp_path / "sizes", sizes)
            (tmp_path / "hosts").write_text(hosts)
        (tmp_path / "enough").touch()
        code, answers, errors = outcome(process)
    finally:
        process.kill()
        process.wait()
    assert code == 0, errors
    assert answers == [[0, [1, 2, 1]]]


def wait_for(process: subprocess.Popen[str], file: Path, sizes: list[int]) -> None:
    deadline = time.monotonic() + 90
    while not file.exists() or file.read_text() != json.dumps(sizes):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, file.read_text() if file.exists() else "no world has formed"
        time.sleep(0.05)
