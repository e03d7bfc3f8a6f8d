"""Optimizers and stop rules as data: their names and what they were made with, and the way back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

import msgspec

from cargobike.core.asked import Named
from cargobike.core.values.exact import TUPLE, unpack_exactly
from cargobike.search.spaces.space import Searchspace

_ATTRIBUTES = {"searchspace": "preset_space", "num_trials": "preset_num_trials"}
"""Where optimizers keep arguments that the experiment itself may give as well."""

_MOST_BYTES = 100_000
"""A longer setting is told by its length and checksum: it would be in the way of everyone who reads the journal."""


def settings_of(thing: object) -> dict[str, object]:
    """Return what an object was made with: what it remembers of each argument of its class, defaults included.

    An argument is remembered in an attribute of the same name, or of that name after an underscore. One that is not
    remembered is left out.
    """
    try:
        parameters = inspect.signature(type(thing)).parameters
    except (TypeError, ValueError):  # a class that is not written in Python
        return {}
    settings: dict[str, object] = {}
    for name in parameters:
        for attribute in (_ATTRIBUTES.get(name, name), f"_{name}"):
            try:
                settings[name] = getattr(thing, attribute)
            except Exception:  # noqa: BLE001, S112 - a user's class; its properties may do anything
                continue
            break
    return settings


def describe(thing: object, settings: Mapping[str, object], *, registered_as: str = "") -> Named:
    """Return an optimizer or a stop rule as data; without a registered name, by where its class is."""
    kind = type(thing)
    name = registered_as or str(getattr(thing, "name", "")) or kind.__name__
    return Named(
        name,
        path="" if registered_as else f"{kind.__module__}:{kind.__qualname__}",
        settings={name: _short(_as_data(value)) for name, value in settings.items()},
    )


def restore(kind: object, settings: Mapping[str, Any]) -> Any:
    """Make an object of a class from settings that `describe` told.

    Raises:
        TypeError: If it is not a class, or has no such settings.
    """
    if not isinstance(kind, type):
        raise TypeError(f"{kind!r} is not a class")
    try:
        given = {name: _from_data(value) for name, value in settings.items()}
    except RecursionError:
        raise TypeError("its settings nest without end") from None
    return kind(**given)


def is_whole(thing: object, told: Named, make: Callable[[Named], object], tell: Callable[[Any], Named]) -> bool:
    """Tell whether a description says it all: what is made from it is the same, and told in the same words."""
    settings = told.settings
    if told.path or any(isinstance(value, _Foreign | _Long) for value in _leaves(settings)):
        return False
    try:
        again = make(msgspec.json.decode(msgspec.json.encode(told), type=Named))
    except Exception:  # noqa: BLE001 - any error means that the description does not suffice
        return False
    same = type(again) is type(thing) and vars(again).keys() == vars(thing).keys()
    return same and repr(tell(again)) == repr(told)


class _Foreign(str):
    """Stands for an object that is not data: where its class is."""


class _Long(str):
    """Stands for data that is too long for a journal: how long it is, and its checksum."""


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def _as_data(value: object) -> Any:
    """Return a setting as JSON can hold it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Searchspace):
        return {"searchspace": value.describe()}
    if isinstance(value, Mapping):
        return {str(name): _as_exact_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_as_data(item) for item in value]
    kind = value if isinstance(value, type) else type(value)
    return _Foreign(f"{kind.__module__}:{kind.__qualname__}")


def _as_exact_data(value: object) -> Any:
    """Return a hyperparameter's value: a tuple there is no list."""
    if isinstance(value, tuple):
        return {TUPLE: [_as_exact_data(item) for item in value]}
    if isinstance(value, list):
        return [_as_exact_data(item) for item in value]
    return _as_data(value)


def _from_data(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"searchspace"}:
        return Searchspace.from_description(value["searchspace"])
    return unpack_exactly(value)


def _short(value: Any) -> Any:
    try:
        data = msgspec.json.encode(value, enc_hook=str)
    except (TypeError, ValueError):
        return _Foreign(str(value)[:_MOST_BYTES])
    if len(data) <= _MOST_BYTES:
        return value
    return _Long(f"{len(value)} entries, {len(data)} bytes of JSON, CRC-32 {crc32(data):08x}")
