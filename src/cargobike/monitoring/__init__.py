"""Watch data: does what comes now look like what a model was trained on? The names below are public.

`Reference` learns what is usual, and judges windows. `watch` watches a deployment, `monitor` and `list_monitors` find
what is watched, `labels` brings labels that come late, `drifted` sets off pipelines, `window_rows` reads what an alarm
is about, `compare` says whether a new version is better. `Policy`, `ChangePoints` and `join_labels` are the parts that
decide over time. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.monitoring.alarms.change_points import ChangePoint, ChangePoints
    from cargobike.monitoring.alarms.labels import Labelled, join_labels
    from cargobike.monitoring.alarms.policy import Policy
    from cargobike.monitoring.comparing import compare
    from cargobike.monitoring.facts import AlarmRaised, ErrorMeasured, Hooks, Moved, Watched, WindowJudged
    from cargobike.monitoring.front import drifted, labels, list_monitors, monitor, watch
    from cargobike.monitoring.handle import Monitor, MonitorStatus
    from cargobike.monitoring.judgement import Judgement
    from cargobike.monitoring.notes import Acknowledged, Compared
    from cargobike.monitoring.record import Alarm, MonitorRecord
    from cargobike.monitoring.records import Comparison, Figure, Shift, Side
    from cargobike.monitoring.reference import Reference
    from cargobike.monitoring.states.state import State, merge_states
    from cargobike.monitoring.triggering import window_rows

__all__ = [
    "Acknowledged",
    "Alarm",
    "AlarmRaised",
    "ChangePoint",
    "ChangePoints",
    "Compared",
    "Comparison",
    "ErrorMeasured",
    "Figure",
    "Hooks",
    "Judgement",
    "Labelled",
    "Monitor",
    "MonitorRecord",
    "MonitorStatus",
    "Moved",
    "Policy",
    "Reference",
    "Shift",
    "Side",
    "State",
    "Watched",
    "WindowJudged",
    "compare",
    "drifted",
    "join_labels",
    "labels",
    "list_monitors",
    "merge_states",
    "monitor",
    "watch",
    "window_rows",
]

_SOURCES = {
    **dict.fromkeys(("ChangePoint", "ChangePoints"), "cargobike.monitoring.alarms.change_points"),
    **dict.fromkeys(("Labelled", "join_labels"), "cargobike.monitoring.alarms.labels"),
    "Policy": "cargobike.monitoring.alarms.policy",
    **dict.fromkeys(
        ("AlarmRaised", "ErrorMeasured", "Hooks", "Moved", "Watched", "WindowJudged"), "cargobike.monitoring.facts"
    ),
    **dict.fromkeys(("Acknowledged", "Compared"), "cargobike.monitoring.notes"),
    **dict.fromkeys(("Alarm", "MonitorRecord"), "cargobike.monitoring.record"),
    **dict.fromkeys(("Monitor", "MonitorStatus"), "cargobike.monitoring.handle"),
    **dict.fromkeys(("drifted", "labels", "list_monitors", "monitor", "watch"), "cargobike.monitoring.front"),
    "compare": "cargobike.monitoring.comparing",
    "window_rows": "cargobike.monitoring.triggering",
    **dict.fromkeys(("Comparison", "Figure", "Shift", "Side"), "cargobike.monitoring.records"),
    "Judgement": "cargobike.monitoring.judgement",
    "Reference": "cargobike.monitoring.reference",
    **dict.fromkeys(("State", "merge_states"), "cargobike.monitoring.states.state"),
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="data")


def __dir__() -> list[str]:
    return __all__
