"""A gang never hangs: a rank that dies, stalls or leaves too early ends it, is named, and the gang begins again."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from cargobike import experiment, trial
from cargobike.core.errors import TrialFailedError
from cargobike.experiments.results.result import Result
from cargobike.training import collectives
from support.watching import Script, ancestors, marked, wait_for


def ends_of(result: Result) -> list[str]:
    """Return how each attempt of the only trial ended."""
    return [attempt.ended or "" for attempt in result._record.attempts[0]]


# -- without any framework -------------------------------------------------------------------------------------------


def _die_once(how: str) -> int:
    begun: int = trial.checkpoint.load(0)
    for step in range(begun, 4):
        trial.report(value=step, step=step)
        trial.checkpoint.save(step + 1)
        trial.barrier()
        if step == 1 and trial.attempt == 1:
            if trial.rank == 1:
                number = signal.SIGINT if how == "interrupted rank" else signal.SIGKILL
                os.kill(ancestors(2)[-1] if how == "agent" else os.getpid(), number)
            time.sleep(60)
    return begun


@pytest.mark.parametrize("who", ["rank", "interrupted rank", "agent"])
def test_a_gang_goes_on_from_its_checkpoint_when_one_is_killed(who: str) -> None:
    result = experiment.allreduce(_die_once, params={"how": who}, workers=2, quiet=True)
    assert result.values == [2.0, 2.0]
    first, second = ends_of(result)
    assert re.match(r"rank 1 on \S+ \(last step 1\)", first)
    assert ("KeyboardInterrupt" if who == "interrupted rank" else "SIGKILL") in first
    assert second == "completed"
    assert [step for step, _ in result.trials[0].curve] == [0, 1, 2, 3]


def _sleep_on_rank_1() -> None:
    trial.report(value=0, step=trial.rank)
    trial.barrier()
    if trial.rank == 1:
        time.sleep(600)
    collectives.barrier("trial.barrier", timeout_s=0.5)


def test_a_rank_that_never_comes_is_named_with_its_stack() -> None:
    with pytest.raises(TrialFailedError) as caught:
        experiment.allreduce(_sleep_on_rank_1, workers=2, stall_timeout_s=60, quiet=True)
    text = str(caught.value)
    assert "gave up after 3 lost attempts" in text
    assert re.search(r"waited 0\.5 s for 'trial\.barrier#2' of rank 1", text)
    assert re.search(r"rank 1 on \S+ \(last step 1\) stood here:", text)
    assert "in _sleep_on_rank_1" in text
    assert "program.py" not in text


STALL_S = 3
"""How long ranks may stand still: so long that none does for want of a processor on a busy machine."""


def _be_stopped() -> int:
    if trial.rank == 1 and trial.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    while trial.rank == 0 and trial.attempt == 1:
        time.sleep(1)
    return trial.attempt


def test_a_gang_that_stands_still_is_ended() -> None:
    result = experiment.allreduce(_be_stopped, workers=2, stall_timeout_s=STALL_S, quiet=True)
    assert result.values == [2.0, 2.0]
    first = ends_of(result)[0]
    assert re.search(r"rank [01] on \S+ \(no step reported\) stalled: no rank .* stall_timeout_s=3 s", first)
    assert re.search(r"rank 0.*(?s:.*)in _be_stopped", first)


def _compute_for_long() -> float:
    until = time.monotonic() + 1.5 * STALL_S
    while time.monotonic() < until:
        sum(range(1000))
    return 1.0


def test_ranks_that_compute_without_a_word_are_left_alone() -> None:
    result = experiment.allreduce(_compute_for_long, workers=2, stall_timeout_s=STALL_S, quiet=True)
    assert ends_of(result) == ["completed"]


# -- with torch ------------------------------------------------------------------------------------------------------

WITH_TORCH = """
    import json, os, signal, sys, time
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from cargobike import experiment, trial

    def killed():
        dist.init_process_group()
        begun = trial.checkpoint.load(0)
        for step in range(begun, 6):
            dist.all_reduce(torch.ones(1))
            trial.report(value=step, step=step)
            trial.checkpoint.save(step + 1)
            if step == 3 and trial.attempt == 1 and trial.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        return begun

    def stalled():
        dist.init_process_group()
        for step in range(6):
            dist.all_reduce(torch.ones(1))
            if step == 3 and trial.rank == 1:
                time.sleep(600)
            trial.report(value=step, step=step)
        return 0

    def uneven():
        dist.init_process_group()
        for _ in range(3 + trial.rank):
            dist.all_reduce(torch.ones(1))
        return 0

    def torn_down():
        dist.init_process_group()
        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        model(torch.rand(8, 4)).sum().backward()
        dist.destroy_process_group()
        return 7

    def train(how):
        return {"killed": killed, "stalled": stalled, "uneven": uneven}.get(how, torn_down)()

    if __name__ == "__main__":
        result = experiment.launch(
            train,
            {"how": ["killed", "stalled", "uneven", "torn down", "again", "and again"]},
            gang=2,
            workers=2,
            stall_timeout_s=4,
            quiet=True,
        )
        print(json.dumps([[trial.values, trial.attempts, trial.error] for trial in result.trials]))
"""


def test_ranks_that_die_stall_or_leave_early_in_torch(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", WITH_TORCH)
    assert script.end(timeout_s=100.0) == 0, script.output
    killed, stalled, uneven, *torn_down = json.loads(script.output.splitlines()[0])
    assert killed == [[4.0, 4.0], 2, None]
    assert stalled[:2] == [[], 3]
    assert re.search(r"rank 1 on \S+ \(last step 2\) stalled:(?s:.*)in stalled", stalled[2])
    assert re.search(r"rank 0 on \S+ \(last step 3\) stood here:(?s:.*)in all_reduce", stalled[2])
    assert uneven[:2] == [[], 1]
    assert re.search(r"rank 0 .* returned while others were still waiting for it(?s:.*)rank 1 .*Traceback", uneven[2])
    assert torn_down == [[[7.0, 7.0], 1, None]] * 3


# -- the user --------------------------------------------------------------------------------------------------------

INTERRUPTED = """
    import time
    from pathlib import Path
    from cargobike import experiment, trial

    def train():
        Path(f"rank{trial.rank}").touch()
        if trial.rank == 0:
            trial.barrier()
        time.sleep(600)

    if __name__ == "__main__":
        experiment.allreduce(train, workers=3, working_directory="launch", quiet=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_gang(tmp_path: Path, how: signal.Signals) -> None:
    script = Script(tmp_path / "work", INTERRUPTED)
    for rank in range(3):
        script.wait_for_file(f"rank{rank}")
    assert len([process for process in marked(tmp_path) if process.pid != script.process.pid]) >= 6
    script.send(how)
    script.end()
    wait_for(lambda: not marked(tmp_path), "the end of every process")


RESUMED = """
    import time
    from pathlib import Path
    from cargobike import experiment, trial

    def train(folder):
        begun = trial.checkpoint.load(0)
        for step in range(begun, 6):
            trial.report(value=step, step=step)
            trial.checkpoint.save(step + 1)
            trial.barrier()
            if step == 2 and trial.attempt == 1:
                Path(folder, "is there").touch()
                time.sleep(600)
        print("rank", trial.rank)
        return begun

    if __name__ == "__main__":
        experiment.allreduce(train, params={"folder": str(Path.cwd())}, workers=2, quiet=True)
"""


def test_a_gang_whose_driver_is_killed_is_taken_up_again(tmp_path: Path) -> None:
    script = Script(tmp_path / "work", RESUMED)
    script.wait_for_file("is there")
    script.send(signal.SIGKILL)
    script.end()
    wait_for(lambda: not marked(tmp_path), "the end of every process")
    result = experiment.resume("last", quiet=True)
    assert result.values == [3.0, 3.0]
    assert result.reforms[0].reason == "its driver was lost"
    assert [result.logs(0, rank=rank) for rank in range(2)] == ["rank 0\n", "rank 1\n"]
