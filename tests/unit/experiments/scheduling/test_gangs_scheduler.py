"""Gangs in the scheduler: parameter servers, elastic gangs, stalls, neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

import cargobike
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import Attempt
from cargobike.experiments.scheduling.blame import OWN_WAITS, RUNNER, Stand, blame
from cargobike.experiments.scheduling.events import Outbox
from cargobike.experiments.scheduling.roster import Roster
from support.scheduler_world import HEADER, Story


def roster(hosts: dict[str, str]) -> Roster:
    made = Roster(Outbox(ExperimentRecord(HEADER)), len(hosts), 3)
    made.start_up_to(len(hosts))
    for worker, host in hosts.items():
        made.arrived(ev.WorkerArrived(at=0.0, worker=worker, host=host))
    return made


def test_a_gang_that_fits_one_host_stays_there_and_leaves_larger_ones_whole() -> None:
    made = roster({"w0": "a", "w1": "b", "w2": "a", "w3": "b", "w4": "a"})
    assert made.take(2, 0) == ("w1", "w3")


def test_ranks_of_one_host_follow_each_other() -> None:
    made = roster({"w0": "a", "w1": "b", "w2": "a", "w3": "b"})
    assert made.take(4, 0) == ("w0", "w2", "w1", "w3")


WAITING = 'Thread 0x1 (most recent call first):\n  File "x/torch/distributed/c.py", line 1 in all_reduce\n  File "t.py", line 2 in train\n  File "cargobike/experiments/trial/program.py", line 3 in run\n'  # noqa: E501
ASLEEP = 'Thread 0x1 (most recent call first):\n  File "t.py", line 9 in train\n  File "cargobike/experiments/trial/program.py", line 3 in run\n'  # noqa: E501


@pytest.mark.parametrize(
    ("stands", "culprit"),
    [
        ([Stand("rank 0", 3, WAITING), Stand("rank 1", 3, ASLEEP)], "rank 1"),
        ([Stand("rank 0", 3, ASLEEP), Stand("rank 1", 3, WAITING)], "rank 0"),
        ([Stand("rank 0", 3, WAITING), Stand("rank 1", 2, WAITING)], "rank 1"),
        ([Stand("rank 0", 3, WAITING), Stand("rank 1", 3, "")], "rank 1"),
    ],
)
def test_the_culprit_is_who_waits_for_nobody(stands: list[Stand], culprit: str) -> None:
    text = blame("nobody moved", stands)
    assert text.startswith(f"{culprit} stalled: nobody moved")
    assert "program.py" not in text


def test_the_culprits_stack_comes_first_and_then_those_of_the_others() -> None:
    text = blame("no rank moved", [Stand("rank 0", 3, WAITING), Stand("rank 1", 3, ASLEEP), Stand("rank 2", 3, "")])
    assert list(filter(None, text.splitlines())) == [
        "rank 1 stalled: no rank moved",
        "Thread 0x1 (most recent call first):",
        '  File "t.py", line 9 in train',
        "rank 0 stood here:",
        "Thread 0x1 (most recent call first):",
        '  File "x/torch/distributed/c.py", line 1 in all_reduce',
        '  File "t.py", line 2 in train',
    ]


def test_of_several_suspects_the_one_furthest_behind_is_named_and_may_be_silent() -> None:
    text = blame("no rank moved", [Stand("rank 0", 3, ASLEEP), Stand("rank 1", 2, "")])
    assert text.startswith("rank 1 stalled: no rank moved\n  (its process did not respond when it was asked")
    assert text.count("stood here") == 1


@pytest.mark.parametrize(("depth", "culprit"), [(5, "rank 1"), (6, "rank 0")])
def test_only_the_deepest_frames_tell_whether_a_rank_waits(depth: int, culprit: str) -> None:
    frames = ['  File "t.py", line 2 in train\n'] * depth
    frames.append('  File "x/torch/distributed/c.py", line 1 in all_reduce\n')
    stack = "".join(["Thread 0x1 (most recent call first):\n", *frames, f'  File "{RUNNER}", line 3 in run\n'])
    ranks = [Stand("rank 0", 3, stack), Stand("rank 1", 4, ASLEEP)]
    assert blame("no rank moved", ranks).startswith(f"{culprit} stalled")


def test_only_the_thread_of_the_train_function_is_looked_at() -> None:
    beside = 'Thread 0x2 (most recent call first):\n  File "x/torch/distributed/c.py", line 1 in serve\n'
    ranks = [Stand("rank 0", 3, beside + ASLEEP), Stand("rank 1", 4, ASLEEP)]
    assert blame("no rank moved", ranks).startswith("rank 0 stalled")


@pytest.mark.parametrize("file", [RUNNER, *OWN_WAITS])
def test_the_files_that_stacks_are_searched_for_exist(file: str) -> None:
    assert Path(cargobike.__file__).parent.parent.joinpath(file).is_file()


def test_parameter_servers_are_sent_home_when_all_others_have_returned() -> None:
    story = Story(workers=2, gang=2, servers=1, num_trials=1)
    story.suggest_next()
    story.join_all()
    assert sorted(story.workers) == ["s0", "w0", "w1"]
    story.end_on("w0")
    assert not story.workers["s0"].job.halted  # type: ignore[union-attr]
    story.end_on("w1")
    assert story.workers["s0"].job.halted  # type: ignore[union-attr]
    story.end_on("s0", "stopped")
    assert story.states == ["completed"]
    assert len(story.trials[0].values) == 2


def test_a_server_that_dies_costs_the_attempt() -> None:
    story = Story(workers=1, gang=1, is_distributed=True, servers=1, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.lose("s0")
    assert story.workers["w0"].job.halted  # type: ignore[union-attr]
    story.end_on("w0", "stopped")
    story.join_all()
    assert story.job("w0") == (0, 2)


def test_an_elastic_gang_starts_with_what_there_is_and_grows_at_a_checkpoint() -> None:
    story = Story(workers=3, gang=3, least_gang=1, elastic_wait_s=5.0, num_trials=1)
    story.suggest_next()
    story.happen(story.arrive(story.workers["w0"]))
    assert story.job("w0") is None, "others are on their way"
    story.at += 6.0
    story.happen(ev.Tick(at=story.at))
    assert story.job("w0") == (0, 1)
    story.happen(story.arrive(story.workers["w1"]))
    assert story.job("w1") is None
    story.happen(ev.CheckpointWritten(at=story.at, worker="w0", trial=0, attempt=1, step=4, path="x"))
    assert story.workers["w0"].job.halted  # type: ignore[union-attr]
    story.end_on("w0", "stopped")
    story.at += 6.0
    story.happen(ev.Tick(at=story.at))
    assert story.job("w0") == story.job("w1") == (0, 2)


def test_an_elastic_gang_that_loses_one_goes_on_without_it() -> None:
    story = Story(workers=2, gang=2, least_gang=1, elastic_wait_s=5.0, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.lose("w1")
    story.end_on("w0", "stopped")
    story.at += 6.0
    story.happen(ev.Tick(at=story.at))
    assert story.job("w0") == (0, 2)


def test_a_gang_is_ended_when_one_stands_still_and_nobody_says_anything() -> None:
    story = Story(workers=2, gang=2, stall_timeout_s=10.0, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.at += 8.0
    story.happen(ev.RankActive(at=story.at, worker="w1", trial=0))
    story.at += 8.0
    quiet = ev.RankQuiet(at=story.at, worker="w0", trial=0, attempt=1, idle_s=16.0)
    story.happen(quiet)
    assert not story.workers["w0"].job.halted, "the other one has just said something"  # type: ignore[union-attr]
    story.at += 3.0
    story.happen(ev.RankQuiet(at=story.at, worker="w0", trial=0, attempt=1, idle_s=19.0))
    assert all(story.workers[name].job.halted for name in ("w0", "w1"))  # type: ignore[union-attr]


def test_losses_after_progress_do_not_count() -> None:
    story = Story(workers=2, gang=2, num_trials=1)
    story.suggest_next()
    story.join_all()
    for attempt in range(1, 8):
        story.happen(ev.CheckpointWritten(at=story.at, worker="w0", trial=0, attempt=attempt, step=attempt, path="x"))
        story.end_on("w1", "lost")
        story.end_on("w0", "stopped")
        assert story.states == ["running"]


def test_a_late_word_of_a_rank_that_has_ended_is_no_sign_of_life() -> None:
    story = Story(workers=2, gang=2, stall_timeout_s=10.0, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.end_on("w1")
    story.at += 8.0
    story.happen(ev.RankActive(at=story.at, worker="w1", trial=0))
    story.at += 3.0
    story.happen(ev.RankQuiet(at=story.at, worker="w0", trial=0, attempt=1, idle_s=11.0))
    assert story.workers["w0"].job.halted  # type: ignore[union-attr]


def test_a_checkpoint_is_a_sign_of_life() -> None:
    story = Story(workers=2, gang=2, stall_timeout_s=10.0, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.at += 8.0
    story.happen(ev.CheckpointWritten(at=story.at, worker="w0", trial=0, attempt=1, step=4, path="x"))
    story.at += 8.0
    story.happen(ev.RankQuiet(at=story.at, worker="w1", trial=0, attempt=1, idle_s=16.0))
    assert not story.workers["w1"].job.halted  # type: ignore[union-attr]
    story.at += 3.0
    story.happen(ev.RankQuiet(at=story.at, worker="w1", trial=0, attempt=1, idle_s=19.0))
    assert story.workers["w1"].job.halted  # type: ignore[union-attr]


def test_servers_are_the_last_members_of_a_gang() -> None:
    attempt = Attempt(0, 1, ("w0", "w1", "s0"), None, ("a", "a", "b"), 1)
    assert [attempt.is_server(worker) for worker in attempt.workers] == [False, False, True]
    assert not Attempt(0, 1, ("w0",), None).is_server("w0")
