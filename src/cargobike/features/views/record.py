"""A view as a project keeps it: `views/<name>/<version>/view.json`, created only if absent, never changed."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest, nearest_names
from cargobike.store.assets.numbering import create_next
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storage import Storage

FOLDER: Final = "views"
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FILE: Final = re.compile(rf"{FOLDER}/(?P<name>{NAME.pattern})/(?P<version>[1-9]\d{{0,5}})/view\.json")


class FeatureOf(msgspec.Struct, frozen=True):
    """A feature of a group, and what it is called in the view."""

    group: str
    version: int
    feature: str
    column: str


class ViewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a user said about a view.

    Attributes:
        name: Its name in the project.
        version: Counted from 1.
        features: What it takes from groups, in order.
        label: The column that a model learns; empty if there is none.
        transformations: The name of what is done to a feature, or a function as `module:name`.
        on_demand: Features that are computed for a request: a function as `module:name`.
        description: What it is for, for people.
        attached: What other programs keep with it, as text, by their names.
    """

    name: str
    version: int = 1
    features: tuple[FeatureOf, ...]
    label: str = ""
    transformations: dict[str, str] = {}
    on_demand: dict[str, str] = {}
    description: str = ""
    attached: dict[str, str] = {}
    at: float = 0.0
    user: str = ""

    def says_the_same(self, other: ViewRecord) -> bool:
        """Tell whether two records differ only in version, time and user."""
        return msgspec.structs.replace(self, version=other.version, at=other.at, user=other.user) == other


_read_before: Final = ReadOnce[ViewRecord]()


def check_name(kind: str, name: str) -> None:
    """Refuse what can be no name of a view or a training dataset.

    Raises:
        InvalidInputError: If it is none.
    """
    if not NAME.fullmatch(str(name)):
        raise InvalidInputError(
            f"{name!r} was given as the name of a {kind}; names have lower-case letters, digits and '_', begin with a "
            "letter, and have at most 63 of them."
        )


def read_views(storage: Storage) -> list[ViewRecord]:
    """Return all views of a project in all versions, by name and version."""
    places = sorted(
        (match["name"], int(match["version"]), entry.token)
        for entry in storage.list(FOLDER, deep=True)
        if (match := _FILE.fullmatch(entry.path))
    )
    return [
        _read_before.get(storage, _path(name, version), token, partial(read_view, storage, name, version))
        for name, version, token in places
    ]


def read_view(storage: Storage, name: str, version: int) -> ViewRecord:
    """Return a version of a view.

    Raises:
        StoreError: If it cannot be understood.
    """
    path = _path(name, version)
    record: ViewRecord = decode(storage, path, ViewRecord)
    if (record.name, record.version) != (name, version):
        raise StoreError(f"{storage}/{path} describes another view: {record.name}, version {record.version}.")
    return record


def versions_of(storage: Storage, name: str) -> list[int]:
    """Return the versions of a view, the oldest first."""
    check_name("view", name)
    matches = (_FILE.fullmatch(entry.path) for entry in storage.list(f"{FOLDER}/{name}", deep=True))
    return sorted(int(match["version"]) for match in matches if match)


def find_view(storage: Storage, name: str, version: int | None = None) -> ViewRecord:
    """Return a view, by default its newest version.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    versions = versions_of(storage, name)
    if not versions:
        names = sorted({record.name for record in read_views(storage)})
        raise NotFoundError(
            f"There is no view {name!r}; there are {', '.join(names) or 'none yet'}.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    if version is not None and version not in versions:
        raise NotFoundError(f"The view {name} has no version {version}; it has {', '.join(map(str, versions))}.")
    return read_view(storage, name, versions[-1] if version is None else version)


def keep_view(storage: Storage, record: ViewRecord) -> ViewRecord:
    """Write a view as the next version of its name, unless the newest says the same already."""
    versions = versions_of(storage, record.name)
    number = versions[-1] if versions else 0
    if number and record.says_the_same(newest := read_view(storage, record.name, number)):
        return newest
    number = create_next(
        storage,
        lambda version: _path(record.name, version),
        lambda version: encode(msgspec.structs.replace(record, version=version)),
        number + 1,
    )
    return msgspec.structs.replace(record, version=number)


def fitted_path(view: str, version: int, dataset: str) -> str:
    """Return where it lies how a view was fitted for a training dataset, such as `team_value:2`."""
    return f"{FOLDER}/{view}/{version}/fitted/{dataset.replace(':', '-')}.json"


def _path(name: str, version: int) -> str:
    return f"{FOLDER}/{name}/{version}/view.json"


def encode(record: Any) -> bytes:
    """Return the bytes of a record."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2)


def decode(storage: Storage, path: str, kind: type[Any]) -> Any:
    """Return the record that a file holds; raises `StoreError`."""
    data = storage.read(path)
    if data is None:
        raise StoreError(f"{storage}/{path} is gone.")
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise StoreError(f"{storage}/{path} cannot be read: {error}.") from error
