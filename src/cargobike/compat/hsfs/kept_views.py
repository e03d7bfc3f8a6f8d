"""What a feature view of Hopsworks says beyond a view of ours, kept with that."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cargobike import features
from cargobike.compat.hsfs.constructor.filter import Place
from cargobike.compat.hsfs.constructor.query import Asked
from cargobike.compat.hsfs.transformation_function import Chosen, Udf, known_udf
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest

ATTACHED: Final = "hopsworks"
"""The name under which it is kept."""


class KeptView(msgspec.Struct, frozen=True):
    """What is kept with a view of ours.

    Attributes:
        version: The version that Hopsworks's users gave; ours are counted without gaps.
        asked: The query.
        labels: The columns that models learn.
        computed: Columns that functions make from several features.
        dropped: Features that such columns stand in place of.
    """

    version: int
    asked: Asked
    labels: tuple[str, ...] = ()
    computed: dict[str, tuple[str, ...]] = {}
    dropped: tuple[str, ...] = ()


class Computing:
    """A function of a user for features that are called otherwise than its arguments."""

    def __init__(self, function: Udf, names: Sequence[str]) -> None:
        self._function = function
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def __call__(self, *arrays: Any) -> Any:
        """Return the values of the column."""
        return self._function(*arrays)


def make_view(
    name: str, version: int, asked: Asked, labels: Sequence[str], chosen: Sequence[Chosen], description: str
) -> features.View:
    """Make a view of ours for what a feature view says."""
    columns = asked.columns()
    mistakes = [
        f"the label {one!r} is not in the query.{nearest(one, columns)}" for one in labels if one not in columns
    ]
    mistakes += [
        f"{one!r}, which is to be transformed, is not in the query.{nearest(one, columns)}"
        for each in chosen
        for one in each.features
        if one not in columns
    ]
    if mistakes:
        raise InvalidInputError(f"The feature view {name!r} cannot be made like this:", mistakes)
    inner = {
        column: f"{place.group}:{place.version}.{place.feature}"
        for column, place in columns.items()
        if column not in labels and is_feature(place)
    }
    single = {each.features[0]: each.what for each in chosen if len(each.features) == 1}
    several = [each for each in chosen if len(each.features) > 1 and isinstance(each.what, Udf)]
    dropped = [one for each in several for one in each.what.drop]  # type: ignore[union-attr]
    kept = KeptView(
        version, asked, tuple(labels), {each.output: tuple(each.features) for each in several}, tuple(dropped)
    )
    return features.create_view(
        name,
        features=inner,
        label=labels[0] if labels else "",
        transformations=single,
        on_demand={each.output: Computing(each.what, each.features) for each in several},  # type: ignore[arg-type]
        description=description,
        attached={ATTACHED: msgspec.json.encode(kept).decode()},
    )


def is_feature(place: Place) -> bool:
    """Tell whether a column is a feature, and neither key nor event time."""
    return place.feature in features.group(place.group, place.version).definition.features


def kept_of(view: features.View) -> KeptView | None:
    """Return what is kept with a view; `None` if Hopsworks's names did not make it."""
    text = view.record.attached.get(ATTACHED)
    return None if text is None else msgspec.json.decode(text, type=KeptView)


def versions_of(name: str) -> Iterator[tuple[features.View, KeptView]]:
    """Yield all versions of a view that Hopsworks's names made, the newest first."""
    try:
        newest = features.view(name)
    except (NotFoundError, InvalidInputError):
        return
    for number in range(newest.version, 0, -1):
        view = features.view(name, number)
        kept = kept_of(view)
        if kept is not None:
            yield features.view(name, number, functions=_functions(view, kept)), kept


def _functions(view: features.View, kept: KeptView) -> Mapping[str, Any]:
    """Return the functions of a view that this process knows, or can import."""
    found: dict[str, Any] = {}
    for column, reference in {**view.record.transformations, **view.record.on_demand}.items():
        module, colon, name = reference.partition(":")
        if not colon:
            continue
        function = known_udf(name) or _imported(module, name)
        if function is not None:
            found[column] = Computing(function, kept.computed[column]) if column in kept.computed else function
    return found


def _imported(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
