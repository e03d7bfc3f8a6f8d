"""Look-ups for a view: everything that can be decided once is decided once."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.features.online.lookup import GroupLookup
from cargobike.features.online.vectors import Vector, Vectors, Why
from cargobike.features.views.functions import Function, parameters_of
from cargobike.features.views.transforming import State, Transformation, one_value, plain_value


class Serving:
    """The prepared look-ups of a view.

    Args:
        lookups: One for each group.
        kinds: Types of the features, by column, in the order of the view.
        on_demand: Functions of features that are computed for a request.
        transformations: What is done to features, with what was learned for it.
    """

    def __init__(
        self,
        lookups: Sequence[GroupLookup],
        kinds: Mapping[str, str],
        on_demand: Mapping[str, Function],
        transformations: Mapping[str, tuple[Transformation, State]],
    ) -> None:
        self._lookups = lookups
        self._kinds = kinds
        self._on_demand = {name: (function, parameters_of(function)) for name, function in on_demand.items()}
        self._transformations = transformations
        self.keys = list(dict.fromkeys(key for lookup in lookups for key in lookup.key))
        needed = {each for _, parameters in self._on_demand.values() for each in parameters}
        self.requested = [name for name in sorted(needed) if name not in {*kinds, *self.keys, *on_demand}]
        self._names = {*self.keys, *self.requested}
        self._is_plain = not on_demand and not transformations
        self._finders = [(lookup.find, lookup.key) for lookup in lookups]
        self._blank = dict.fromkeys(name for name in kinds if name not in on_demand)
        self._only = (lookups[0].find, lookups[0].key[0]) if len(lookups) == 1 and len(self.keys) == 1 else None

    @property
    def columns(self) -> list[str]:
        """Names of the values that a look-up gives, in their order."""
        made = self._transformations
        return [
            column
            for name in self._kinds
            for column in (made[name][0].names(name, made[name][1]) if name in made else [name])
        ]

    def vector(self, given: Mapping[str, Any]) -> Vector:
        """Return the values for one key."""
        if given.keys() != self._names:
            self._refuse(given)
        values: dict[str, Any] = Vector()
        absent: dict[str, Why] | None = None
        if self._only is not None:
            find, key = self._only
            absent = find((given[key],), values)
        else:
            values.update(self._blank)  # the order of the view, also where it takes groups in turns
            for find, keys in self._finders:
                why = find([given[key] for key in keys], values)
                absent = why if absent is None else {**absent, **(why or {})}
        if self._is_plain:
            values._absent = absent  # type: ignore[attr-defined]
            return values  # type: ignore[return-value]
        return self._transformed(values, given, absent)

    def event_time(self, group: str, given: Mapping[str, Any]) -> datetime.datetime | None:
        """Return since when the row of a key in one of the groups is true; `None` if that is not known."""
        for lookup in self._lookups:
            if lookup.group == group and all(key in given for key in lookup.key):
                return lookup.event_time([given[key] for key in lookup.key])
        return None

    def vectors(self, given: Any) -> Vectors:
        """Return the values for several keys, in their order."""
        rows = self._rows(given)
        columns: dict[str, np.ndarray] = {}
        absent: dict[str, dict[int, Why]] = {}
        if not self._is_plain:
            return _together([self.vector(row) for row in rows])
        if self._only is not None:
            self._lookups[0].find_all([(row[self.keys[0]],) for row in rows], columns, absent)
        else:
            for lookup in self._lookups:
                lookup.find_all([[row[key] for key in lookup.key] for row in rows], columns, absent)
            columns = {name: columns[name] for name in self._blank}
        return Vectors(columns, absent, len(rows))

    def close(self) -> None:
        """Close the files in this thread."""
        for lookup in self._lookups:
            lookup.close()

    def _transformed(self, values: dict[str, Any], given: Mapping[str, Any], absent: dict[str, Why] | None) -> Vector:
        arrays: dict[str, np.ndarray] = {name: one_value(value, self._kinds[name]) for name, value in values.items()}
        for name, value in given.items():
            arrays.setdefault(name, one_value(value, "double" if isinstance(value, int | float) else "other"))
        for name, (function, parameters) in self._on_demand.items():
            arrays[name] = np.asarray(function(*(arrays[each] for each in parameters)))
            values[name] = plain_value(arrays[name])
        result: dict[str, Any] = {}
        for name, value in values.items():
            if name in self._transformations:
                transformation, state = self._transformations[name]
                made = transformation.apply(name, arrays[name], state)
                result.update({column: plain_value(array) for column, array in made.items()})
            else:
                result[name] = value
        return Vector(result, {name: why for name, why in (absent or {}).items() if name in result})

    def _rows(self, given: Any) -> list[Mapping[str, Any]]:
        if hasattr(given, "to_dict") and hasattr(given, "columns"):
            given = (
                given.to_dict("list") if type(given).__module__.startswith("pandas") else given.to_dict(as_series=False)
            )
        if isinstance(given, Mapping):
            if given.keys() != self._names:
                self._refuse(given)
            return [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise InvalidInputError(f"{given!r} was given; give a list of keys, a dict of lists or a DataFrame.")
        rows = list(given)
        if rows and not isinstance(rows[0], Mapping) and len(self._names) == 1:
            name = next(iter(self._names))
            return [{name: value} for value in rows]
        for row in rows:
            if not isinstance(row, Mapping) or row.keys() != self._names:
                self._refuse(row if isinstance(row, Mapping) else {})
        return rows

    def _refuse(self, given: Mapping[str, Any]) -> None:
        wanted = [*self.keys, *self.requested]
        mistakes = [f"{name} is missing." for name in wanted if name not in given]
        mistakes += [f"{name!r} is not known.{nearest(name, wanted)}" for name in given if name not in self._names]
        raise InvalidInputError(f"A look-up in this view takes {', '.join(wanted)}:", mistakes)


def _together(vectors: Sequence[Vector]) -> Vectors:
    names = list(vectors[0]) if vectors else []
    columns: dict[str, np.ndarray] = {}
    absent: dict[str, dict[int, Why]] = {}
    for name in names:
        columns[name] = np.array([vector[name] for vector in vectors], dtype=object)
        missing = {number: vector.states[name] for number, vector in enumerate(vectors) if vector[name] is None}
        if missing:
            absent[name] = missing
    return Vectors(columns, absent, len(vectors))
