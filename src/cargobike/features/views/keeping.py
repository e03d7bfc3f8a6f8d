"""Views as other products use them: features of requests, found by what `core/registering/looking_up.py` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.features.groups.finding import group
from cargobike.features.groups.group import Group
from cargobike.features.views.record import ViewRecord, find_view
from cargobike.features.views.view import View
from cargobike.store.files.storages import storage_of

_THIS_HOST: Final = ("localhost", "127.0.0.1", "::1")


class ViewLookup:
    """The look-ups of a view for rows of requests, prepared once.

    Args:
        view: The view.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        serving = view.serving()
        self.keys: tuple[str, ...] = tuple(serving.keys)
        self.request_fields: tuple[str, ...] = tuple(serving.requested)
        self.columns: tuple[str, ...] = tuple(serving.columns)
        self._wanted = (*self.keys, *self.request_fields)

    def rows(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the features for each request, in their order; fields that no feature needs are left aside.

        Raises:
            InvalidInputError: If requests lack fields, or have keys of the wrong type; says which.
            StoreError: If what is looked up cannot be reached.
        """
        wanted = self._wanted
        try:
            given = [{name: request[name] for name in wanted} for request in requests]
        except KeyError:
            raise InvalidInputError("The features of these rows cannot be found:", self._lacking(requests)) from None
        return [dict(vector) for vector in self._view.vectors(given)]

    def close(self) -> None:
        """Close what is open in this thread."""
        self._view.close()

    def _lacking(self, requests: Sequence[Mapping[str, Any]]) -> list[str]:
        mistakes = []
        for number, request in enumerate(requests):
            names = [name for name in self._wanted if name not in request]
            if names:
                mistakes.append(f"row {number} has no {', '.join(names)}")
        return mistakes


def bound_to_host(view: str, project: ProjectFolder) -> dict[str, str]:
    """Return the groups of a view that other hosts cannot look up: see `ViewKeeper`."""
    record = _record(view, project)
    places = {}
    for name, version in dict.fromkeys((each.group, each.version) for each in record.features):
        definition = group(name, version, folder=project).definition
        if not definition.online:
            places[name] = "not kept for look-ups"
        elif "://" not in definition.online_store:
            places[name] = "in files of each host"
        elif definition.online_store.startswith("unix:"):
            places[name] = f"behind a socket of this host, {definition.online_store}"
        elif urlsplit(definition.online_store).hostname in _THIS_HOST:
            places[name] = f"on this host, {definition.online_store}"
    return places


def open_lookup(view: str, project: ProjectFolder, *, dataset: str = "") -> ViewLookup:
    """Return the look-up of a view: see `ViewKeeper` in `core/registering/looking_up.py`."""
    storage = storage_of(project)

    def find_group(group_name: str, version: int) -> Group:
        return group(group_name, version, folder=project)

    found = View(_record(view, project), storage, find_group)
    return ViewLookup(found.fitted_on(dataset) if dataset else found)


def _record(view: str, project: ProjectFolder) -> ViewRecord:
    name, _, number = view.partition(":")
    if number and not number.isdecimal():
        raise InvalidInputError(f"{view!r} was given; a view is called like 'team_value', or 'team_value:2'.")
    return find_view(storage_of(project), name, int(number) if number else None)
