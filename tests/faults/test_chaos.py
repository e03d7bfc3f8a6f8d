"""Schedules of random faults: one of them quickly, fifty in `make test-slow`; `make chaos` plays hundreds."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any

import pytest

from faults.chaos.outside import read_history
from faults.chaos.playing import play
from faults.chaos.schedules import FAULTS, FAULTS_ON_SPARK, WORLDS, draw
from faults.chaos.ways import WAYS
from faults.chaos.worlds import Worlds


def test_a_search_survives_its_faults() -> None:
    with Worlds() as worlds:
        verdict = play(20, worlds)
    assert verdict.mistakes == []
    assert verdict.struck


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(100, 148, 4))
def test_searches_survive_every_fault(begin: int) -> None:
    assert _mistakes(range(begin, begin + 4)) == {}


@pytest.mark.slow
def test_searches_on_spark_survive_their_faults() -> None:
    assert _mistakes(range(100, 102), engine="spark") == {}


def _mistakes(seeds: Iterable[int], engine: str = "local") -> dict[int, list[str]]:
    """Play schedules; returns what went wrong, by the seed with which `--replay` plays it again."""
    with Worlds() as worlds:
        verdicts = [play(seed, worlds, engine=engine) for seed in seeds]
    return {verdict.seed: verdict.mistakes for verdict in verdicts if verdict.mistakes}


def test_a_seed_says_everything_about_a_schedule() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_schedules_that_follow_each_other_meet_everything() -> None:
    schedules = [draw(seed) for seed in range(50)]
    assert {one["rounds"][0][0]["kind"] for one in schedules} == set(FAULTS)
    assert {one["world"] for one in schedules} == set(WORLDS)
    assert {one["way"] for one in schedules} == set(WAYS)
    assert {draw(seed)["rounds"][0][0]["kind"] for seed in range(100, 148)} == set(FAULTS)
    on_spark = [draw(seed, "spark") for seed in range(20)]
    assert {one["rounds"][0][0]["kind"] for one in on_spark} == set(FAULTS_ON_SPARK)
    assert {one["world"] for one in on_spark} == {"shared disk", "no shared disk"}


def test_a_copy_of_a_finished_trial_has_nothing_left_to_report() -> None:
    facts = [
        {"fact": "trial-suggested", "trial": 0, "params": {"x": 0.5, "y": 1}, "copy_checkpoint_of": 7},
        {"fact": "attempt-started", "trial": 0, "attempt": 1},
    ]
    journal = _sealed(facts)
    for began, is_complete in [(12, True), (10, False)]:
        [trial] = read_history(journal, "plain", {(0, 1): began})[0].values()
        assert trial.is_complete is is_complete
        assert trial.reports == []


@pytest.mark.parametrize("began_in_2", [6, 12])
def test_reports_of_an_attempt_that_never_arrived_take_the_place_of_those_before(began_in_2: int) -> None:
    x, y = 0.5, 1
    reports = [(step, {"score": (step + 1.0) * (1.0 + x + y)}) for step in range(6)]
    facts = [{"fact": "trial-suggested", "trial": 0, "params": {"x": x, "y": y}}]
    for attempt, made in [(1, reports[:4]), (2, []), (3, reports[3:])]:
        facts.append({"fact": "attempt-started", "trial": 0, "attempt": attempt})
        facts += [
            {"fact": "reported", "trial": 0, "attempt": attempt, "step": step, "metrics": metrics}
            for step, metrics in made
        ]
    [trial] = read_history(_sealed(facts), "plain", {(0, 1): 0, (0, 2): began_in_2, (0, 3): 12})[0].values()
    assert trial.reports == reports
    assert bool(trial.mistakes) is (began_in_2 == 12)


def _sealed(facts: list[dict[str, Any]]) -> bytes:
    data, before = b"", "00000000"
    for number, fact in enumerate(facts, 1):
        line = json.dumps({**fact, "line": number, "prev": before}, separators=(",", ":"))[:-1]
        before = f"{zlib.crc32(line.encode()):08x}"
        data += f'{line},"crc":"{before}"}}\n'.encode()
    return data
