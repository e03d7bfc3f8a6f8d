"""Follow what is inserted into a feature group, as a log: for the product that watches whether new data looks like old.

A position is a commit, and how many of the rows behind it were read. Rows come in the order of commits: new ones, and
the new values of those that changed. Keys are no features, and left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Logged, Stretch
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.groups.finding import group
from cargobike.features.groups.group import Group

_CHANGE: Final = "_change"
_TIME: Final = pa.timestamp("us", "UTC")


class _Position(msgspec.Struct, frozen=True):
    """Everything up to a commit was read, and some rows of the next one."""

    commit: int = -1
    rows: int = 0


def follow(name: str, project: ProjectFolder) -> GroupFollower:
    """Return a follower of a group.

    Raises:
        NotFoundError: If there is no such group.
    """
    return GroupFollower(group(name, folder=project))


def about(name: str, project: ProjectFolder) -> Logged:
    """Return what is known of a group.

    Raises:
        NotFoundError: If there is no such group.
    """
    return Logged(folder=group(name, folder=project).url)


def read_piece(piece: bytes) -> Any:
    """Refuse: a group is read by one process."""
    raise InvalidInputError("A feature group is followed by one process; watch it with engine='local'.")


class GroupFollower:
    """Follows one group."""

    def __init__(self, followed: Group) -> None:
        self._group = followed
        self._open: tuple[int, pa.Table] = (-2, None)

    def read(self, position: str, most: int) -> Stretch:
        """Return the next rows, of one or several commits."""
        at, newest = _read_position(position), self._group.commit
        if at.commit > newest:
            raise StoreError(
                f"{self._group.name} ends with commit {newest}, and was read up to {at.commit} before: it was deleted "
                "and made anew. Watch it anew too."
            )
        parts, count = list[pa.Table](), 0
        while at.commit < newest and count < most:
            rows = self._rows_of(at.commit + 1)
            part = rows.slice(at.rows, most - count)
            parts.append(part)
            count += part.num_rows
            is_over = at.rows + part.num_rows >= rows.num_rows
            at = _Position(at.commit + 1) if is_over else _Position(at.commit, at.rows + part.num_rows)
        rows = (
            pa.concat_tables(parts, promote_options="permissive") if parts else _as_log([], pa.table({}), "", 0, None)
        )
        return Stretch(rows, msgspec.json.encode(at).decode(), more=at.commit < newest)

    def end(self) -> str:
        """Return the position behind the newest commit."""
        return msgspec.json.encode(_Position(self._group.commit)).decode()

    def close(self) -> None:
        """Forget the commit that was read last."""
        self._open = (-2, None)

    def _rows_of(self, commit: int) -> pa.Table:
        """Return the rows that a commit brought."""
        if self._open[0] != commit:
            try:
                rows = self._group.changes(commit - 1, commit) if commit else self._group.dataset(0).to_table()
            except (NotFoundError, InvalidInputError) as error:
                raise StoreError(f"Commit {commit} of {self._group.name} cannot be read: {error}") from error
            if _CHANGE in rows.column_names:
                rows = rows.filter(pa.compute.not_equal(rows[_CHANGE], "delete"))
            self._open = commit, self._as_log(rows, commit)
        return self._open[1]

    def _as_log(self, rows: pa.Table, commit: int) -> pa.Table:
        definition = self._group.definition
        time = definition.event_time or WRITTEN_AT
        left_out = {*definition.key, definition.event_time, WRITTEN_AT, _CHANGE}
        names = [name for name in rows.column_names if name not in left_out]
        return _as_log(names, rows, self._group.name, commit, rows[time] if time in rows.column_names else None)


def _as_log(names: list[str], rows: pa.Table, model: str, commit: int, times: Any) -> pa.Table:
    """Return rows with the columns of a log."""
    count = rows.num_rows if names or rows.num_columns else 0
    numbers = np.arange(count)
    head = {
        "request_id": pa.array([f"{commit}-{number}" for number in numbers], pa.string()),
        "at": pa.nulls(count, _TIME) if times is None else _as_times(times),
        "latency_ms": pa.nulls(count, pa.float32()),
        "model": pa.array([model] * count, pa.string()),
        "version": pa.array(np.zeros(count, np.int32)),
        "status": pa.array(np.full(count, 200, np.int16)),
        "row": pa.array(numbers.astype(np.int32)),
        "input": pa.nulls(count, pa.string()),
        "output": pa.nulls(count, pa.string()),
    }
    return pa.table({**head, **{f"input.{name}": rows[name] for name in names}})


def _as_times(times: pa.ChunkedArray) -> Any:
    """Return times, or whole numbers that stand for seconds, as those of a log."""
    if pa.types.is_timestamp(times.type) or pa.types.is_date(times.type):
        return times.cast(pa.timestamp("us", getattr(times.type, "tz", None)), safe=False).cast(_TIME)
    return pa.compute.multiply(times.cast(pa.float64()), 1e6).cast(pa.int64(), safe=False).cast(_TIME)


def _read_position(text: str) -> _Position:
    try:
        return msgspec.json.decode(text, type=_Position) if text else _Position()
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"{text[:60]!r} is no position in a feature group ({error}).") from error
