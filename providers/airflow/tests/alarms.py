"""A monitor of the tests, whose alarms are raised by hand."""

from __future__ import annotations

from cargobike import project
from cargobike.monitoring.facts import AlarmRaised, MonitorStarted, Watched
from cargobike.monitoring.record import folder_of
from cargobike.monitoring.running.keeping import Keeper, Kept


def watch() -> None:
    _commit(MonitorStarted(at=1.0, id="prices", watched=Watched(subject="prices")))


def alarm(number: int) -> None:
    raised = AlarmRaised(
        at=2.0,
        id=f"alarm-{number}",
        kind="drift",
        since=1.0,
        window=number,
        windows=(number,),
        rows=1000,
        first_at=1.0,
        last_at=2.0,
        model_version=1,
        moved=(),
        position="",
        text="rooms moved",
    )
    _commit(raised)


def _commit(fact: MonitorStarted | AlarmRaised) -> None:
    keeper = Keeper(folder_of(project.current(), "prices"))
    keeper.commit(Kept(), [fact])
    keeper.close()
