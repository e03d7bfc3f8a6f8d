"""What the rows of groups came from, kept beside their definitions: `features/<name>.v<version>.from.<digest>.json`.

Each source of a group is written once, when rows of it are first inserted. All lie in the folder of the definitions, so
that one listing finds them, and no log of commits has to be read to follow lineage.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import Keepable
from cargobike.core.registering.tracing import Thing
from cargobike.core.values.numbers import describe
from cargobike.features.definition import Definition
from cargobike.features.groups.naming import FOLDER, NAME
from cargobike.features.groups.rows.incoming import is_query
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storage import Storage
from cargobike.store.history.environment import without_credentials

_FILE: Final = re.compile(
    rf"{FOLDER}/(?P<name>{NAME.pattern})\.v(?P<version>[1-9]\d{{0,5}})\.from\.(?P<digest>[0-9a-f]{{32}})\.json"
)


class GroupOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Something that rows of a group came from, and the first commit that had rows of it, with its time if known."""

    kind: str
    name: str
    version: str = ""
    commit: int = 0
    at: float = 0.0

    @property
    def thing(self) -> Thing:
        """What lineage calls it."""
        return Thing(self.kind, self.name, self.version)


_read_before: Final = ReadOnce[GroupOrigin]()


class Named(NamedTuple):
    """Rows that a query names: of a group or of a table of the project; and what lineage calls them."""

    rows: object
    thing: Thing


FindRows = Callable[[str], Named | None]
Stated = tuple[str, ...] | Keepable
"""What a user says that rows were made from: an object of the project, or kind, name and version."""


class Tracked:
    """Follows where the rows of one insert come from: files, what a query names, and what the user says.

    Args:
        find_rows: Gives what a name in a query stands for.
        source: What was inserted.
        made_from: What the user says that it was made from.
    """

    def __init__(self, find_rows: FindRows, source: object, made_from: Sequence[Stated] = ()) -> None:
        self._find_rows = find_rows
        self.things: list[Thing] = [_thing_of(one) for one in made_from]
        if isinstance(source, str | os.PathLike) and not is_query(source):
            self.things.append(Thing("file", _address_of(os.fspath(source))))

    def rows_of(self, name: str) -> object:
        """Return the rows that a name in the query stands for, and remember what they are; `None` if it is unknown."""
        named = self._find_rows(name)
        if named is None:
            return None
        self.things.append(named.thing)
        return named.rows


def remember_origins(
    storage: Storage, definition: Definition, things: Iterable[Thing], commit: int, written: set[Thing]
) -> None:
    """Write down what the rows of a commit came from, unless that is known from an earlier one.

    Args:
        storage: Where the group lies.
        definition: The group.
        things: What the rows came from.
        commit: The commit.
        written: What is written down already, as far as the caller knows; added to, so that it is not tried each time.
    """
    own = Thing("group", definition.name, str(definition.version))
    for thing in dict.fromkeys(things):
        if thing != own and thing not in written:
            origin = GroupOrigin(kind=thing.kind, name=thing.name, version=thing.version, commit=commit, at=time.time())
            storage.create(_path(definition, thing), msgspec.json.encode(origin))
            written.add(thing)


def group_origins(storage: Storage) -> Iterator[tuple[Thing, GroupOrigin]]:
    """Yield each version of a group that came from something, with what it came from; damaged files are left out."""
    for entry in storage.list(FOLDER):
        match = _FILE.fullmatch(entry.path)
        if match is not None and (origin := _read_once(storage, entry.path, entry.token)) is not None:
            yield Thing("group", match["name"], match["version"]), origin


def _thing_of(one: Stated) -> Thing:
    if isinstance(one, tuple) and 2 <= len(one) <= 3 and all(isinstance(part, str) for part in one):
        return Thing(*one)
    if not isinstance(one, Keepable):
        raise InvalidInputError(
            f"made_from has {describe(one)}; give tables, groups, views, training datasets, or (kind, name, version), "
            "such as ('file', '/data/rows.csv')."
        )
    kind, id = one.kept_as()
    name, _, version = id.rpartition(":")
    return Thing(kind, name, version) if name else Thing(kind, id)


def _address_of(path: str) -> str:
    """Return what lineage calls a file: its whole path, or its address without credentials."""
    if "://" in path and not path.startswith("file://"):
        return without_credentials(path)
    return os.path.abspath(os.path.expanduser(path.removeprefix("file://")))


def _path(definition: Definition, thing: Thing) -> str:
    digest = hashlib.sha256("\n".join(thing).encode()).hexdigest()[:32]
    return f"{FOLDER}/{definition.name}.v{definition.version}.from.{digest}.json"


def _read_once(storage: Storage, path: str, token: str) -> GroupOrigin | None:
    """Read a file, unless this process has read it: one that was written never changes."""
    try:
        return _read_before.get(
            storage, path, token, lambda: msgspec.json.decode(storage.read(path) or b"", type=GroupOrigin)
        )
    except msgspec.DecodeError:
        return None
