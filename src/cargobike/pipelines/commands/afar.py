"""What commands of pipelines may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "pipelines run": Afar(role="run", sends=("function",), texts=("set_", "params", "cause"), keeps=True),
    "pipelines resume": Afar(role="run", sends=("function",), keeps=True),
    "pipelines ls": Afar(),
    "pipelines show": Afar(),
    "pipelines graph": Afar(),
    "pipelines logs": Afar(),
    "pipelines cancel": Afar(role="run"),
    "pipelines rm": Afar(role="administer"),
    "pipelines export": Afar(brings=("output",), texts=("schedule",)),
    "pipelines schedule": Afar(
        role="run", sends=("function",), texts=("set_", "when", "cron", "every", "timezone"), keeps=True
    ),
    "pipelines schedules": Afar(),
    "pipelines schedules ls": Afar(),
    "pipelines schedules show": Afar(),
    "pipelines schedules pause": Afar(role="run"),
    "pipelines schedules resume": Afar(role="run"),
    "pipelines schedules rm": Afar(role="administer"),
    "scheduler": Afar(role="run"),
    "scheduler status": Afar(),
    "scheduler stop": Afar(role="run"),
    "scheduler unit": Afar(only_here="it prints a unit for the systemd of the machine that it runs on."),
}
