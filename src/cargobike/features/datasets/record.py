"""A training dataset as a project keeps it: `datasets/<name>/<version>/manifest.json`, created last.

A version is claimed before (`claims.py`), so that two writers never share one; what was claimed and never finished is
not seen by anything.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest, nearest_names
from cargobike.features.views.record import NAME, check_name
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storage import Storage

FOLDER: Final = "datasets"
MANIFEST: Final = "manifest.json"
_MANIFEST: Final = re.compile(rf"{FOLDER}/(?P<name>{NAME.pattern})/(?P<version>[1-9]\d{{0,5}})/manifest\.json")
_PLACE: Final = re.compile(rf"{FOLDER}/{NAME.pattern}/[1-9]\d{{0,5}}/[a-z][a-z0-9_]{{0,30}}(\.[a-z]+)?")


class PartRecord(msgspec.Struct, frozen=True):
    """A part of a training dataset: a table below the project's address, and beside it the same in another format.

    Its rows are a version of the table: the first, unless a writer that was given up had written there before.
    """

    name: str
    path: str
    rows: int
    fingerprint: str
    exported: str = ""
    table_version: int = 1


class DatasetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a version of a training dataset holds, and what it was made from.

    Attributes:
        name: Its name in the project.
        version: Counted from 1.
        view: The view whose features it has.
        view_version: The version of the view.
        label: The column that a model learns.
        commits: The commit at which each group was read.
        group_versions: The version of each group.
        parts: Its parts, in order.
        fingerprint: The same for equal content.
        split: The share of each part.
        seed: Drew the parts.
        by: What rows of one part share.
        time: The column that says when a row is.
        known_at: Whether only what was known by then counts.
        format: The format beside tables; `parquet` if there is none.
        late: How many values of each group were written after the time of their row.
        made_from: What the rows were read from that features were joined to: kind, name and version of each.
        step: What names the step of a pipeline that made it; empty outside of pipelines.
    """

    name: str
    version: int
    view: str
    view_version: int
    label: str = ""
    commits: dict[str, int] = {}
    group_versions: dict[str, int] = {}
    parts: tuple[PartRecord, ...] = ()
    fingerprint: str = ""
    split: dict[str, float] = {}
    seed: int = 0
    by: str = "rows"
    time: str = ""
    known_at: str = ""
    format: str = "parquet"
    at: float = 0.0
    user: str = ""
    made_from: tuple[tuple[str, str, str], ...] = ()
    step: str = ""


_read_before: Final = ReadOnce[DatasetRecord]()


def folder_of(name: str, version: int) -> str:
    """Return where a version lies in its project."""
    return f"{FOLDER}/{name}/{version}"


def manifest_of(name: str, version: int) -> str:
    """Return the file that makes a version visible."""
    return f"{folder_of(name, version)}/{MANIFEST}"


def commit_dataset(storage: Storage, record: DatasetRecord) -> None:
    """Make a version visible."""
    path = manifest_of(record.name, record.version)
    if not storage.create(path, msgspec.json.format(msgspec.json.encode(record), indent=2)):
        raise StoreError(f"{storage}/{path} is there already; another process has written it.")


def find_dataset(storage: Storage, name: str, version: int | None = None) -> DatasetRecord:
    """Return a version of a training dataset, by default the newest.

    Args:
        storage: The storage of the project.
        name: Its name, or name and version: `team_value:2`.
        version: The version.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    name, _, behind = name.partition(":")
    if behind and not behind.isdigit():
        raise InvalidInputError(f"{behind!r} was given as a version; versions are numbers.")
    check_name("training dataset", name)
    wanted = version if version is not None else int(behind) if behind else None
    versions = [number for _, number in _versions(storage, name, "manifest.json")]
    if not versions:
        names = sorted({record.name for record in read_datasets(storage)})
        raise NotFoundError(
            f"There is no training dataset {name!r}; there are {', '.join(names) or 'none yet'}.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    if wanted is not None and wanted not in versions:
        raise NotFoundError(
            f"The training dataset {name} has no version {wanted}; it has {', '.join(map(str, sorted(versions)))}."
        )
    return _read(storage, name, max(versions) if wanted is None else wanted)


def versions_of_dataset(storage: Storage, name: str) -> list[int]:
    """Return the versions of a training dataset, the newest first."""
    check_name("training dataset", name)
    return sorted((number for _, number in _versions(storage, name, MANIFEST)), reverse=True)


def read_datasets(storage: Storage) -> list[DatasetRecord]:
    """Return all training datasets of a project in all versions, by name and version."""
    places = sorted(
        (match["name"], int(match["version"]), entry.token)
        for entry in storage.list(FOLDER, deep=True)
        if (match := _MANIFEST.fullmatch(entry.path))
    )
    return [
        _read_before.get(storage, manifest_of(name, version), token, partial(_read, storage, name, version))
        for name, version, token in places
    ]


def _versions(storage: Storage, name: str, file: str) -> list[tuple[str, int]]:
    pattern = re.compile(rf"{FOLDER}/{re.escape(name)}/([1-9]\d{{0,5}})/{re.escape(file)}")
    matches = (pattern.fullmatch(entry.path) for entry in storage.list(f"{FOLDER}/{name}", deep=True))
    return [(name, int(match[1])) for match in matches if match]


def _read(storage: Storage, name: str, version: int) -> DatasetRecord:
    path = manifest_of(name, version)
    data = storage.read(path)
    if data is None:
        raise StoreError(f"{storage}/{path} is gone.")
    try:
        record: Any = msgspec.json.decode(data, type=DatasetRecord)
    except msgspec.DecodeError as error:
        raise StoreError(f"{storage}/{path} cannot be read: {error}.") from error
    paths = [path for part in record.parts for path in (part.path, part.exported) if path]
    wrong = [path for path in paths if not _PLACE.fullmatch(path)]
    if (record.name, record.version) != (name, version) or wrong:
        raise StoreError(f"{storage}/{path} describes another training dataset, or files outside of it.")
    return record  # type: ignore[no-any-return]
