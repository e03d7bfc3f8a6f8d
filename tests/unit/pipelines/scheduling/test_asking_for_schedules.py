"""Asking for schedules: what is kept, what is refused and in which words, what a user may change."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cargobike import data, features, pipelines, project
from cargobike.core.errors import FunctionError, InvalidInputError, NotFoundError
from cargobike.pipelines.scheduling.times.times import Every, read_period

SOURCE = """
def retrain(lr=0.1, rows=10):
    return lr

def needs(path):
    return path
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.py").write_text(SOURCE)
    project.use(tmp_path / "project")
    yield
    project.use(None)


def schedule(function: str = "retrain", **asked: Any) -> pipelines.Schedule:
    return pipelines.schedule(f"flows.py:{function}", **asked)


def test_a_schedule_is_kept_and_found_again(tmp_path: Path) -> None:
    made = schedule(cron="0 3 * * *", timezone="Europe/Oslo", name="nightly", lr=0.5)
    found = pipelines.find_schedule("nightly")
    assert repr(found) == "<Schedule nightly: 0 3 * * * (Europe/Oslo)>"
    assert found.state == made.state
    assert str(found.state.plan.target) == f"{tmp_path}/flows.py:retrain"
    assert found.state.plan.arguments == {"lr": 0.5}
    assert found.next_time is not None
    assert (found.next_time.hour, found.next_time.tzname()) in {(3, "CET"), (3, "CEST")}
    assert [one.name for one in pipelines.schedules()] == ["nightly"]


def test_asking_again_changes_nothing_or_what_is_different() -> None:
    first = schedule(every="1h")
    assert schedule(every="1h").state == first.state
    other = schedule(every="1h", lr=0.9)
    assert other.state.plan.arguments == {"lr": 0.9}
    assert other.next_time == first.next_time
    assert schedule(every=timedelta(hours=2)).state.plan.every_s == 7200


def test_new_code_does_not_delay_it(tmp_path: Path) -> None:
    first = schedule(every="1h")
    (tmp_path / "flows.py").write_text(f"{SOURCE}# changed\n")
    second = schedule(every="1h")
    assert first.state.plan.target.fingerprint != second.state.plan.target.fingerprint
    assert second.next_time == first.next_time


def test_pause_resume_and_remove() -> None:
    one = schedule(every="1h")
    assert one.pause().next_time is None
    assert pipelines.find_schedule("retrain").is_paused
    assert one.resume().next_time is not None
    one.remove()
    with pytest.raises(NotFoundError, match="no schedule 'retrain' in this project; there is none"):
        pipelines.find_schedule("retrain")
    assert schedule(every="1h").name == "retrain"


def test_a_trigger_counts_from_the_moment_at_which_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "old.csv").write_text("1")
    made = schedule(when=data.arrived("in/*.csv"))
    (mark,) = made.state.marks.values()
    assert len(mark) > 10
    assert made.next_time is None
    assert made.words == f"when {tmp_path}/in/*.csv arrived"


def test_what_it_is_to_wait_for_must_exist() -> None:
    with pytest.raises(NotFoundError, match="There is no feature group 'teams'"):
        schedule(when=features.changed("teams"))
    assert pipelines.schedules() == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, r"nothing sets it off; give every="),
        ({"every": "0s"}, r"every must be between one second and ten years.*'0s' was given"),
        ({"every": "soon"}, r"every must be a number of seconds"),
        ({"every": "200y"}, r"every must be a number of seconds"),
        ({"cron": "0 25 * * *"}, r"hour '25': '25' is not one of 0 to 23"),
        ({"cron": "0 3 * * *", "timezone": "Europe/Olso"}, r"Did you mean 'Europe/Oslo'\?"),
        ({"every": "1d", "cron": "@daily"}, r"every= and cron= are given"),
        ({"every": "1d", "overlap": "skpi"}, r"overlap='skpi' was given; 'skip', 'queue', 'cancel' are known.*'skip'"),
        ({"every": "1d", "catch_up": "some"}, r"catch_up='some' was given"),
        ({"every": "1d", "catch_up": "all", "overlap": "skip"}, r"catch_up='all' needs overlap='queue'"),
        ({"every": "1d", "when": "teams"}, r"when= has 'teams', which is no trigger; give features.changed"),
        ({"every": "1d", "lrr": 1}, r"has no parameter 'lrr'.*Did you mean 'lr'\?"),
        ({"every": "1d", "lr": object()}, r"lr is a object; give plain data"),
        ({"every": "1d", "name": "a/b"}, r"'a/b' cannot be the name of a schedule"),
    ],
)
def test_what_is_wrong_is_said(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s){words}"):
        schedule(**asked)


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        schedule(every="0s", cron="x", overlap="no", timezone="Mars")
    assert len(caught.value.mistakes) == 5


def test_a_parameter_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidInputError, match="the parameter 'path' is missing"):
        schedule("needs", every="1d")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("flows.py:retran", r"has no function 'retran'.*Did you mean 'retrain'"),
        ("nothing.py:retrain", r"'nothing.py' is not a Python file"),
        ("flows.py", r"names no function; write 'flows.py:retrain'"),
        ("broken.py:retrain", r"(?s)broken"),
    ],
)
def test_a_function_that_cannot_be_found_is_refused(tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "broken.py").write_text("def retrain(:\n")
    with pytest.raises(FunctionError, match=words):
        pipelines.schedule(place, every="1d")


def test_a_function_that_another_process_cannot_import_is_refused() -> None:
    def local() -> None: ...

    for function in (local, lambda: None, functools.partial(local)):
        with pytest.raises(FunctionError, match=r"another process cannot import it.*cargobike pipelines schedule FILE"):
            pipelines.schedule(function, every="1d")


def test_another_function_of_the_same_name_does_not_replace_the_first_by_chance(tmp_path: Path) -> None:
    schedule(every="1d")
    (tmp_path / "other.py").write_text("def retrain():\n    pass\n")
    with pytest.raises(InvalidInputError, match="a schedule 'retrain' of another function"):
        pipelines.schedule("other.py:retrain", every="1d")
    replaced = pipelines.schedule("other.py:retrain", every="1d", name="retrain")
    assert replaced.state.plan.target.where == str(tmp_path / "other.py")


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    schedule(every="1d", name="nightly")
    with pytest.raises(NotFoundError, match=r"there are nightly\. Did you mean 'nightly'\?"):
        pipelines.find_schedule("nigthly")


def test_periods_are_counted_from_the_start_whatever_is_rounded() -> None:
    times = Every(read_period("1.1s"), 1000.3)
    at, found = 1000.3, []
    for _ in range(50):
        at = times.next_after(at)
        found.append(at)
    assert found == [1000.3 + n * 1.1 for n in range(1, 51)]
    assert times.last(3, 0.0, found[-1]) == found[-3:]
    assert times.next_after(-1e9) == found[0]
