"""The index interface: lists and queries over all journals of a project."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cargobike.core.errors import NotFoundError, nearest_names
from cargobike.core.facts import ExperimentStarted
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState, Params, TrialState
from cargobike.core.seen import SpaceChanged
from cargobike.experiments.index.origins import ExperimentOrigin, origins_of

log = logging.getLogger(__name__)

ExperimentSort = Literal["started", "name", "state", "best", "duration", "trials"]
TrialSort = Literal["number", "best", "duration", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow:
    """One experiment as a list shows it.

    Attributes:
        id: The name of its folder.
        header: What was asked for.
        metric: The objective's name, as far as it is known.
        last_at: Time of the latest fact.
        away_s: Time in which no driver ran it, between an end and a resume.
        counts: How many trials are in each state.
        best_value: Value of the best completed trial, always finite; `None` if there is none.
        tags: The tags that people have given it.
        notes: How many notes people wrote about it.
        space_changes: When its space was changed, if it was.
        worker_seconds: What it cost: the time that its workers were there, added up.
        torn_bytes: What follows the last whole line of its journal: a torn tail, or a line being written.
        problem: Why its journal could not be read to the end, or an empty string.
    """

    id: str
    header: ExperimentStarted
    state: ExperimentState
    reason: str = ""
    metric: str | None = None
    started_at: float
    ended_at: float | None = None
    last_at: float = 0.0
    away_s: float = 0.0
    counts: dict[TrialState, int] = field(default_factory=dict)
    best_trial: int | None = None
    best_value: float | None = None
    best_params: Params | None = None
    tags: tuple[str, ...] = ()
    notes: int = 0
    space_changes: tuple[SpaceChanged, ...] = ()
    worker_seconds: float = 0.0
    torn_bytes: int = 0
    problem: str = ""

    @classmethod
    def of(cls, record: ExperimentRecord) -> ExperimentRow:
        """Return a record as a list shows it."""
        best = record.best
        return cls(
            id=record.id,
            header=record.header,
            state=record.state,
            reason=record.reason,
            metric=record.objective or None,
            started_at=record.started_at,
            ended_at=record.ended_at,
            last_at=record.last_at,
            away_s=record.away_s,
            counts=dict(record.counts),
            best_trial=None if best is None else best.number,
            best_value=None if best is None else best.value,
            best_params=None if best is None else best.params,
            space_changes=tuple(record.space_changes),
            worker_seconds=record.worker_seconds,
        )

    @property
    def name(self) -> str:
        """The name for people."""
        return self.header.name

    @property
    def trials(self) -> int:
        """How many trials were suggested."""
        return sum(self.counts.values())

    @property
    def trials_done(self) -> int:
        """How many trials are in a final state."""
        return sum(count for state, count in self.counts.items() if state.is_final)

    @property
    def duration_s(self) -> float:
        """Seconds that it was run, to its end, or to the latest fact while there is no end."""
        return (self.last_at if self.ended_at is None else self.ended_at) - self.started_at - self.away_s

    def lasted_s(self, now: float) -> float:
        """Return how long it was run, or has been running until now."""
        is_running = self.state is ExperimentState.RUNNING
        return max(0.0, now - self.started_at - self.away_s) if is_running else self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial as a list shows it; `last_step` and `last_value` are the objective's latest point."""

    experiment_id: str
    number: int
    state: TrialState
    params: Params
    value: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    points: int = 0
    last_step: int | None = None
    last_value: float | None = None
    attempts: int = 0
    error: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    seed: int = 0
    worker: str | None = None
    peak_memory_bytes: int | None = None
    info: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def duration_s(self) -> float | None:
        """Seconds from the first start to the end, `None` while it runs."""
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which experiments to list; a field that is left out matches all of them.

    Attributes:
        name: Part of the name, upper or lower case; with `*` and `?` a pattern for the whole name.
        tags: Tags that it must have, all of them.
        user: Who ran it.
        since: Started at or after this time, seconds since the epoch.
        until: Started before this time.
    """

    name: str = ""
    tags: Sequence[str] = ()
    user: str = ""
    since: float | None = None
    until: float | None = None


EVERYWHERE: Final = Where()


class Index(ABC):
    """Answers questions about many experiments without reading their journals each time.

    Guarantees: everything in it follows from the journals, so it may be deleted at any time; `sync` catches
    up with what journals have gained (and forgets experiments whose folders are gone) and may run in several
    processes at once; the other methods answer from what the last `sync` of any process has read, and never
    write. A journal that cannot be read does not hide the others: its row has a `problem`, and holds what
    precedes the damage.
    """

    @abstractmethod
    def sync(self) -> None:
        """Catch up with all journals of the project."""

    @abstractmethod
    def rebuild(self) -> None:
        """Forget everything and read all journals again."""

    @abstractmethod
    def experiments(
        self,
        *,
        states: Sequence[ExperimentState] = (),
        where: Where = EVERYWHERE,
        sort: ExperimentSort = "started",
        descending: bool = True,
        limit: int | None = None,
    ) -> list[ExperimentRow]:
        """Return experiments, the newest first unless asked otherwise; those without the key come last."""

    @abstractmethod
    def experiment(self, experiment_id: str) -> ExperimentRow:
        """Return one experiment by its full id; raises `NotFoundError`."""

    @abstractmethod
    def trials(
        self,
        experiment_id: str,
        *,
        states: Sequence[TrialState] = (),
        sort: TrialSort = "number",
        limit: int | None = None,
    ) -> list[TrialRow]:
        """Return trials of one experiment; `sort="best"` puts the best first, for either direction."""

    @abstractmethod
    def scores(self, experiment_id: str) -> list[tuple[int, float]]:
        """Return `(number, value)` of the trials with a finite value, in the order in which they ended."""

    @abstractmethod
    def names(self) -> list[tuple[str, str]]:
        """Return `(id, name)` of all experiments, the newest first."""

    def origins(self) -> list[tuple[str, str, ExperimentOrigin]]:
        """Return id and name of each experiment that came from something, once with each thing, the newest first."""
        rows = self.experiments()
        return [(row.id, row.name, origin) for row in rows for origin in origins_of(row.header.asked)]

    @abstractmethod
    def close(self) -> None:
        """Close all connections; may be called twice."""

    def resolve(self, text: str) -> str:
        """Return the id that a person meant: full id, name, unique start or end of an id, or `last`.

        Raises:
            NotFoundError: If nothing fits, with the nearest name, or several do, with their list.
        """
        return resolve(text, self.names())

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def resolve(text: str, names: Sequence[tuple[str, str]], *, is_unique: bool = False) -> str:
    """Choose from `(id, name)` pairs, the newest first, the one that `text` means; see `Index.resolve`.

    A script that runs again gives its experiments the same name: the newest is meant, unless it must be unique.
    """
    if not names:
        raise NotFoundError(
            f"There is no experiment {text!r}: this project has none yet. Start one first.", wanted=text
        )
    if text == "last":
        return names[0][0]
    ids = [one for one, _ in names]
    if text in ids:
        return text
    named = [one for one, name in names if name == text]
    if len(named) > 1 and not is_unique:
        log.warning("%d experiments are named %r; this is the newest, %s.", len(named), text, named[0])
        return named[0]
    matches = named or [one for one in ids if text and (one.startswith(text) or one.endswith(text))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        words = f"{text!r} fits {len(matches)} experiments: {_some(matches)}. Give a full id."
        raise NotFoundError(words, wanted=text, nearest=matches)
    close = nearest_names(text, [*dict.fromkeys(name for _, name in names if name), *ids])
    hint = f" Did you mean {close[0]!r}?" if close else ""
    words = f"There is no experiment {text!r}.{hint} `cargobike ls` lists them all."
    raise NotFoundError(words, wanted=text, nearest=close)


def _some(matches: Iterable[str], limit: int = 8) -> str:
    names = list(matches)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
