"""Programs for Horovod, started as their users start them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.compat.horovod import run
from cargobike.core.errors import InvalidInputError
from support.scripts import environment, run_script


def horovodrun(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cargobike.compat.horovod.runner", *words],
        cwd=folder,
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_function_returns_by_rank_and_what_it_prints_is_shown(tmp_path: Path) -> None:
    told = run_script(
        tmp_path,
        """
        import json, os, sys, io
        from contextlib import redirect_stdout
        from cargobike.compat import horovod

        class Answer:
            def __init__(self, *parts): self.parts = parts

        def train(factor, plus=0):
            print("hello")
            names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
            return Answer(factor, plus, [int(os.environ[f"HOROVOD_{name}"]) for name in names], os.getcwd())

        if __name__ == "__main__":
            printed = io.StringIO()
            with redirect_stdout(printed):
                answers = horovod.run(train, (3,), {"plus": 4}, np=2)
                local = 5
                numbers = horovod.run(lambda: local + int(os.environ["HOROVOD_RANK"]), num_proc=2)
            print(json.dumps([[a.parts for a in answers], numbers, sorted(printed.getvalue().splitlines())]))
        """,
    )
    here = str(tmp_path)
    assert told == [
        [[3, 4, [0, 2, 0, 2, 0, 1], here], [3, 4, [1, 2, 1, 2, 0, 1], here]],
        [5, 6],
        ["[0]<stdout>:hello", "[1]<stdout>:hello"],
    ]


def test_a_rank_that_fails_is_named_with_its_traceback() -> None:
    def train() -> None:
        import os
        import time

        if os.environ["HOROVOD_RANK"] == "1":
            raise ValueError("seven")
        time.sleep(300)

    with pytest.raises(RuntimeError, match=r"(?s)rank 1 .*raise ValueError\(.seven.\)") as failure:
        run(train, num_proc=2)
    assert failure.value.rank == 1  # type: ignore[attr-defined]


def test_a_rank_that_is_killed_ends_the_job_at_once() -> None:
    def train() -> None:
        import os
        import signal
        import time

        if os.environ["HOROVOD_RANK"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(300)

    with pytest.raises(RuntimeError, match=r"rank 0 .*SIGKILL"):
        run(train, num_proc=2)


def test_a_function_runs_on_as_many_ranks_as_are_discovered(tmp_path: Path) -> None:
    script = tmp_path / "hosts.sh"
    script.write_text("#!/bin/sh\necho localhost:2\n")
    script.chmod(0o755)

    def train() -> str:
        import os

        return os.environ["HOROVOD_ELASTIC"]

    assert run(train, num_proc=2, host_discovery_script=str(script)) == ["1", "1"]


def test_what_cannot_be_started_is_said_all_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)num_proc=0.*both given.*no MPI"):
        run(print, num_proc=0, hosts="a:1", hostfile="b", use_mpi=True)
    with pytest.raises(InvalidInputError, match="room for 1"):
        run(print, num_proc=2, hosts="localhost:1")
    with pytest.raises(InvalidInputError, match="min_num_proc=3, num_proc=2"):
        run(print, num_proc=2, min_num_proc=3)


def test_a_program_runs_as_ranks_with_their_output_before_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        import os, sys
        print(os.environ["HOROVOD_RANK"], os.environ["HOROVOD_SIZE"], sys.argv[1:])
        print(os.environ["RANK"], os.environ["HOROVOD_TIMELINE"], file=sys.stderr)
        """)
    )
    done = horovodrun(
        tmp_path, "-np", "2", "--gloo", "-H", "localhost:2", "--timeline-filename", "t.json", "--autotune",
        "python", "train.py", "--lr", "0.1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[0]<stdout>:0 2 ['--lr', '0.1']",
        "[1]<stdout>:1 2 ['--lr', '0.1']",
    ]
    assert f"[1]<stderr>:1 {tmp_path}/t.json" in done.stderr
    assert "--autotune: accepted, and without a meaning here" in done.stderr


def test_the_exit_code_is_that_of_the_first_failure_and_others_are_ended(tmp_path: Path) -> None:
    words = "test $HOROVOD_RANK = 1 && exit 3; echo $$ > pid; sleep 300"
    done = horovodrun(tmp_path, "-np", "2", "--output-filename", "out", "sh", "-c", words)
    assert done.returncode == 3
    assert "rank 1" in done.stderr
    assert "exited with code 3" in done.stderr


def test_a_program_that_is_killed_is_named_with_its_signal(tmp_path: Path) -> None:
    done = horovodrun(tmp_path, "-np", "2", "sh", "-c", "test $HOROVOD_RANK = 0 && kill -9 $$; sleep 300")
    assert done.returncode == 137
    assert "rank 0" in done.stderr
    assert "SIGKILL" in done.stderr


def test_output_can_go_to_a_folder(tmp_path: Path) -> None:
    done = horovodrun(tmp_path, "-np", "2", "--output-filename", "out", "sh", "-c", "echo rank $HOROVOD_RANK")
    assert done.returncode == 0
    assert done.stdout == ""
    assert [(tmp_path / f"out/rank.{rank}/stdout").read_text() for rank in (0, 1)] == ["rank 0\n", "rank 1\n"]


def test_other_machines_are_refused_with_what_to_do(tmp_path: Path) -> None:
    done = horovodrun(tmp_path, "-np", "2", "-H", "localhost:1,far-away:1", "true")
    assert done.returncode == 1
    assert "far-away: ranks are started on this machine only" in done.stderr


def test_programs_find_ours_as_horovod_and_their_operations_work(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        import torch
        import horovod.torch as hvd

        hvd.init()
        total = hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum)
        print(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), total.item())
        """)
    )
    done = horovodrun(tmp_path, "-np", "2", "python", "train.py")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:0 2 0 2 3.0", "[1]<stdout>:1 2 1 2 3.0"]
    assert "[1]<stderr>:cargobike" not in done.stderr  # what calls are called here is said once


def test_each_rank_may_be_started_by_hand_with_an_address(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        import torch
        import cargobike.compat.horovod.torch as hvd

        hvd.init()
        print(hvd.rank(), hvd.size(), hvd.cross_rank(), hvd.allreduce(torch.ones(1), op=hvd.Sum).item())
        """)
    )
    with socket.socket() as holder:  # kept until both have ended: no other program can take the port
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = str(holder.getsockname()[1])
        ranks = [
            subprocess.Popen(
                [sys.executable, "train.py"],
                cwd=tmp_path,
                env={
                    **environment(),
                    "HOROVOD_RANK": str(rank),
                    "HOROVOD_SIZE": "2",
                    "HOROVOD_LOCAL_RANK": "0",
                    "HOROVOD_HOSTNAME": f"host{rank}",
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                },
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert printed == ["0 2 0 2.0\n", "1 2 1 2.0\n"]


def ranks_in_experiment() -> dict[str, float]:
    import torch

    import cargobike.compat.horovod.torch as hvd

    hvd.init()
    total = hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum)
    hvd.shutdown()
    hvd.init()
    return {"rank": hvd.rank(), "size": hvd.size(), "total": total.item()}


def test_programs_join_the_gang_of_an_experiment() -> None:
    run_of_two = experiment.allreduce(ranks_in_experiment, workers=2, quiet=True)
    assert run_of_two.values == [{"rank": rank, "size": 2, "total": 3} for rank in range(2)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_launcher_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    words = ["-np", "2", "sh", "-c", "echo $$ > pid.$HOROVOD_RANK; sleep 1000"]
    launcher = subprocess.Popen(
        [sys.executable, "-m", "cargobike.compat.horovod.runner", *words],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    files = [tmp_path / f"pid.{rank}" for rank in range(2)]
    until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
    launcher.send_signal(how)
    _, errors = launcher.communicate(timeout=60)
    if how == signal.SIGINT:
        assert launcher.returncode == 130
        assert "interrupted" in errors
    for file in files:
        until(lambda file=file: not Path(f"/proc/{file.read_text().strip()}").exists())  # type: ignore[misc]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
