"""Views in plain data: what commands, pages and the API tell about them, written once."""

from __future__ import annotations

from typing import Any

from cargobike.core.values.times import on_calendar
from cargobike.features.groups.definitions import all_definitions
from cargobike.features.views.fitted import fitted_for
from cargobike.features.views.record import ViewRecord, versions_of
from cargobike.store.files.storage import Storage


def listed(view: ViewRecord) -> dict[str, Any]:
    """Return what a list tells about a view."""
    return {
        "name": view.name,
        "version": view.version,
        "label": view.label,
        "features": [*(each.column for each in view.features), *view.on_demand],
        "groups": list(dict.fromkeys(each.group for each in view.features)),
        "description": view.description,
        "created_at": on_calendar(view.at).isoformat(timespec="milliseconds"),
        "user": view.user,
    }


def described(storage: Storage, view: ViewRecord) -> dict[str, Any]:
    """Return everything about a version of a view."""
    types = {(one.name, one.version): one.features for one in all_definitions(storage)}
    taken = [
        {
            "name": each.column,
            "type": types.get((each.group, each.version), {}).get(each.feature, ""),
            "group": each.group,
            "group_version": each.version,
            "feature": each.feature,
            "computed_by": "",
            "transformation": view.transformations.get(each.column, ""),
        }
        for each in view.features
    ]
    computed = [
        {
            "name": name,
            "type": "",
            "group": "",
            "group_version": 0,
            "feature": "",
            "computed_by": function,
            "transformation": view.transformations.get(name, ""),
        }
        for name, function in view.on_demand.items()
    ]
    return {
        **listed(view),
        "versions": versions_of(storage, view.name),
        "columns": [*taken, *computed],
        "fitted_for": [fitted.dataset for fitted in fitted_for(storage, view)],
    }
