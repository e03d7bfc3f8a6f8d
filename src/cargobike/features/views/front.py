"""Make views, and find them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import own_step
from cargobike.core.running.accounts import user_name
from cargobike.features.groups.finding import group
from cargobike.features.queries.front import groups_for
from cargobike.features.queries.names import Owned, find_owners
from cargobike.features.views.functions import parameters_of, reference_of
from cargobike.features.views.record import FeatureOf, ViewRecord, check_name, find_view, keep_view, read_views
from cargobike.features.views.transforming import check_transformations
from cargobike.features.views.view import View
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


@own_step("features.create_view")
def create_view(
    name: str,
    *,
    features: Sequence[str] | Mapping[str, str],
    label: str = "",
    transformations: Mapping[str, str | Callable[..., Any]] | None = None,
    on_demand: Mapping[str, Callable[..., Any]] | None = None,
    description: str = "",
    attached: Mapping[str, str] | None = None,
) -> View:
    """Say what a model takes: features by name, the label it learns, and how features are transformed.

    A view that says the same as the newest of its name is returned; another one becomes its next version.

    Args:
        name: Its name: lower case, digits and `_`.
        features: Names as `get_features` takes them: `budget`, `teams.budget`, `teams:1.budget`, `teams.*`. A dict says
            what each is called in the view: `{"money": "teams.budget"}`.
        label: The column of the training rows that a model learns.
        transformations: For some features what is done to them: `"standardize"`, `"min_max"`, `"ordinal"`, `"one_hot"`,
            or a function from an array to an array; the label can be transformed too. They are fitted on the training
            part of a training dataset.
        on_demand: Features that are computed for each row or request: functions of arrays, whose arguments are named
            like features, keys, or values that a request (or a column of the labels) brings.
        description: What it is for.
        attached: Texts that other programs want to find with it again, by their names.

    Raises:
        InvalidInputError: If names are unknown or something cannot be used; lists all mistakes.

    Example:
        >>> from cargobike import features
        >>> teams = features.create_group("clubs", key="club_id", online=True)
        >>> _ = teams.insert({"club_id": [1, 2], "income": [10.5, 3.0]})
        >>> view = features.create_view("club_value", features=["income"], label="value")
        >>> view.vector(club_id=2)
        {'income': 3.0}
    """
    check_name("view", name)
    owned = _owned(features, [label] if label else [])
    places = [each.feature for each in owned if each.owner is None]
    if places:
        raise InvalidInputError(
            f"{', '.join(places)} says what a row is about or when, and is no feature; keys are given to look-ups, and "
            "are columns of training rows."
        )
    chosen = [
        FeatureOf(each.owner.name, each.owner.definition.version, each.feature, each.column)
        for each in owned
        if each.owner is not None
    ]
    kinds = {each.column: each.owner.definition.features[each.feature] for each in owned if each.owner is not None}
    for column, function in (on_demand or {}).items():
        parameters_of(function)
        if column in kinds:
            raise InvalidInputError(f"{column!r} is a feature already; call what is computed otherwise.")
        kinds[column] = "double"
    check_transformations(transformations or {}, kinds | ({label: "double"} if label else {}))
    done = {
        column: what if isinstance(what, str) else reference_of(what)
        for column, what in (transformations or {}).items()
    }
    own = {column: what for column, what in (transformations or {}).items() if not isinstance(what, str)}
    record = ViewRecord(
        name=name,
        features=tuple(chosen),
        label=label,
        transformations=done,
        on_demand={column: reference_of(function) for column, function in (on_demand or {}).items()},
        description=description,
        attached=dict(attached or {}),
        at=time.time(),
        user=user_name(),
    )
    storage = storage_of(project.prepare())
    return View(keep_view(storage, record), storage, group, {**own, **(on_demand or {})})


def view(name: str, version: int | None = None, *, functions: Mapping[str, Callable[..., Any]] | None = None) -> View:
    """Return a view of the project, by default its newest version.

    Args:
        name: Its name.
        version: Its version.
        functions: Functions of on-demand features and transformations that cannot be imported, by what they are for.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    storage = storage_of(project.current())
    return View(find_view(storage, name, version), storage, group, functions)


def list_views() -> list[View]:
    """Return the views of the project by name, each in its newest version."""
    storage = storage_of(project.current())
    newest = {record.name: record for record in read_views(storage)}
    return [View(record, storage, group) for record in newest.values()]


def _owned(features: Sequence[str] | Mapping[str, str], taken: Sequence[str]) -> list[Owned]:
    if not isinstance(features, Mapping):
        return find_owners(features, groups_for(features), taken)
    names = list(features.values())
    groups = groups_for(names)
    found = [find_owners([name], groups) for name in names]
    find_owners(names, groups)  # refuses what does not go together
    mistakes = [f"{name!r} stands for several features." for name, some in zip(names, found, strict=True) if some[1:]]
    mistakes += [f"{column!r} is the label too." for column in features if column in taken]
    if mistakes:
        raise InvalidInputError("These features cannot be called so:", mistakes)
    return [some[0]._replace(column=column) for column, some in zip(features, found, strict=True)]
