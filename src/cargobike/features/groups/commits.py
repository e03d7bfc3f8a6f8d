"""Commits of a group: who changed it, when, and how many rows; and the loop that makes one."""

from __future__ import annotations

import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cargobike.core.errors import StoreError, WaitError
from cargobike.core.registering.steps import step_token
from cargobike.core.running.accounts import user_name
from cargobike.core.values.times import on_calendar
from cargobike.core.version import __version__
from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Action, Add, CommitInfo, Remove
from cargobike.features.delta.log import Log, Snapshot, first_actions, now_ms
from cargobike.features.delta.schemas import column_names, encode_schema
from cargobike.features.groups.columns import schema_of

PATIENCE_S: Final = 600.0
"""How long a writer tries to be first before it gives up."""

_LONGEST_PAUSE_S: Final = 0.5


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a group.

    Attributes:
        number: Counted from 0; -1 if there was nothing to commit.
        operation: `insert`, `delete`, `compact`, `vacuum`, or what another program calls it.
        at: When, in seconds since 1970.
        user: Who.
        host: Where.
        inserted: How many rows came that were not there before.
        updated: How many rows replaced one with the same key and event time.
        unchanged: How many rows were given that were there already, with the same values.
        deleted: How many rows went.
        quarantined: How many rows were put aside because they broke an expectation.
        source: What the rows came from.
        message: What the user said about it.
        quarantine: The file with the rows that were put aside.
        oldest: For `vacuum`: the oldest commit that can still be read.
        files: Those that hold exactly the rows that were inserted.
        step: What names the step of a pipeline that made it; empty outside of pipelines.
    """

    number: int = -1
    operation: str = ""
    at: float = 0.0
    user: str = ""
    host: str = ""
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    quarantined: int = 0
    source: str = ""
    message: str = ""
    quarantine: str = ""
    oldest: int = 0
    files: tuple[str, ...] = ()
    step: str = ""

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return self.inserted + self.updated

    @property
    def time(self) -> datetime:
        """When it was made, in UTC."""
        return on_calendar(self.at, UTC)

    def as_json(self) -> dict[str, Any]:
        """Return the documented keys of a commit, for programs."""
        facts = {
            name: value
            for name, value in msgspec.to_builtins(self).items()
            if name not in {"files", "quarantine", "step"}
        }
        return {**facts, "at": self.time.isoformat(timespec="milliseconds"), "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit would do to one state of a table."""

    adds: list[Add]
    removes: list[Add]
    commit: Commit
    data_change: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the table that the commit changes."""


def commit_with(log: Log, definition: Definition, plan: Callable[[Snapshot], Plan | None]) -> tuple[Snapshot, Commit]:
    """Commit what `plan` makes of the newest state, again and again until no other writer was faster.

    Args:
        log: The log of the group.
        definition: The group.
        plan: Decides what to do, given the newest state; `None` if nothing is to be done after all. Called again after
            each lost race; the files that it added before are deleted then, unless it names them again.

    Raises:
        WaitError: If other writers were faster for `PATIENCE_S`.
    """
    give_up_at, pause_s = time.monotonic() + PATIENCE_S, 0.01
    written: set[str] = set()
    while True:
        snapshot = log.newest()
        try:
            planned = plan(snapshot)
        except StoreError:
            if log.newest().version == snapshot.version:
                raise
            continue  # another process has replaced a file, and deleted it since
        if planned is None:
            _delete(log, written)
            return snapshot, Commit(number=snapshot.version)
        made = msgspec.structs.replace(
            planned.commit,
            number=snapshot.version + 1,
            at=max(now_ms(), snapshot.timestamp + 1) / 1000,
            user=user_name(),
            host=socket.gethostname(),
            step=step_token(),
        )
        # Whatever is raised from here on, the commit may have been made: its files must stay. `vacuum` finds leftovers.
        after = log.commit(snapshot, _actions(snapshot, planned, made, definition))
        names = {add.path for add in planned.adds}
        if after is not None:
            _delete(log, written - names)
            return after, made
        written |= names
        if time.monotonic() > give_up_at:
            _delete(log, written)
            raise WaitError(
                f"Other processes committed to the group {definition.name!r} all the time for {PATIENCE_S:.0f} s; "
                "nothing was written. Write fewer and larger pieces, or from fewer processes.",
                missing=[f"a turn to commit to {definition.name}"],
            )
        time.sleep(random.uniform(0, pause_s))
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _delete(log: Log, names: set[str]) -> None:
    """Delete files that no commit names."""
    log.storage.delete(*(f"{log.folder}/{name}" for name in sorted(names)))


def commit_of(version: int, actions: list[Action]) -> Commit:
    """Return what a log tells about a commit, also of one that another program made."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo())
    try:
        own = msgspec.convert({**info.cargobike, "number": version}, type=Commit)
    except msgspec.ValidationError:
        own = Commit(number=version)
    return msgspec.structs.replace(
        own, operation=own.operation or info.operation.lower(), at=own.at or info.timestamp / 1000
    )


def _actions(snapshot: Snapshot, plan: Plan, commit: Commit, definition: Definition) -> list[Action]:
    operation = {"insert": "WRITE" if not plan.removes else "MERGE", "compact": "OPTIMIZE"}
    info = CommitInfo(
        timestamp=round(commit.at * 1000),
        operation=operation.get(commit.operation, commit.operation.upper()),
        engine_info=f"cargobike/{__version__}",
        cargobike={key: value for key, value in msgspec.to_builtins(commit).items() if value not in (0, "", [])},
    )
    actions: list[Action] = [info]
    schema = encode_schema(schema_of(definition))
    if snapshot.meta is None:
        actions += first_actions(str(uuid.uuid4()), definition.name, schema)
    elif plan.settings or column_names(snapshot.meta.schema_string) != column_names(schema):
        configuration = {**snapshot.meta.configuration, **plan.settings}
        actions.append(msgspec.structs.replace(snapshot.meta, schema_string=schema, configuration=configuration))
    for gone in plan.removes:
        actions.append(
            Remove(path=gone.path, deletion_timestamp=info.timestamp, data_change=plan.data_change, size=gone.size)
        )
    return [*actions, *plan.adds]
