"""Watch data: does what comes now look like what a model was trained on? The names below are public.

`Reference` learns what is usual, and judges windows. `Policy` says how many alarms of how many windows count,
`ChangePoints` finds changes in a stream of errors, `join_labels` brings labels that come late to their predictions.
The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.monitoring.alarms.change_points import ChangePoint, ChangePoints
    from cargobike.monitoring.alarms.labels import Labelled, join_labels
    from cargobike.monitoring.alarms.policy import Policy
    from cargobike.monitoring.judgement import Judgement
    from cargobike.monitoring.records import Comparison, Figure, Shift, Side
    from cargobike.monitoring.reference import Reference
    from cargobike.monitoring.states.state import State, merge_states

__all__ = [
    "ChangePoint",
    "ChangePoints",
    "Comparison",
    "Figure",
    "Judgement",
    "Labelled",
    "Policy",
    "Reference",
    "Shift",
    "Side",
    "State",
    "join_labels",
    "merge_states",
]

_SOURCES = {
    **dict.fromkeys(("ChangePoint", "ChangePoints"), "cargobike.monitoring.alarms.change_points"),
    **dict.fromkeys(("Labelled", "join_labels"), "cargobike.monitoring.alarms.labels"),
    "Policy": "cargobike.monitoring.alarms.policy",
    **dict.fromkeys(("Comparison", "Figure", "Shift", "Side"), "cargobike.monitoring.records"),
    "Judgement": "cargobike.monitoring.judgement",
    "Reference": "cargobike.monitoring.reference",
    **dict.fromkeys(("State", "merge_states"), "cargobike.monitoring.states.state"),
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="data")


def __dir__() -> list[str]:
    return __all__
