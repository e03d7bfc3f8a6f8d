"""Views and training datasets in the dashboard: pages, and the answers of the API behind them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from cargobike.core.errors import NotFoundError
from cargobike.core.registering.tracing import Thing
from cargobike.features.datasets.describing import described as described_dataset
from cargobike.features.datasets.describing import listed as listed_dataset
from cargobike.features.datasets.record import find_dataset, versions_of_dataset
from cargobike.features.pages.glancing import all_datasets, all_views
from cargobike.features.pages.view_answers import (
    DatasetDetails,
    DatasetLine,
    DatasetPage,
    DatasetPart,
    PinnedCommit,
    ViewColumn,
    ViewDetails,
    ViewLine,
    ViewPage,
)
from cargobike.features.views.describing import described as described_view
from cargobike.features.views.describing import listed as listed_view
from cargobike.features.views.record import NAME, ViewRecord, find_view
from cargobike.store.files.storages import storage_of
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages
from cargobike.ui.web.tracing.lineage import uses_of

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Version = Annotated[int | None, Query(ge=1, le=10**6, description="The version; by default the newest.")]
Words = Annotated[str, Query(max_length=200, description="Only those in whose words this occurs.")]

pages = APIRouter()
api = APIRouter(tags=["features"], responses=REFUSALS)


@api.get("/feature-views")
@sends
def views(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> ViewPage:
    """Return the views of the project by name, each in its newest version."""
    return _views(state, words, offset, limit)


@pages.get("/feature-views")
def views_page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0, limit: Limit = 100) -> Response:
    """Return the page with the list of views."""
    return templates.page("features/views.html", listed=_views(state, words, offset, limit), words=words)


@api.get("/feature-views/{name}")
@sends
def one_view(state: Server, name: str, version: Version = None) -> ViewDetails:
    """Return one view: its features, what is done to them, what was made from it."""
    return _view(state, name, version)


@pages.get("/feature-views/{name}")
def view_page(state: Server, templates: Pages, name: str, version: Version = None) -> Response:
    """Return the page of one view."""
    return templates.page("features/view.html", shown=_view(state, name, version))


@api.get("/training-datasets")
@sends
def datasets(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> DatasetPage:
    """Return the training datasets of the project in all versions, the newest first."""
    return _datasets(state, words, offset, limit)


@pages.get("/training-datasets")
def datasets_page(
    state: Server, templates: Pages, words: Words = "", offset: Offset = 0, limit: Limit = 100
) -> Response:
    """Return the page with the list of training datasets."""
    return templates.page("features/datasets.html", listed=_datasets(state, words, offset, limit), words=words)


@api.get("/training-datasets/{name}")
@sends
def one_dataset(state: Server, name: str, version: Version = None) -> DatasetDetails:
    """Return one training dataset: its parts, what it was made from, what was trained on it."""
    return _dataset(state, name, version)


@pages.get("/training-datasets/{name}")
def dataset_page(state: Server, templates: Pages, name: str, version: Version = None) -> Response:
    """Return the page of one training dataset."""
    return templates.page("features/dataset.html", shown=_dataset(state, name, version))


def _views(state: ServerState, words: str, offset: int, limit: int) -> ViewPage:
    newest = all_views(state)
    if wanted := words.strip().lower():
        newest = [one for one in newest if wanted in _words_of_view(one)]
    lines = [ViewLine(**listed_view(record)) for record in newest[offset : offset + limit]]
    return ViewPage(views=lines, total=len(newest), offset=offset, limit=limit)


def _words_of_view(view: ViewRecord) -> str:
    taken = (text for one in view.features for text in (one.group, one.feature, one.column))
    return " ".join((view.name, view.label, view.description, *taken, *view.on_demand)).lower()


def _view(state: ServerState, name: str, version: int | None) -> ViewDetails:
    storage = storage_of(state.project)
    record = find_view(storage, _checked("view", name), version)
    facts = described_view(storage, record)
    own: dict[str, Any] = {field: facts[field] for field in ViewLine.__struct_fields__}
    return ViewDetails(
        view=ViewLine(**own),
        versions=facts["versions"],
        columns=[ViewColumn(**column) for column in facts["columns"]],
        fitted_for=facts["fitted_for"],
        used_by=uses_of(state, Thing("view", record.name, str(record.version))),
    )


def _datasets(state: ServerState, words: str, offset: int, limit: int) -> DatasetPage:
    records = all_datasets(state)
    if wanted := words.strip().lower():
        records = [one for one in records if wanted in f"{one.name}:{one.version} {one.view} {one.label}".lower()]
    lines = [DatasetLine(**listed_dataset(record)) for record in records[offset : offset + limit]]
    return DatasetPage(datasets=lines, total=len(records), offset=offset, limit=limit)


def _dataset(state: ServerState, name: str, version: int | None) -> DatasetDetails:
    storage = storage_of(state.project)
    record = find_dataset(storage, _checked("training dataset", name), version)
    facts = described_dataset(storage, record)
    own: dict[str, Any] = {field: facts[field] for field in DatasetLine.__struct_fields__}
    same = [find_dataset(storage, record.name, version) for version in versions_of_dataset(storage, record.name)]
    return DatasetDetails(
        dataset=DatasetLine(**own),
        versions=[DatasetLine(**listed_dataset(one)) for one in same],
        split=facts["split"],
        seed=facts["seed"],
        by=facts["by"],
        time=facts["time"],
        known_at=facts["known_at"],
        commits=[PinnedCommit(**commit) for commit in facts["commits"]],
        part_list=[DatasetPart(**part) for part in facts["part_list"]],
        used_by=uses_of(state, Thing("dataset", record.name, str(record.version))),
    )


def _checked(kind: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise NotFoundError(f"There is no {kind} {name!r} in this project.", wanted=name)
    return name
