"""Read a stretch of time of an inference log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.serving.inference_log.columns import HEAD
from cargobike.serving.inference_log.parquet import DROPPED, dropped_in
from cargobike.serving.inference_log.places import DEPLOYMENTS, LogFile, list_days, log_folder
from cargobike.serving.inference_log.upkeep import read_merges, visible
from cargobike.store.files import project as projects
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import storage_of

Moment = datetime | timedelta | str
"""A time (without a zone it is UTC), or how long ago: a `timedelta`, or a text such as `"30min"`, `"12h"`, `"7d"`."""

_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AT_ONCE: Final = 8
_TRIES: Final = 3
_FILES_OF_LAST: Final = 4
_ORDER: Final = ("at", "request_id", "row")


def read_log(
    name: str,
    since: Moment | None = None,
    until: Moment | None = None,
    *,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    project: ProjectFolder | None = None,
) -> pa.Table:
    """Return requests and answers of a deployment, in the order of their times: one row for each row of a request.

    The columns are `request_id`, `at`, `latency_ms`, `model`, `version`, `status`, `row`, then `input.<field>` and
    `output.<field>` with the types of the signature; vectors are lists of a fixed size. `input` and `output` hold JSON
    where there is no signature, or where a row did not fit it. The table's metadata say how many requests were dropped.

    Args:
        name: The deployment.
        since: The earliest time, or how long ago; by default all.
        until: The time at which to end.
        columns: Only these; fewer are read faster.
        version: Only requests that this version of the model answered.
        project: Another project than the one in use.

    Raises:
        NotFoundError: If there is no such deployment, or no such column.
        InvalidInputError: If a time cannot be understood, or versions have fields of the same name and other types.

    Example:
        ```python
        rows = serving.read_log("digits", since="1h", columns=["at", "input.pixels", "output.digit"])
        ```
    """
    storage = storage_of(project or projects.current())
    window = _Window(read_moment("since", since), read_moment("until", until))
    for left in reversed(range(_TRIES)):
        try:
            files = _find(storage, name, window, version)
            return _read(storage, log_folder(name), files, columns, window)
        except (FileNotFoundError, StoreError):
            if not left:  # else files were merged meanwhile, and are listed again
                raise
    raise AssertionError("unreachable")


def read_last(name: str, limit: int, *, project: ProjectFolder | None = None) -> pa.Table:
    """Return the last rows of a log, the oldest first; only the newest files are opened, of the last two days.

    Files overlap in time where several versions answer; then some of the newest files are read.
    """
    storage, folder = storage_of(project or projects.current()), log_folder(name)
    window = _Window(datetime.now(UTC) - timedelta(days=1), None)
    newest = sorted(_find(storage, name, window, None), key=lambda file: file.last)[-_FILES_OF_LAST:]
    chosen = ("request_id", "at", "latency_ms", "version", "status", "row")
    rows = _read(storage, folder, newest, chosen, _Window(None, None))
    return rows.slice(max(0, rows.num_rows - limit))


def read_moment(name: str, given: Moment | None) -> datetime | None:
    """Return a time in UTC.

    Raises:
        InvalidInputError: If it cannot be understood.
    """
    now = datetime.now(UTC)
    if isinstance(given, str):
        if age := _AGE.fullmatch(given.strip()):
            return now - timedelta(seconds=float(age[1]) * _UNITS[age[2]])
        try:
            given = datetime.fromisoformat(given.strip())
        except ValueError:
            raise InvalidInputError(
                f"{name} must be a time such as '2026-11-17 08:30', or an age such as '30min', '12h', '7d'; "
                f"{given!r} was given."
            ) from None
    if given is None:
        return None
    if isinstance(given, timedelta):
        return now - given
    if not isinstance(given, datetime):
        raise InvalidInputError(f"{name} must be a datetime, a timedelta or a text; {given!r} was given.")
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)


class _Window(NamedTuple):
    """A stretch of time, without its end."""

    since: datetime | None
    until: datetime | None

    def touches(self, file: LogFile) -> bool:
        return (self.since is None or file.last >= self.since) and (self.until is None or file.first < self.until)

    def cut(self, rows: pa.Table, file: LogFile) -> pa.Table:
        """Return the rows inside, of a file that touches it."""
        if self.since is not None and file.first < self.since:
            rows = rows.filter(pc.greater_equal(rows.column("at"), pa.scalar(self.since, HEAD[1].type)))
        if self.until is not None and file.last >= self.until:
            rows = rows.filter(pc.less(rows.column("at"), pa.scalar(self.until, HEAD[1].type)))
        return rows


def _find(storage: Storage, name: str, window: _Window, version: int | None) -> list[LogFile]:
    folder = log_folder(name)
    files = [
        file
        for day in list_days(storage, folder, window.since, window.until)
        for file in visible(day, read_merges(storage, folder, day))
        if window.touches(file) and (version is None or file.version == version)
    ]
    if not files and next(storage.list(f"{DEPLOYMENTS}/{name}", deep=True), None) is None:
        names = {entry.path.split("/")[1] for entry in storage.list(DEPLOYMENTS, deep=True)}
        close = nearest_names(name, sorted(names))
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise NotFoundError(f"There is no deployment {name!r} in {storage}.{hint}", wanted=name, nearest=close)
    return files


def _read(
    storage: Storage, folder: str, files: Sequence[LogFile], columns: Sequence[str] | None, window: _Window
) -> pa.Table:
    if not files:
        return _chosen(pa.schema(HEAD).empty_table(), columns, [])
    fs, root = storage.arrow()
    there: dict[str, None] = {}

    def read_one(file: LogFile) -> pa.Table:
        path = "/".join(part for part in (root, folder, str(file.day), file.name) if part)
        with pq.ParquetFile(fs.open_input_file(path)) as opened:
            names = opened.schema_arrow.names
            there.update(dict.fromkeys(names))
            wanted = None if columns is None else [one for one in names if one in {*columns, *_ORDER}]
            return window.cut(opened.read(wanted), file)

    with ThreadPoolExecutor(_AT_ONCE, "read-log") as pool:
        tables = list(pool.map(read_one, files))
    dropped = sum(dropped_in(table.schema) for table in tables)
    try:
        rows = pa.concat_tables([table.replace_schema_metadata() for table in tables], promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        versions = ", ".join(str(one) for one in sorted({file.version for file in files}))
        raise InvalidInputError(
            f"Versions {versions} have fields of the same name and other types ({error}); read one of them at a time: "
            f"version={files[-1].version}."
        ) from error
    rows = rows.sort_by([(one, "ascending") for one in _ORDER]).replace_schema_metadata({DROPPED: str(dropped)})
    return _chosen(rows, columns, list(there))


def _chosen(rows: pa.Table, columns: Sequence[str] | None, there: Sequence[Any]) -> pa.Table:
    if columns is None:
        return rows
    unknown = [name for name in columns if name not in rows.column_names]
    if unknown and there:
        close = nearest_names(unknown[0], there)
        raise NotFoundError(
            f"The log has no column {unknown[0]!r}; it has {', '.join(there)}.", wanted=unknown[0], nearest=close
        )
    return rows.select([name for name in columns if name in rows.column_names])
