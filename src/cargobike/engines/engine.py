"""The engine interface: start a worker, ask whether it lives, end it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Resources
from cargobike.core.running.ending import Ending
from cargobike.core.running.member import Role

NO_LIMIT = 1 << 30
"""The capacity of an engine that takes any number of workers."""


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an engine needs to start one worker.

    Attributes:
        name: Unique within the experiment, such as `w3`.
        module: Python module that is the worker program; the engine runs it with the interpreter of the place.
        config: Opaque settings for that program (address, keys, identity), to be handed over in memory or through a
            private pipe: never on a command line, in an environment variable or in a file that others can read.
        payload: The pickled train function and its surroundings, handed over the same way.
        role: What the worker is for.
        resources: What the worker gets.
        peers: How many workers share the place, for dividing its cores.
        libraries: Libraries that the train function imports, whose versions should be the same everywhere.
        version: Version of Cargobike in the driver, which the worker reports back.
        descriptor: The worker's end of its connection to the driver, for engines that can hand it down; -1 if it has to
            connect by itself.
    """

    name: str
    module: str
    config: bytes
    payload: bytes
    role: Role = Role.WORKER
    resources: Resources = Resources()
    peers: int = 1
    version: str = ""
    libraries: tuple[str, ...] = ()
    descriptor: int = -1

    def __repr__(self) -> str:  # no keys and no megabytes in a log
        return f"WorkerSpec(name={self.name!r}, module={self.module!r}, resources={self.resources!r})"


class WorkerHandle(ABC):
    """A worker that was started. All methods may be called at any time, also after its end."""

    name: str
    gpus: tuple[str, ...] = ()
    """Devices that the engine reserved for this worker until it is gone."""

    @abstractmethod
    def poll(self) -> Ending | None:
        """Return `None` while the worker lives or is being started, else how it ended."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker and everything it started, now; returns at once, `poll` tells when it is done."""


class Engine(ABC):
    """A place where workers live.

    What only some engines do stands in `capabilities.py`, as classes to inherit from besides.

    Guarantees: `start_worker` returns at once, the worker appears by connecting back; a worker that ends or dies is not
    restarted by the engine; what was reserved for it (devices) is free again once `poll` has said how it ended;
    `shutdown` leaves nothing running and may be called twice; when the process that owns the engine dies, even by
    `kill -9`, its workers end by themselves within seconds.
    """

    name: str

    @classmethod
    def at(cls, address: str) -> Engine:
        """Return the engine at an address whose scheme is this engine's name, such as `spark://host:7077`."""
        raise InvalidInputError(f"the engine {cls.name!r} takes no address, but {address!r} was given; use its name.")

    @abstractmethod
    def start_worker(self, spec: WorkerSpec) -> WorkerHandle:
        """Start one worker; raises `EngineError` if it can never be started here."""

    @abstractmethod
    def capacity(self, resources: Resources) -> int:
        """Return how many workers with these resources can run here at once."""

    @abstractmethod
    def shutdown(self, timeout_s: float = 5.0) -> None:
        """End all workers and give back everything."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
