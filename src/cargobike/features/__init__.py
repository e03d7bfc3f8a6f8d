"""Features for models: groups that are right in time, joined by name, without a server. The names below are public.

`create_group` defines a group, `group` finds one, and `list_groups` finds all. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.features.definition import Definition, Expectation
    from cargobike.features.groups.commits import Commit
    from cargobike.features.groups.creating import create_group
    from cargobike.features.groups.finding import group, list_groups, search
    from cargobike.features.groups.group import Group
    from cargobike.features.groups.rows.expecting import between, fresh, not_null, one_of, unique
    from cargobike.features.statistics.report import Statistics

__all__ = [
    "Commit",
    "Definition",
    "Expectation",
    "Group",
    "Statistics",
    "between",
    "create_group",
    "fresh",
    "group",
    "list_groups",
    "not_null",
    "one_of",
    "search",
    "unique",
]

_EXPECTING = "cargobike.features.groups.rows.expecting"
_SOURCES = {
    "Commit": "cargobike.features.groups.commits",
    "Definition": "cargobike.features.definition",
    "Expectation": "cargobike.features.definition",
    "Group": "cargobike.features.groups.group",
    "Statistics": "cargobike.features.statistics.report",
    "between": _EXPECTING,
    "create_group": "cargobike.features.groups.creating",
    "fresh": _EXPECTING,
    "group": "cargobike.features.groups.finding",
    "list_groups": "cargobike.features.groups.finding",
    "not_null": _EXPECTING,
    "one_of": _EXPECTING,
    "search": "cargobike.features.groups.finding",
    "unique": _EXPECTING,
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
