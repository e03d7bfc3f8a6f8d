"""What was made from what: groups, views, training datasets."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Lineage, Thing, lineage_of
from cargobike.features.datasets.record import DatasetRecord, read_datasets
from cargobike.features.groups.origins import group_origins
from cargobike.features.views.record import ViewRecord, read_views
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


def edges(folder: ProjectFolder) -> Iterator[Edge]:
    """Yield what the groups, views and training datasets of a project were made from, in this order."""
    storage = storage_of(folder)
    for group, origin in group_origins(storage):
        yield Edge(group, origin.thing, detail=f"commit {origin.commit}", at=origin.at, goes_on=True)
    for view in read_views(storage):
        yield from _of_view(view)
    for dataset in read_datasets(storage):
        yield from _of_dataset(dataset)


def lineage(name: str, kind: str = "") -> Lineage:
    """Return what something in the project came from, and what came from it: from groups to models, both ways.

    Args:
        name: Its name, for all things of that name, or name and version: `team_value:2`.
        kind: What it is, such as `view`, if several kinds of things have the name.

    Raises:
        NotFoundError: If nothing with that name came from anything, or is used by anything.
    """
    return lineage_of(project.current(), name, kind)


def _of_view(view: ViewRecord) -> Iterator[Edge]:
    made = Thing("view", view.name, str(view.version))
    for group, version in dict.fromkeys((each.group, each.version) for each in view.features):
        names = [each.feature for each in view.features if each.group == group]
        yield Edge(made, Thing("group", group, str(version)), detail=", ".join(names), at=view.at, goes_on=True)


def _of_dataset(dataset: DatasetRecord) -> Iterator[Edge]:
    made = Thing("dataset", dataset.name, str(dataset.version))
    yield Edge(made, Thing("view", dataset.view, str(dataset.view_version)), at=dataset.at)
    for group, version in dataset.group_versions.items():
        yield Edge(
            made, Thing("group", group, str(version)), detail=f"commit {dataset.commits.get(group)}", at=dataset.at
        )
    for source in dataset.made_from:
        yield Edge(made, Thing(*source), detail="labels", at=dataset.at)
