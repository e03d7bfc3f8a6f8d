"""What an engine may do beyond starting, watching and ending workers: each a small class to inherit from.

The driver asks `isinstance(engine, WarmsUp)`. An engine that runs workers on the driver's own machine needs none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from cargobike.core.records import Resources
from cargobike.core.running.hosting import Listening


class Elsewhere(ABC):
    """Its workers may be on other machines, which do not see the files of this one.

    Attributes:
        may_share_disk: Whether workers may use the project's folder where they find it; else its files travel.
        driver_silence_s: After how long without a word from the driver a worker gives up.
        join_s: How long a worker may take to come, if that is longer than on the driver's own machine.
    """

    may_share_disk: bool = True
    driver_silence_s: float = 60.0
    join_s: float = 0.0

    @property
    @abstractmethod
    def listening(self) -> Listening:
        """Where the driver has to listen so that the workers of this engine can reach it."""


class HandsDown(ABC):  # noqa: B024 - says what an engine can do with `WorkerSpec.descriptor`, nothing to implement
    """Its workers descend from this process, and can inherit a connection to it."""


class WarmsUp(ABC):
    """Something takes time before its first worker can start."""

    @abstractmethod
    def warm_up(self, module: str, resources: Resources, peers: int) -> None:
        """Begin it; called at most once, before the first worker is started."""


class ChecksWorkers(ABC):
    """It knows beforehand how many workers it can ever run at once."""

    @abstractmethod
    def check_workers(self, workers: int, resources: Resources) -> None:
        """Raise `InvalidInputError` if so many workers can never run here at once, saying what there is."""


class AvoidsBadMachines(ABC):
    """It can start workers elsewhere when they keep dying on one machine."""

    @abstractmethod
    def work_ended(self, worker: str, *, died: bool) -> None:
        """Count that what a worker ran has ended, or that its process has died."""


class TellsWaiting(ABC):
    """Its workers may have to wait for a machine."""

    @abstractmethod
    def waiting_for(self) -> str:
        """Say in a few words what workers that were started are waiting for; empty if for nothing unusual."""
