"""Define groups, and find those that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import own_step
from cargobike.core.running.accounts import user_name
from cargobike.core.values.kinds import read_flag, read_text
from cargobike.core.values.numbers import describe
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.features.definition import WRITTEN_AT, Definition, Expectation
from cargobike.features.delta.schemas import TYPE_NAMES, kept_as, type_of
from cargobike.features.groups.definitions import all_definitions, create_definition
from cargobike.features.groups.finding import make_group
from cargobike.features.groups.group import Group
from cargobike.features.groups.naming import NAME
from cargobike.features.groups.rows.expecting import check_expectations
from cargobike.features.groups.rows.fitting import KEY_KINDS, is_key_type
from cargobike.features.online.stores.choosing import read_online
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of

_MAY_DIFFER = ("features", "key_types", "revision", "description", "tags", "owner")
"""What two calls that create the same group may say differently: what is learned later, and words for people."""


@own_step("features.create_group")
def create_group(
    name: str,
    *,
    key: str | Sequence[str],
    event_time: str | None = None,
    schema: Mapping[str, str] | pa.Schema | None = None,
    description: str = "",
    online: bool | str = False,
    ttl: Seconds | None = None,
    expectations: Sequence[Expectation] = (),
    tags: Sequence[str] = (),
    owner: str | None = None,
    allow_future: bool = False,
    version: int | None = None,
) -> Group:
    """Define a feature group in the project; one that is there already, defined the same way, is returned.

    Args:
        name: Its name: lower case, digits and `_`.
        key: The column, or columns, that say what a row is about.
        event_time: The column that says since when a row is true; leave it out for rows that have no time.
        schema: Types of columns by name, such as `{"budget": "double"}`; by default the first rows decide.
        description: What it holds.
        online: Whether its newest rows are kept for look-ups, and where: `True` or `"sqlite"` for a file on each host,
            `"lmdb"` for a quicker one, `"redis://host:6379/0"` for a server that hosts share.
        ttl: How long a row stays true after its event time, such as `"30d"`; by default for ever.
        expectations: What must be true of rows before they are written: `features.not_null("budget")`.
        tags: Words to find it by.
        owner: Who answers for it; by default the user who runs this.
        allow_future: Whether event times may lie in the future, as those of forecasts do.
        version: The version of the definition; by default 1. Other types or another key need a new one.

    Raises:
        InvalidInputError: If something cannot be used, or the version exists and is defined differently.

    Example:
        >>> from datetime import date
        >>> from cargobike import features
        >>> players = features.create_group("players", key="player_id", event_time="at")
        >>> players.insert([{"player_id": 7, "at": date(2026, 5, 1), "goals": 3}]).inserted
        1
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    mistakes = _mistakes(name, keys, event_time, version)
    types = _types(schema, mistakes)
    own = {column: kind for column, kind in types.items() if column not in keys and column != event_time}
    mistakes += [
        f"{column!r} is {types[column]}; a key has {KEY_KINDS}"
        for column in keys
        if column in types and not is_key_type(type_of(types[column]))
    ]
    if mistakes:
        raise InvalidInputError(f"The group {name!r} cannot be defined like this.", mistakes)
    is_online, online_store = read_online(online)
    definition = Definition(
        name=name,
        version=version or 1,
        key=keys,
        event_time=event_time or "",
        features=own,
        key_types=tuple(types[column] for column in keys) if all(column in types for column in keys) else (),
        ttl_s=read_seconds("ttl", ttl),
        online=is_online,
        online_store=online_store,
        description=read_text("description", description),
        tags=tuple(read_text("a tag", tag) for tag in tags),
        owner=user_name() if owner is None else read_text("owner", owner),
        expectations=tuple(expectations),
        allow_future=read_flag("allow_future", allow_future),
    )
    if any(not isinstance(one, Expectation) for one in expectations):
        raise InvalidInputError(
            "Functions cannot be kept with a group; give them with each insert: insert(…, expectations=[function])."
        )
    check_expectations(expectations, definition, [*keys, definition.event_time, *own] if own else ())
    return _created(definition, is_given=version is not None)


def _created(definition: Definition, *, is_given: bool) -> Group:
    folder = project.prepare()
    storage = storage_of(folder)
    others = [one for one in all_definitions(storage) if one.name == definition.name]
    existing = next((one for one in others if one.version == definition.version), None)
    if existing is None:
        if create_definition(storage, definition):
            return make_group(definition, folder)
        return _created(definition, is_given=is_given)  # another process was first
    if not is_given and len(others) > 1:
        existing = others[-1]
    differing = [
        f"{field} is {getattr(existing, field)!r} there, and {getattr(definition, field)!r} here"
        for field in Definition.__struct_fields__
        if field not in _MAY_DIFFER and field != "version" and getattr(existing, field) != getattr(definition, field)
    ]
    differing += [
        f"{name!r} is {existing.features[name]} there, and {kind} here"
        for name, kind in definition.features.items()
        if name in existing.features and existing.features[name] != kind
    ]
    if differing:
        raise InvalidInputError(
            f"There is a group {definition.name!r} already, version {existing.version}, defined differently. Make "
            f"a new one (version={others[-1].version + 1}), or use the one there: features.group({definition.name!r}).",
            differing,
        )
    return make_group(existing, folder)


def _mistakes(name: Any, keys: tuple[Any, ...], event_time: Any, version: Any) -> list[str]:
    mistakes = []
    if not isinstance(name, str) or not NAME.fullmatch(name):
        mistakes.append(
            f"{name!r} is no name; names begin with a letter and have lower case, digits and '_', 63 at most"
        )
    if not keys or not all(isinstance(column, str) and column for column in keys):
        mistakes.append(f"key must be the name of a column, or several; {describe(keys)} was given")
    elif len(set(keys)) != len(keys):
        mistakes.append(f"key names a column twice: {', '.join(keys)}")
    if event_time is not None and (not isinstance(event_time, str) or not event_time):
        mistakes.append(f"event_time must be the name of a column; {describe(event_time)} was given")
    elif event_time in keys:
        mistakes.append(f"{event_time!r} cannot be both a key and the event time; time is compared, not only equal")
    mistakes += [f"the column {one!r} is set by the group itself" for one in (*keys, event_time) if one == WRITTEN_AT]
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 1):
        mistakes.append(f"version must be a whole number from 1 on; {describe(version)} was given")
    return mistakes


def _types(schema: Any, mistakes: list[str]) -> dict[str, str]:
    """Return the types of columns by name, as they will be kept; what cannot be is added to the mistakes."""
    if schema is None:
        return {}
    if isinstance(schema, pa.Schema):
        given = {field.name: field.type for field in schema}
    elif isinstance(schema, Mapping):
        given = dict(schema)
    else:
        mistakes.append(f"schema must be a dict of types by name, or an Arrow schema; {describe(schema)} was given")
        return {}
    types = {}
    for name, kind in given.items():
        kept = kept_as(kind) if isinstance(kind, pa.DataType) else type_of(kind) if isinstance(kind, str) else None
        if kept is None:
            mistakes.append(f"{name!r} is {kind}; groups hold {', '.join(TYPE_NAMES)}")
        elif name == WRITTEN_AT:
            mistakes.append(f"the column {name!r} is set by the group itself")
        else:
            types[str(name)] = str(kept)
    return types
