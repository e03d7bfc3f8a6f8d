"""Groups, views and training datasets on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.values.times import on_calendar
from cargobike.features.datasets.record import DatasetRecord, read_datasets
from cargobike.features.definition import Definition
from cargobike.features.groups.definitions import all_definitions
from cargobike.features.views.record import ViewRecord, read_views
from cargobike.store.files.storages import storage_of
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document
from cargobike.ui.web.state import ServerState


def all_versions(state: ServerState) -> dict[str, list[Definition]]:
    """Return all versions of each group, by name, the oldest first; not to be changed."""

    def read() -> dict[str, list[Definition]]:
        groups: dict[str, list[Definition]] = {}
        for one in all_definitions(storage_of(state.project)):
            groups.setdefault(one.name, []).append(one)
        return groups

    return state.lately("features.groups", read)


def all_groups(state: ServerState) -> list[Definition]:
    """Return the newest version of each group, by name."""
    return [versions[-1] for versions in all_versions(state).values()]


def all_views(state: ServerState) -> list[ViewRecord]:
    """Return the newest version of each view, by name; not to be changed."""
    return state.lately(
        "features.views", lambda: list({one.name: one for one in read_views(storage_of(state.project))}.values())
    )


def all_datasets(state: ServerState) -> list[DatasetRecord]:
    """Return all versions of all training datasets, the newest first; not to be changed."""
    return state.lately(
        "features.datasets",
        lambda: sorted(read_datasets(storage_of(state.project)), key=lambda one: (-one.at, one.name, -one.version)),
    )


def features_card(state: ServerState) -> Card:
    """Make the card of features: the newest training datasets, and how many groups there are."""
    return Card(
        name="features",
        title="Features and training data",
        address="/features",
        place=65,
        look=lambda: _look(state),
        empty="No feature groups yet. From Python:",
        command='features.create_group("teams", key="team_id", event_time="at")',
    )


def documents(state: ServerState) -> Iterator[Document]:
    """List groups, views and training datasets for search, each in its newest version."""
    for definition in all_groups(state):
        yield Document(
            kind="group",
            name=definition.name,
            address=f"/features/{definition.name}",
            text=definition.description,
            tags=definition.tags,
            columns=(*definition.key, *definition.features),
            words=definition.owner,
        )
    for view in all_views(state):
        yield Document(
            kind="view",
            name=view.name,
            address=f"/feature-views/{view.name}",
            text=view.description,
            columns=[*(feature.column for feature in view.features), view.label],
            words=view.user,
            at=view.at,
        )
    newest: dict[str, DatasetRecord] = {}
    for dataset in all_datasets(state):
        newest.setdefault(dataset.name, dataset)
    for dataset in newest.values():
        yield Document(
            kind="dataset",
            name=dataset.name,
            address=f"/training-datasets/{dataset.name}",
            text=f"of the view {dataset.view}",
            columns=[dataset.label] if dataset.label else [],
            at=dataset.at,
        )


def _look(state: ServerState) -> Glance:
    groups = all_groups(state)
    entries = [_entry(dataset) for dataset in all_datasets(state)[:MOST_ENTRIES]]
    for group in groups[: max(0, MOST_ENTRIES - len(entries))]:
        count = len(group.features)
        words = f"group, {count} {'feature' if count == 1 else 'features'}{', online' if group.online else ''}"
        entries.append(Entry(title=group.name, address=f"/features/{group.name}", text=words))
    return Glance(entries=entries, total=len(groups))


def _entry(dataset: DatasetRecord) -> Entry:
    rows = sum(part.rows for part in dataset.parts)
    return Entry(
        title=f"{dataset.name}:{dataset.version}",
        address=f"/training-datasets/{dataset.name}?version={dataset.version}",
        text=f"{rows:,} rows of the view {dataset.view}",
        at=on_calendar(dataset.at).isoformat(timespec="seconds"),
    )
