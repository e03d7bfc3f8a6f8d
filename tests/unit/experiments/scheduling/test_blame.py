"""Which rank of a gang kept the others waiting, told from stacks as Python writes them."""

from __future__ import annotations

import pytest

from cargobike.experiments.scheduling.blame import RUNNER, Stand, blame, describe, shorten

BELOW = f"""
  File "/site/{RUNNER}", line 90 in _call
  File "/site/{RUNNER}", line 60 in run
  File "/site/cargobike/workers/runner.py", line 20 in main"""


def stack(*frames: str, thread: str = "Current thread 0x1 (most recent call first):") -> str:
    """A thread that runs the train function, the deepest frame first."""
    return "\n".join([thread, *(f'  File "{frame}", line 7 in f' for frame in frames)]) + BELOW


COMPUTES = stack("/home/me/train.py")
WAITS = stack("/site/torch/distributed/distributed_c10d.py", "/home/me/train.py")


def culprit(*stands: tuple[int, str]) -> int:
    """Return the number of the stand that is blamed."""
    named = [Stand(f"rank {number}", step, text) for number, (step, text) in enumerate(stands)]
    first, _, rest = blame("no rank was heard of", named).partition(" stalled: no rank was heard of\n")
    assert rest
    return int(first.removeprefix("rank "))


def test_the_rank_that_does_not_wait_is_to_blame() -> None:
    assert culprit((5, WAITS), (9, COMPUTES), (1, WAITS)) == 1
    assert culprit((5, WAITS), (9, ""), (1, WAITS)) == 1, "it did not even respond"


def test_of_several_the_one_that_is_furthest_behind_is_to_blame() -> None:
    assert culprit((5, COMPUTES), (4, COMPUTES), (1, WAITS), (6, COMPUTES)) == 1
    assert culprit((5, WAITS), (-1, WAITS), (7, WAITS)) == 1, "where all wait"


@pytest.mark.parametrize(
    "frame",
    [
        "/site/torch/distributed/rendezvous.py",
        "/site/torch/nn/parallel/distributed.py",
        "/site/torch/autograd/graph.py",
        "/site/tensorflow/python/distribute/cross.py",
        "/site/tensorflow/python/eager/execute.py",
        "/site/jax/_src/lax/parallel.py",
        "/site/cargobike/experiments/trial/gang.py",
        "/site/cargobike/workers/wire/mailbox.py",
        "/site/cargobike/training/collectives.py",
    ],
)
def test_these_are_places_to_wait_in(frame: str) -> None:
    assert culprit((0, stack(frame, "/home/me/train.py")), (1, COMPUTES)) == 1


def test_only_the_deepest_frames_of_the_thread_of_the_function_count() -> None:
    wait, own = "/site/torch/distributed/c10d.py", "/home/me/train.py"
    assert culprit((0, stack(*[own] * 5, wait)), (1, COMPUTES)) == 1
    assert culprit((1, COMPUTES), (0, stack(*[own] * 6, wait))) == 1, "deep below it computes"
    beside = f'Thread 0x2 (most recent call first):\n  File "{wait}", line 3 in f\n\n'
    assert culprit((1, WAITS), (2, beside + COMPUTES)) == 1, "another of its threads waits"
    first = COMPUTES.replace("Current thread", "Thread")
    assert culprit((1, WAITS), (2, first + f'\nCurrent thread 0x2:\n  File "{wait}", line 3 in f')) == 1


def test_the_stacks_of_all_are_told_without_our_own_frames() -> None:
    told = blame("nothing", [Stand("a", 3, WAITS), Stand("b", 2, COMPUTES), Stand("c", 4, "")])
    assert told == (f"b stalled: nothing\n{COMPUTES.removesuffix(BELOW)}\na stood here:\n{WAITS.removesuffix(BELOW)}")
    assert blame("nothing", [Stand("c", 4, "")]) == (
        "c stalled: nothing\n  (its process did not respond when it was asked for its stack)"
    )


def test_a_stack_is_shortened_below_the_function_only() -> None:
    other = '\n\nThread 0x2 (most recent call first):\n  File "/usr/lib/threading.py", line 3 in wait'
    assert shorten(COMPUTES + other) == COMPUTES.removesuffix(BELOW) + other
    assert shorten(other) == other
    assert describe([Stand("a", 0, ""), Stand("b", 0, "x")]) == "b stood here:\nx"
