"""What the facts of an experiment say about attempts, workers and spaces; parts of its record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cargobike.core.running.ending import EndKind
from cargobike.core.running.member import Role


@dataclass(slots=True)
class Attempt:
    """One try at running a trial.

    `ended` is `None` while it runs, then a state or why it was lost; `failed_worker` is the one whose error ended it.
    """

    number: int
    workers: tuple[str, ...]
    started_at: float
    ended_at: float | None = None
    ended: str | None = None
    failed_worker: str = ""


@dataclass(slots=True)
class WorkerSeen:
    """A worker that joined; `lost_at` is `None` while it is there."""

    name: str
    host: str
    pid: int
    gpus: tuple[str, ...]
    joined_at: float
    lost_at: float | None = None
    reason: str = ""
    role: Role = Role.WORKER
    cause: EndKind | None = None


@dataclass(frozen=True, slots=True)
class SpaceChanged:
    """The experiment went on in another space, after so many trials.

    `before` is the space until then, `defaults` what the trials so far had for parameters that are new.
    """

    at: float
    trials: int
    space: list[dict[str, Any]]
    before: list[dict[str, Any]] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
