"""Layer 1: WHERE workers live. The names below are public, the modules of this room internal.

`engine.py` holds the interface, each folder beside it one technology. An engine starts, watches and kills workers; it
knows nothing of trials, and does not talk to the workers it started: they connect back to the driver by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.core.running.ending import Ending, EndKind
    from cargobike.core.running.hosting import Listening
    from cargobike.engines.capabilities import (
        AvoidsBadMachines,
        ChecksWorkers,
        Elsewhere,
        TellsWaiting,
        WarmsUp,
    )
    from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
    from cargobike.engines.local.engine import LocalEngine
    from cargobike.engines.simulated.engine import SimulatedEngine
    from cargobike.engines.spark.engine import SparkEngine

__all__ = [
    "AvoidsBadMachines",
    "ChecksWorkers",
    "Elsewhere",
    "EndKind",
    "Ending",
    "Engine",
    "Listening",
    "LocalEngine",
    "SimulatedEngine",
    "SparkEngine",
    "TellsWaiting",
    "WarmsUp",
    "WorkerHandle",
    "WorkerSpec",
]

_SOURCES = {
    "AvoidsBadMachines": "cargobike.engines.capabilities",
    "ChecksWorkers": "cargobike.engines.capabilities",
    "Elsewhere": "cargobike.engines.capabilities",
    "EndKind": "cargobike.core.running.ending",
    "Ending": "cargobike.core.running.ending",
    "Engine": "cargobike.engines.engine",
    "Listening": "cargobike.core.running.hosting",
    "LocalEngine": "cargobike.engines.local.engine",
    "SimulatedEngine": "cargobike.engines.simulated.engine",
    "SparkEngine": "cargobike.engines.spark.engine",
    "TellsWaiting": "cargobike.engines.capabilities",
    "WarmsUp": "cargobike.engines.capabilities",
    "WorkerHandle": "cargobike.engines.engine",
    "WorkerSpec": "cargobike.engines.engine",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
