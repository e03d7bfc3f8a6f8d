"""Features for models: groups that are right in time, joined by name, without a server. The names below are public.

`create_group` defines a group, `group` finds one, and `list_groups` finds all. `get_features` joins features by name;
`create_view` says what a model takes, in training and in look-ups. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.features.changes import changed
    from cargobike.features.datasets.dataset import TrainingDataset
    from cargobike.features.datasets.finding import list_training_datasets, training_dataset
    from cargobike.features.definition import Definition, Expectation
    from cargobike.features.groups.commits import Commit
    from cargobike.features.groups.creating import create_group
    from cargobike.features.groups.finding import group, list_groups, search
    from cargobike.features.groups.forgetting import remove_group
    from cargobike.features.groups.group import Group
    from cargobike.features.groups.rows.expecting import between, fresh, not_null, one_of, unique
    from cargobike.features.online.vectors import Vector, Vectors
    from cargobike.features.queries.front import get_features
    from cargobike.features.queries.query import Query
    from cargobike.features.statistics.report import Statistics
    from cargobike.features.tracing import lineage
    from cargobike.features.views.front import create_view, list_views, view
    from cargobike.features.views.view import View

__all__ = [
    "Commit",
    "Definition",
    "Expectation",
    "Group",
    "Query",
    "Statistics",
    "TrainingDataset",
    "Vector",
    "Vectors",
    "View",
    "between",
    "changed",
    "create_group",
    "create_view",
    "fresh",
    "get_features",
    "group",
    "lineage",
    "list_groups",
    "list_training_datasets",
    "list_views",
    "not_null",
    "one_of",
    "remove_group",
    "search",
    "training_dataset",
    "unique",
    "view",
]

_EXPECTING = "cargobike.features.groups.rows.expecting"
_SOURCES = {
    "Commit": "cargobike.features.groups.commits",
    "Definition": "cargobike.features.definition",
    "Expectation": "cargobike.features.definition",
    "Group": "cargobike.features.groups.group",
    "Query": "cargobike.features.queries.query",
    "Statistics": "cargobike.features.statistics.report",
    "TrainingDataset": "cargobike.features.datasets.dataset",
    "Vector": "cargobike.features.online.vectors",
    "Vectors": "cargobike.features.online.vectors",
    "View": "cargobike.features.views.view",
    "between": _EXPECTING,
    "changed": "cargobike.features.changes",
    "create_group": "cargobike.features.groups.creating",
    "create_view": "cargobike.features.views.front",
    "fresh": _EXPECTING,
    "get_features": "cargobike.features.queries.front",
    "group": "cargobike.features.groups.finding",
    "lineage": "cargobike.features.tracing",
    "list_groups": "cargobike.features.groups.finding",
    "list_training_datasets": "cargobike.features.datasets.finding",
    "list_views": "cargobike.features.views.front",
    "not_null": _EXPECTING,
    "one_of": _EXPECTING,
    "remove_group": "cargobike.features.groups.forgetting",
    "search": "cargobike.features.groups.finding",
    "training_dataset": "cargobike.features.datasets.finding",
    "unique": _EXPECTING,
    "view": "cargobike.features.views.front",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="features")


def __dir__() -> list[str]:
    return __all__
