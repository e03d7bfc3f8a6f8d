"""Foresight: how a trial stands and how steeply it falls tell its end, and how much they tell is learned."""

from __future__ import annotations

import math
import random

import pytest

from cargobike.search.models.foresight import Foresight


def halving(end: float, fall: float) -> list[float]:
    """Return losses at three rungs and at the end: what is left to fall is a half each time."""
    return [end + fall / 2**place for place in range(4)]


def shown(curves: list[list[float]]) -> Foresight:
    """Return what has seen some curves to their end."""
    foresight = Foresight()
    for trial, curve in enumerate(curves):
        foresight.note(trial, curve[:3])
        foresight.note_end(trial, curve[3], 3)
    return foresight


def test_one_that_falls_steeply_overtakes_one_that_is_flat() -> None:
    rng = random.Random(1)
    foresight = shown([halving(rng.random(), 4 * rng.random()) for _ in range(20)])
    foresight.note(98, [0.50, 0.50])
    foresight.note(99, [0.90, 0.55])
    assert foresight.foreseen(98, 0) < foresight.foreseen(99, 0), "a single score says nothing about a fall"
    assert foresight.foreseen(98, 1) > foresight.foreseen(99, 1)


def test_before_some_have_ended_trials_rank_as_they_stand() -> None:
    foresight = shown([halving(0.1, 1.0), halving(0.2, 1.0)])
    foresight.note(98, [0.50, 0.50])
    foresight.note(99, [0.90, 0.55])
    assert [foresight.foreseen(trial, 1) for trial in (98, 99)] == [0.50, 0.55]


def test_how_much_of_a_fall_repeats_itself_is_learned() -> None:
    rng = random.Random(1)
    ends = [(0.2, 2.0), *((rng.random(), 4 * rng.random()) for _ in range(40))]
    falling = shown([halving(*end) for end in ends])
    falling.note(99, halving(0.2, 2.5)[:2])
    # At the second rung it stands at 1.45, far above the trials that have ended by then.
    as_it_ends = falling.expected()[0][0]
    assert falling.expected()[99][0] == pytest.approx(as_it_ends, abs=0.5)
    flat = shown([[end + fall, end, end, end] for end, fall in ends])
    flat.note(99, [1.0, 0.2])
    assert flat.expected()[99][0] == pytest.approx(flat.expected()[0][0], abs=0.5)


def test_curves_that_turn_up_are_foreseen_to_end_badly() -> None:
    rng = random.Random(2)
    # The quick ones are the best at the second rung, and worse from there on.
    quick = [[0.5 + x, 0.4 + x, 0.6 + x, 0.9 + x] for x in (rng.random() / 10 for _ in range(10))]
    slow = [[1.0 + x, 0.8 + x, 0.5 + x, 0.3 + x] for x in (rng.random() / 10 for _ in range(10))]
    foresight = shown([*quick, *slow])
    foresight.note(98, quick[0][:3])
    foresight.note(99, slow[0][:3])
    assert foresight.foreseen(98, 2) > foresight.foreseen(99, 2) + 1


def test_who_may_win_is_strict_where_early_scores_tell_the_end() -> None:
    ends = [0.1, 0.2, 0.3, 0.4, 0.5]
    clear = shown([[end + 0.3, end + 0.2, end + 0.1, end] for end in ends])
    blurred = shown(
        [[early, end + 0.2, end + 0.1, end] for early, end in zip((0.6, 0.8, 0.4, 0.5, 0.7), ends, strict=True)]
    )
    for foresight in (clear, blurred):
        foresight.note(98, [0.4])
        foresight.note(99, [0.7])
        assert foresight.may_win(98, 0)
    assert not clear.may_win(99, 0)
    assert blurred.may_win(99, 0)


def test_nothing_is_said_about_winners_before_some_have_ended() -> None:
    foresight = shown([halving(0.1, 1.0), halving(0.2, 1.0)])
    foresight.note(99, [-5.0])
    assert not foresight.may_win(99, 0)


def test_those_that_have_ended_are_sure_and_those_further_on_surer() -> None:
    rng = random.Random(1)
    foresight = shown([halving(rng.random(), 4 * rng.random()) for _ in range(20)])
    foresight.note(97, halving(0.5, 1.0)[:1])
    foresight.note(98, halving(0.5, 1.0)[:2])
    foresight.note(99, halving(0.5, 1.0)[:3])
    expected = foresight.expected()
    assert len(expected) == len(foresight) == 23
    assert all(expected[trial][1] == 0 for trial in range(20))
    assert expected[97][1] > expected[98][1] > 0
    assert expected[98][1] >= expected[99][1] > 0


def test_before_any_end_scores_count_as_they_are() -> None:
    foresight = Foresight()
    for trial in range(5):
        foresight.note(trial, [float(trial)])
    scores = [score for score, _ in foresight.expected().values()]
    assert scores == sorted(scores)
    assert all(variance > 0 for _, variance in foresight.expected().values())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_counts_as_the_worst(bad: float) -> None:
    foresight = shown([halving(end / 10, 1.0) for end in range(6)])
    foresight.note(98, [bad, bad])
    foresight.note(99, [1.0, bad])
    expected = foresight.expected()
    assert all(math.isfinite(score) for score, _ in expected.values())
    assert not foresight.may_win(98, 1)
    assert not foresight.may_win(99, 1)
    assert not foresight.note_end(99, bad, 3)
    assert foresight.expected()[99][1] > 0, "an end that is no number is none"


def test_equal_ends_are_no_trouble() -> None:
    foresight = shown([[1.0, 1.0, 1.0, 1.0] for _ in range(5)])
    foresight.note(99, [1.0])
    assert foresight.may_win(99, 0)
    assert all(math.isfinite(score) for score, _ in foresight.expected().values())


def test_how_much_a_rung_leaves_open_is_known_when_some_have_ended() -> None:
    rng = random.Random(1)
    ends = [rng.random() for _ in range(40)]
    tells = shown([[end + 1.0, end + 0.5, end + 0.2, end] for end in ends])
    silent = shown([[rng.random(), rng.random(), rng.random(), end] for end in ends])
    for rung in range(3):
        few, much = tells.left_open(rung), silent.left_open(rung)
        assert few is not None
        assert much is not None
        assert few < 0.2 < 0.8 < much <= 1
    assert shown([halving(0.1, 1.0)]).left_open(1) is None
    assert tells.left_open(7) is None
