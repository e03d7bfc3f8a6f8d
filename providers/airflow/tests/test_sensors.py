from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError
from cargobike_provider.operators import CargobikeExperimentOperator, CargobikeFunctionOperator
from cargobike_provider.sensors.cargobike import (
    CargobikeDriftSensor,
    CargobikeExperimentSensor,
    CargobikeFeatureGroupSensor,
)
from cargobike_provider.triggers.cargobike import CargobikeTrigger
from conftest import Context, running_programs

Logged = Callable[[], str]


def searched(context: Context, name: str = "digits", train: str = "train") -> Any:
    operator = CargobikeExperimentOperator(
        task_id="search",
        train=f"tasks.py:{train}",
        parameters={"rate": 0.1},
        experiment_name=name,
        metric="accuracy",
        options={"workers": 1},
    )
    return operator.execute(context)


async def fired(trigger: CargobikeTrigger) -> Any:
    async with contextlib.aclosing(trigger.run()) as events:
        async for event in events:
            return event.payload
    return None


def test_an_experiment_that_has_ended_is_handed_on_at_once(project: Path, context: Context) -> None:
    made = searched(context)
    sensor = CargobikeExperimentSensor(task_id="wait", experiment="digits", deferrable=True)
    assert sensor.execute(context) == made
    again = CargobikeExperimentSensor(task_id="wait", experiment=made["id"], mode="reschedule", poke_interval=1)
    assert again.poke(context).xcom_value == made


def test_an_experiment_that_is_not_there_is_said_with_those_that_are(project: Path, context: Context) -> None:
    searched(context)
    with pytest.raises(CargobikeMistake, match=r"digts.*digits"):
        CargobikeExperimentSensor(task_id="wait", experiment="digts").poke(context)


def test_one_that_may_come_later_is_waited_for(project: Path, context: Context) -> None:
    sensor = CargobikeExperimentSensor(task_id="wait", experiment="digits", must_exist=False, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(context)
    assert deferred.value.timeout == timedelta(seconds=sensor.timeout)
    path, arguments = deferred.value.trigger.serialize()
    assert path == "cargobike_provider.triggers.cargobike.CargobikeTrigger"
    trigger = CargobikeTrigger(**{**arguments, "poke_interval": 0.05})

    async def come_later() -> tuple[Any, Any]:
        waiting = asyncio.create_task(fired(trigger))
        while not running_programs():  # it has begun to look
            await asyncio.sleep(0.01)
        made = await asyncio.to_thread(searched, context)
        return made, await asyncio.wait_for(waiting, 60)

    made, event = asyncio.run(come_later())
    assert sensor.execute_complete(context, event) == made


def test_an_experiment_that_failed_fails_the_sensor(project: Path, context: Context) -> None:
    with pytest.raises(CargobikeTaskError):
        searched(context, train="train_badly")
    with pytest.raises(CargobikeTaskError, match=r"is failed"):
        CargobikeExperimentSensor(task_id="wait", experiment="digits").poke(context)
    allowed = CargobikeExperimentSensor(task_id="wait", experiment="digits", allowed_states=("completed", "failed"))
    assert allowed.poke(context).xcom_value["state"] == "failed"


def test_many_triggers_share_one_process_that_ends_with_them(project: Path) -> None:
    triggers = [
        CargobikeTrigger("look at experiment", {"experiment": f"e{number}"}, poke_interval=0.05, may_be_missing=True)
        for number in range(20)
    ]

    async def look() -> int:
        tasks = [asyncio.create_task(fired(trigger)) for trigger in triggers]
        while not running_programs():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # for a second process to show up, if one is started in error
        count = len(running_programs())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return count

    assert asyncio.run(look()) == 1


def test_a_look_that_fails_is_tried_again_and_then_given_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    # A journal that cannot be read stands for storage that does not answer.
    (project / "experiments" / "20260101-000000-abcd" / "journal.jsonl").mkdir(parents=True)
    trigger = CargobikeTrigger("look at experiment", {"experiment": "20260101-000000-abcd"}, poke_interval=0.01)
    event = asyncio.run(fired(trigger))
    assert "error" in event
    sensor = CargobikeExperimentSensor(task_id="wait", experiment="x")
    with pytest.raises(CargobikeTaskError):
        sensor.execute_complete({}, event)


def test_a_trigger_without_connection_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    event = asyncio.run(fired(CargobikeTrigger("describe", {}, cargobike_conn_id="elsewhere")))
    assert "There is no connection 'elsewhere'" in event["error"]


def test_a_feature_group_is_fresh_once_rows_have_come(full_project: Path, context: Context) -> None:
    sensor = CargobikeFeatureGroupSensor(task_id="fresh", group="houses", newer_than="2026-01-01T00:00:00+00:00")
    with pytest.raises(CargobikeMistake, match=r"no feature group 'houses'"):
        sensor.poke(context)
    CargobikeFunctionOperator(task_id="one", function="rows.py:insert_houses").execute(context)
    seen = sensor.poke(context)
    assert seen.is_done
    assert (seen.xcom_value["kind"], seen.xcom_value["commit"]) == ("group", 0)
    later = CargobikeFeatureGroupSensor(task_id="fresh", group="houses", newer_than="2099-01-01")
    assert not later.poke(context).is_done


@pytest.mark.parametrize("given", [{}, {"newer_than": "2026-01-01", "max_age": timedelta(1)}])
def test_one_kind_of_freshness_is_asked_for(given: dict[str, Any]) -> None:
    with pytest.raises(CargobikeMistake, match=r"either newer_than=.*or max_age="):
        CargobikeFeatureGroupSensor(task_id="fresh", group="houses", **given)


def test_a_moment_that_is_none_is_said(project: Path, context: Context) -> None:
    sensor = CargobikeFeatureGroupSensor(task_id="fresh", group="houses", newer_than="yesterday")
    with pytest.raises(CargobikeMistake, match=r"newer_than='yesterday' is no moment"):
        sensor.poke(context)


def alarms(name: str, context: Context, *args: int) -> None:
    CargobikeFunctionOperator(task_id="other", function=f"alarms.py:{name}", op_args=args).execute(context)


def test_an_alarm_is_waited_for_from_the_first_look_on_in_a_new_process_each_time(
    full_project: Path, context: Context
) -> None:
    alarms("watch", context)
    alarms("alarm", context, 1)

    def look() -> Any:  # a sensor that is rescheduled is made anew, and remembers nothing
        return CargobikeDriftSensor(task_id="drift", subject="prices", mode="reschedule").poke(context)

    assert not look().is_done  # an alarm from before is not what is waited for
    assert not look().is_done
    alarms("alarm", context, 2)
    seen = look()
    assert seen.is_done
    assert seen.xcom_value["cause"]["alarms"] == ["alarm-2"]
    assert not look().is_done  # what was seen is not seen again
    since = CargobikeDriftSensor(task_id="all", subject="prices", since="0").poke(context)
    assert since.xcom_value["cause"]["alarms"] == ["alarm-1", "alarm-2"]


def test_an_alarm_wakes_a_sensor_that_was_deferred(full_project: Path, context: Context) -> None:
    alarms("watch", context)
    sensor = CargobikeDriftSensor(task_id="drift", subject="prices", deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(context)
    _, arguments = deferred.value.trigger.serialize()
    trigger = CargobikeTrigger(**{**arguments, "poke_interval": 0.05})

    async def raise_alarm() -> Any:
        waiting = asyncio.create_task(fired(trigger))
        while not running_programs():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(alarms, "alarm", context, 1)
        async with asyncio.timeout(60):
            return await waiting

    answer = sensor.execute_complete(context, asyncio.run(raise_alarm()))
    assert answer["cause"]["text"] == "rooms moved"


def test_what_is_not_watched_has_no_alarms(full_project: Path, context: Context) -> None:
    with pytest.raises((CargobikeMistake, CargobikeTaskError), match=r"NotFoundError"):
        CargobikeDriftSensor(task_id="drift", subject="prices").poke(context)
