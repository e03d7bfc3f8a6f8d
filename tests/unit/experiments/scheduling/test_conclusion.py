"""What came of an attempt, case by case, in the order of precedence."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.experiments.scheduling.attempt import Attempt
from cargobike.experiments.scheduling.blame import RUNNER
from cargobike.experiments.scheduling.conclusion import conclude
from cargobike.experiments.scheduling.events import AttemptEnded, Outcome

LOST = "worker w1 was lost: its process was ended by SIGKILL"


def end(worker: str, outcome: Outcome = "completed", **fields: Any) -> AttemptEnded:
    return AttemptEnded(at=1.0, worker=worker, trial=0, attempt=1, outcome=outcome, **fields)


def gang(*ends: AttemptEnded, servers: int = 0, **fields: Any) -> Attempt:
    """An attempt of two ranks, and servers, in which everybody has ended."""
    workers = ("w0", "w1", *(f"s{number}" for number in range(servers)))
    attempt = Attempt(0, 1, workers, hosts=("a",) * len(workers), servers=servers, **fields)
    attempt.ends = {one.worker: one for one in ends}
    attempt.open.clear()
    return attempt


def alone(*ends: AttemptEnded, **fields: Any) -> Attempt:
    attempt = Attempt(0, 1, ("w0",), **fields)
    attempt.ends = {one.worker: one for one in ends}
    attempt.open.clear()
    return attempt


def told(attempt: Attempt) -> tuple[str, str]:
    conclusion = conclude(attempt)
    return conclusion.state, conclusion.why or ""


# -- it returned -----------------------------------------------------------------------------------------------------


def test_a_value_of_rank_0_completes_it() -> None:
    conclusion = conclude(gang(end("w0", value=0.5), end("w1", value=float("nan"))))
    assert (conclusion.state, conclusion.why) == ("completed", None)
    assert conclusion.end is not None
    assert conclusion.end.value == 0.5
    assert conclusion.values == [0.5, "nan"]


def test_named_numbers_of_each_rank_are_kept_and_servers_return_none() -> None:
    ends = (end("w0", value=1.0, metrics={"a": 1.0}), end("w1"), end("s0", "stopped"))
    assert conclude(gang(*ends, servers=1)).values == [{"a": 1.0}, None]


def test_one_worker_has_no_values_of_ranks() -> None:
    assert conclude(alone(end("w0", value=1.0))).values == []


def test_a_verdict_that_came_too_late_does_not_undo_a_value() -> None:
    assert told(alone(end("w0", value=1.0), verdict=("stopped", "stopped by request"))) == ("completed", "")


def test_only_those_who_decide_must_return() -> None:
    assert told(gang(end("w0", value=1.0), end("w1", "stopped"), deciding=1)) == ("completed", "")


# -- it was decided about --------------------------------------------------------------------------------------------


def test_a_stop_at_a_milestone_holds_although_the_function_returned() -> None:
    assert told(alone(end("w0", value=1.0), verdict=("stopped", "ASHA"), was_judged=True)) == ("stopped", "ASHA")


def test_a_pause_is_a_pause() -> None:
    assert told(alone(end("w0", "paused"), verdict=("paused", "PBT"))) == ("paused", "PBT")


def test_a_pause_is_none_if_a_rank_failed() -> None:
    ends = (end("w0", "paused"), end("w1", "failed", error="ValueError"))
    assert told(gang(*ends, verdict=("paused", "PBT"))) == ("failed", "rank 1 on a (no step reported): ValueError")


def test_a_timeout_tells_the_last_words_of_rank_0() -> None:
    attempt = alone(end("w0", "failed", error="the last line"), verdict=("failed", "ran too long"))
    assert told(attempt) == ("failed", "ran too long\nthe last line")


def test_a_verdict_comes_before_a_loss() -> None:
    assert told(gang(end("w0", "stopped"), verdict=("stopped", "by request"), lost=LOST)) == ("stopped", "by request")


# -- it was lost -----------------------------------------------------------------------------------------------------


def test_a_lost_worker_comes_before_the_failures_of_others() -> None:
    assert told(gang(end("w0", "failed", error="Connection reset"), lost=LOST)) == ("lost", LOST)


def test_a_lost_worker_comes_before_a_value() -> None:
    assert told(gang(end("w0", value=1.0), end("w1"), lost=LOST))[0] == "lost"


def test_a_stall_names_the_rank_that_kept_the_others_waiting() -> None:
    waits = f'Thread 1:\n  File "torch/distributed/c.py", line 1\n  File "{RUNNER}", line 3'
    attempt = gang(end("w0", "stopped", stack=waits), end("w1", "stopped"), stall="nothing was reported for 3 s")
    state, why = told(attempt)
    assert state == "lost"
    assert why.startswith("rank 1 on a (no step reported) stalled: nothing was reported for 3 s")


def test_a_rank_that_returned_is_not_waited_for_a_second_time() -> None:
    waits = f'Thread 1:\n  File "torch/distributed/c.py", line 1\n  File "{RUNNER}", line 3'
    ends = (end("w1"), end("w0", "stopped", stack=waits))
    state, why = told(gang(*ends, stall="nothing was reported for 3 s", early=("w1",)))
    assert state == "failed"
    assert why.startswith("rank 1 on a (no step reported) returned while others were still waiting for it; every rank")
    assert "rank 0 on a (no step reported) stood here:" in why


def test_a_rank_that_hangs_by_itself_is_tried_again_though_another_has_returned() -> None:
    ends = (end("w1"), end("w0", "stopped", stack='Thread 1:\n  File "own.py", line 1'))
    state, why = told(gang(*ends, stall="nothing was reported for 3 s", early=("w1",)))
    assert state == "lost"
    assert why.startswith("rank 0 on a (no step reported) stalled: nothing was reported for 3 s")


def test_a_dead_process_comes_before_a_failure() -> None:
    ends = (end("w0", "failed", error="Connection reset"), end("w1", "lost", error="was ended by SIGKILL"))
    assert told(gang(*ends)) == ("lost", "rank 1 on a (no step reported): was ended by SIGKILL")


def test_an_end_without_a_word_is_named() -> None:
    assert told(alone(end("w0", "lost"))) == ("lost", "the attempt was lost")


# -- it failed -------------------------------------------------------------------------------------------------------


def test_the_first_failure_counts_and_names_its_rank() -> None:
    attempt = gang(end("w1", "failed", error="ValueError"), end("w0", "failed", error="KeyError"))
    attempt.steps["w1"] = 7
    assert told(attempt) == ("failed", "rank 1 on a (last step 7): ValueError")


def test_a_failure_comes_before_one_that_it_caused() -> None:
    symptom = end("w0", "lost", error="gloo: connection closed", is_symptom=True)
    assert told(gang(symptom, end("w1", "failed", error="ValueError")))[1].endswith("ValueError")


def test_a_rank_that_returned_too_early_is_named() -> None:
    state, why = told(gang(end("w0", "lost", error="timed out", is_symptom=True), end("w1", value=1.0)))
    assert state == "failed"
    assert why.startswith("rank 1 on a (no step reported) returned while others were still waiting for it")
    assert why.endswith("timed out")


def test_a_rank_that_missed_one_is_lost_with_where_the_others_stood() -> None:
    ends = (end("w0", "lost", error="timed out", is_symptom=True), end("w1", "stopped", stack="Thread 1: here"))
    state, why = told(gang(*ends))
    assert state == "lost"
    assert "rank 0 on a (no step reported): timed out" in why
    assert "rank 1 on a (no step reported) stood here:\nThread 1: here" in why


# -- it ended itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["stopped", "paused"])
def test_a_function_may_stop_by_itself(outcome: Outcome) -> None:
    assert told(alone(end("w0", outcome, error="enough"))) == ("stopped", "enough")


def test_an_attempt_on_which_nothing_ended_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="no rule applies"):
        conclude(alone())
