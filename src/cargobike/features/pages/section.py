"""The part of the dashboard that features provides: groups, as pages and as answers of the API."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pyarrow import ArrowException
from starlette.responses import Response

from cargobike.core.errors import CargobikeError, NotFoundError
from cargobike.core.registering.tracing import Edge, Thing, page_of
from cargobike.features.groups.definitions import newest_revision
from cargobike.features.groups.describing import described, listed
from cargobike.features.groups.finding import group, make_group, words_of
from cargobike.features.groups.group import Group
from cargobike.features.groups.naming import NAME
from cargobike.features.pages import views
from cargobike.features.pages.answers import (
    ColumnFigures,
    GroupColumn,
    GroupCommit,
    GroupDetails,
    GroupLine,
    GroupPage,
    GroupStatistics,
    GroupUse,
    Histogram,
)
from cargobike.features.pages.glancing import (
    all_datasets,
    all_groups,
    all_versions,
    all_views,
    documents,
    features_card,
)
from cargobike.store.files.storages import storage_of
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only groups in whose words this occurs.")]
Version = Annotated[int | None, Query(ge=1, le=10**6, description="The version; by default the newest.")]
AsOf = Annotated[str | None, Query(max_length=40, description="As it was after a commit, or at a time.")]

_COMMITS_SHOWN = 100

pages = APIRouter()
api = APIRouter(tags=["features"], responses=REFUSALS)
pages.include_router(views.pages)
api.include_router(views.api)


@api.get("/features")
@sends
def groups(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> GroupPage:
    """Return the feature groups of the project by name, each in its newest version."""
    return _listed(state, words, offset, limit)


@pages.get("/features")
def groups_page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0, limit: Limit = 100) -> Response:
    """Return the page with the list of feature groups."""
    return templates.page("features/groups.html", listed=_listed(state, words, offset, limit), words=words)


@api.get("/features/{name}")
@sends
def one_group(state: Server, name: str, version: Version = None) -> GroupDetails:
    """Return one feature group: what it is, its columns, its commits, what was made from it."""
    return _details(state, _found(state, name, version))


@api.get("/features/{name}/statistics")
@sends
def statistics(state: Server, name: str, version: Version = None, as_of: AsOf = None) -> GroupStatistics:
    """Return statistics of the rows of a group: counts, extremes, means, quantiles, histograms, correlations."""
    figures = _found(state, name, version).statistics(as_of).as_json()
    columns = {
        column: ColumnFigures(**{**values, "histogram": Histogram(**values["histogram"])})
        for column, values in figures.pop("columns").items()
    }
    return GroupStatistics(columns=columns, **figures)


@pages.get("/features/{name}")
def group_page(state: Server, templates: Pages, name: str, version: Version = None) -> Response:
    """Return the page of one feature group."""
    found = _found(state, name, version)
    rows: list[tuple[str, ...]] = []
    correlations: dict[str, dict[str, float | None]] = {}
    problem = ""
    try:
        figures = found.statistics()
        rows, correlations = figures.table(), figures.correlations
    except (CargobikeError, OSError, ArrowException) as error:
        problem = str(error)
    shown = _details(state, found)
    return templates.page("features/group.html", shown=shown, figures=rows, correlations=correlations, problem=problem)


def features_section(server: ServerState) -> Section:
    """Make the section of features of one server."""
    return Section(
        name="features",
        holds="feature groups, views and training datasets",
        links=(Link("Features", "/features", "features"),),
        pages=pages,
        api=api,
        package="cargobike.features.pages",
        cards=(features_card(server),),
        documents=lambda: documents(server),
        prepare=lambda: _prepare(server),
        filters={"share": lambda value: "–" if value is None else f"{value:.2f}"},
    )


def _prepare(server: ServerState) -> None:
    for read in (all_groups, all_views, all_datasets):
        read(server)


def _use(edge: Edge) -> GroupUse:
    made = edge.made
    return GroupUse(made.kind, made.name, int(made.version), edge.detail, page_of(made))


def _found(state: ServerState, name: str, version: int | None) -> Group:
    if not NAME.fullmatch(name):
        raise NotFoundError(f"There is no feature group {name!r} in this project.", wanted=name)
    for one in reversed(all_versions(state).get(name, ())):
        if version in (None, one.version):
            return make_group(newest_revision(storage_of(state.project), one), state.project)
    return group(name, version, folder=state.project)  # made a moment ago; else says which names are near


def _listed(state: ServerState, words: str, offset: int, limit: int) -> GroupPage:
    found = all_groups(state)
    if wanted := words.strip().lower():
        found = [one for one in found if any(wanted in said.lower() for _, said in words_of(one))]
    shown = [make_group(one, state.project) for one in found[offset : offset + limit]]
    lines = [GroupLine(**listed(one)) for one in shown]
    return GroupPage(groups=lines, total=len(found), offset=offset, limit=limit)


def _details(state: ServerState, found: Group) -> GroupDetails:
    facts = described(found)
    versions = [one.version for one in all_versions(state).get(found.name, ())] or [found.version]
    uses = state.edges.uses_of(Thing("group", found.name, str(found.version)))
    own: dict[str, Any] = {name: facts[name] for name in GroupLine.__struct_fields__}
    return GroupDetails(
        group=GroupLine(**own),
        url=facts["url"],
        versions=versions,
        ttl_s=facts["ttl_s"],
        allow_future=facts["allow_future"],
        expectations=facts["expectations"],
        columns=[GroupColumn(**column) for column in facts["columns"]],
        files=facts["files"],
        size_bytes=facts["size_bytes"],
        commits=[GroupCommit(**commit) for commit in facts["commits"][:_COMMITS_SHOWN]],
        used_by=[_use(edge) for edge in uses],
    )
