"""The pages: HTML made from templates in which every text stays text, whatever it holds."""

from __future__ import annotations

from typing import Annotated, Any

import jinja2
from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cargobike.analysis.axes import text_of
from cargobike.core.errors import NotFoundError
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.records import ExperimentState, TrialState
from cargobike.core.version import __version__
from cargobike.experiments.index.index import ExperimentRow, ExperimentSort, resolve
from cargobike.experiments.pages.api.inputs import ExperimentId, Limit, Offset, TrialNumber, Words
from cargobike.experiments.pages.api.trials import trial_in
from cargobike.experiments.pages.describing import experiment_summary, row_of, trial_detail, utc
from cargobike.experiments.pages.drawing import crates, sparkline
from cargobike.experiments.pages.state import ServerState
from cargobike.experiments.results.report_parts import duration_text
from cargobike.store.history.annotations import read_annotations
from cargobike.store.journal.journal import read_header

PAGE_LENGTH = 50
_MOST_NOTES = 5
_PAGE_PATIENCE_S = 0.5


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("cargobike.ui", "pages/templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(number=_number, shown=text_of, duration=duration_text)
_templates.globals.update(sparkline=sparkline, crates=crates, version=__version__)


def page_routes(state: ServerState) -> APIRouter:
    """Make the routes of pages."""
    routes = APIRouter()
    common = {"project": _project_name(state)}

    @routes.get("/")
    def experiments(
        *,
        wanted: Annotated[list[ExperimentState], Query(alias="state", max_length=5)] = [],  # noqa: B006
        q: Words = "",
        sort: ExperimentSort = "started",
        descending: bool = True,
        offset: Offset = 0,
        limit: Limit = PAGE_LENGTH,
        fragment: bool = False,
    ) -> Response:
        rows = state.listing.experiments(
            states=wanted, sort=sort, descending=descending, words=q, patience_s=_PAGE_PATIENCE_S
        )
        shown = [{**experiment_summary(row), "progress": state.listing.progress(row)} for row in rows[offset:][:limit]]
        return _page(
            "rows.html" if fragment else "experiments.html",
            **common,
            experiments=shown,
            total=len(rows),
            states=[each.value for each in ExperimentState],
            asked={"states": [each.value for each in wanted], "q": q, "sort": sort, "descending": descending},
            offset=offset,
            limit=limit,
        )

    @routes.get("/experiments/{experiment_id}")
    def experiment(experiment_id: ExperimentId, fragment: bool = False) -> Response:
        if experiment_id == "last":
            return RedirectResponse(f"/experiments/{resolve('last', _names(state))}", 303)
        live = state.live.get(experiment_id)
        row = None
        if fragment:
            with live.reading() as record:
                row = row_of(record)
                strip = crates(record)
            return _page("head.html", **common, **_head(state, row), strip=strip)
        row = state.listing.known(experiment_id) or _unread(state, experiment_id)
        return _page("experiment.html", **common, **_head(state, row), strip=None)

    @routes.get("/experiments/{experiment_id}/trials/{number}")
    def trial(experiment_id: ExperimentId, number: TrialNumber, fragment: bool = False) -> Response:
        live = state.live.get(experiment_id)
        with live.reading() as record:
            found = trial_in(record, number)
            told = trial_detail(live, record, found)
            experiment = experiment_summary(row_of(record))
            last = max(record.trials)
        return _page(
            "trial_head.html" if fragment else "trial.html", **common, trial=told, experiment=experiment, last=last
        )

    @routes.get("/compare")
    def compare() -> Response:
        return _page("compare.html", **common)

    return routes


def login_page() -> Response:
    """Return the page on which the token is shown."""
    return _page("login.html", project="")


def error_page(status: int, why: str) -> Response:
    """Return a page that says what went wrong."""
    return HTMLResponse(_render("error.html", {"project": "", "status": status, "why": why}), status)


def _page(name: str, **context: Any) -> Response:
    return HTMLResponse(_render(name, context))


def _render(name: str, context: dict[str, Any]) -> str:
    return _templates.get_template(name).render(context).encode("utf-8", "replace").decode("utf-8")


def _head(state: ServerState, row: ExperimentRow) -> dict[str, Any]:
    said = read_annotations(state.project.experiment(row.id))
    told = {**experiment_summary(row), "tags": said.tags}
    header = row.header
    facts = {
        "function": header.function,
        "optimizer": header.optimizer,
        "objectives": ", ".join(f"{name} ({way})" for name, way in header.objectives.items()),
        "limits": ", ".join(header.constraints),
        "workers": str(header.workers),
        "engine": header.engine,
        "seed": str(header.seed),
        "by": " on ".join(word for word in (header.user, header.host) if word),
    }
    return {
        "experiment": {**told, "progress": state.listing.progress(row)},
        "notes": [{"at": utc(note.at), "by": note.by, "text": note.text} for note in said.notes[-_MOST_NOTES:]],
        "facts": {name: value for name, value in facts.items() if value},
        "states": [each.value for each in TrialState],
        "may_stop": state.access.may_stop and row.state is ExperimentState.RUNNING,
    }


def _unread(state: ServerState, experiment_id: str) -> ExperimentRow:
    """Return what the first line of a journal says: a page can be shown before the rest has been read."""
    header = read_header(state.project.experiment(experiment_id).journal, EXPERIMENT_FACTS)
    if header is None:
        raise NotFoundError(f"Experiment {experiment_id!r} has not begun yet.")
    return ExperimentRow(id=experiment_id, header=header, state=ExperimentState.RUNNING, started_at=header.at)


def _names(state: ServerState) -> list[tuple[str, str]]:
    return [(row.id, row.name) for row in state.listing.experiments()]


def _project_name(state: ServerState) -> str:
    """Return what people call the project: its address on shared storage, or the folder that it lies in."""
    project = state.project
    if project.remote_url.exists():
        return project.remote_url.read_text("utf-8").strip()
    return (project.root.parent if project.root.name == ".cargobike" else project.root).name or str(project.root)
