"""Look-ups of a feature view of Hopsworks: values in the order of its query, without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from cargobike import features
from cargobike.compat.hsfs.frames import give
from cargobike.compat.hsfs.kept_views import KeptView
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.features.views.transforming import apply_all


class Lookups:
    """Looks up values for keys.

    Args:
        view: Our view, fitted for a training dataset.
        kept: What Hopsworks's names say beyond it.
    """

    def __init__(self, view: features.View, kept: KeptView) -> None:
        self.view = view
        self._kept = kept

    def find(
        self,
        entry: Mapping[str, Any],
        passed: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        transform: bool = True,
        request: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the newest values for a key.

        Args:
            entry: The key.
            passed: Values that take the place of those that are looked up.
            allow_missing: Whether a key without a row gives `None`.
            transform: Whether transformations are applied.
            request: Values that features are computed from.

        Raises:
            NotFoundError: If there is no row for the key.
        """
        view = self.view if transform else self._untransformed
        given = {**entry, **(request or {})}
        for join in self._kept.asked.joins:  # a key may be given by the name that it has among the rows
            for own, key in zip(join.on, join.key, strict=True):
                named = next((name for name in (f"{join.prefix}{key}", key, own) if name in given), None)
                if named is not None:
                    given.setdefault(key, given[named])
        wanted = view.serving()
        vector = view.vector(**{name: given[name] for name in [*wanted.keys, *wanted.requested] if name in given})
        passed = passed or {}
        missing = [name for name, why in vector.states.items() if why == "missing" and name not in passed]
        if missing and not allow_missing:
            raise NotFoundError(
                f"There is no row for {dict(entry)} in {view.name}: {', '.join(missing)}. Insert it into a group with "
                "online_enabled=True, or say allow_missing=True."
            )
        times = {column: wanted.event_time(group, given) for column, group in self._times.items()}
        values = {**given, **times, **vector, **passed}
        return {name: values.get(name) for name in (self._outer if transform else self._inner)}

    def transformed(self, values: Sequence[Any]) -> list[Any]:
        """Return values that were looked up without transformations as a model takes them."""
        made, fitted = self.view.transformations(), self.view.fitted()
        named = dict(zip(self._inner, values, strict=True))
        found: dict[str, Any] = {}
        for name, value in named.items():
            if name not in made:
                found[name] = value
                continue
            if fitted is None:
                raise InvalidInputError("Transformations were never fitted; train_test_split(…) fits them.")
            found.update(apply_all(made, fitted.states, pa.table({name: pa.array([value])})).to_pylist()[0])
        return list(found.values())

    @cached_property
    def _untransformed(self) -> features.View:
        record = msgspec.structs.replace(self.view.record, transformations={})
        return features.View(record, self.view.storage, features.group)

    @cached_property
    def _times(self) -> dict[str, str]:
        """Columns that are event times, and the group of each."""
        return {
            column: place.group
            for column, place in self._kept.asked.columns().items()
            if place.feature == features.group(place.group, place.version).definition.event_time
        }

    @cached_property
    def _inner(self) -> list[str]:
        """Names of what look-ups give without transformations, in order."""
        hidden = {*self._kept.labels, *self._kept.dropped}
        return [name for name in [*self._kept.asked.columns(), *self._kept.computed] if name not in hidden]

    @cached_property
    def _outer(self) -> list[str]:
        """Names of what look-ups give, in order; a transformation may make several columns of one."""
        made, fitted = self.view.transformations(), self.view.fitted()
        states = fitted.states if fitted is not None else {}
        lists = [
            made[name].names(name, states[name]) if name in made and name in states else [name] for name in self._inner
        ]
        return [name for names in lists for name in names]


def give_vectors(vectors: Sequence[Mapping[str, Any]], kind: str) -> Any:
    """Return values as lists, arrays or a frame."""
    if kind == "list":
        return [list(vector.values()) for vector in vectors]
    if kind == "numpy":
        return np.array([list(vector.values()) for vector in vectors])
    table = pa.Table.from_pylist([dict(vector) for vector in vectors])
    return give(kind, lambda: table, default="pandas")
