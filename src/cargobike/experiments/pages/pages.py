"""The pages: the list of experiments, an experiment, a trial, comparisons."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from cargobike.core import settings
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.index import ExperimentSort, resolve
from cargobike.experiments.pages.api.inputs import ExperimentId, Limit, Offset, TrialNumber, Words
from cargobike.experiments.pages.describing import experiment_summary, row_summary, trial_detail
from cargobike.experiments.pages.drawing import sparkline
from cargobike.experiments.pages.finding import trial_in
from cargobike.experiments.pages.heads import head_of
from cargobike.experiments.pages.state import State
from cargobike.store.files.project import DEFAULT
from cargobike.store.history.annotations import read_annotations
from cargobike.ui.web.templates import Pages

PAGE_LENGTH: Final = 50
_PAGE_PATIENCE_S: Final = 0.5

FIRST_PROGRAM: Final = """\
from cargobike import Searchspace, experiment


def train(lr, layers):
    return 1 - (lr - 0.01) ** 2 - 0.1 * abs(layers - 3)  # your training run, returning its score


if __name__ == "__main__":
    space = Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"), layers=("INTEGER", [1, 5]))
    result = experiment.launch(train, space, num_trials=30, direction="max")
    print(result.best.params, result.best.value)
"""
"""What a page without experiments shows: how to make one."""

routes = APIRouter()


@routes.get("/experiments")
def experiments(
    state: State,
    templates: Pages,
    *,
    states: Annotated[list[ExperimentState], Query(alias="state", max_length=5)] = [],  # noqa: B006
    q: Words = "",
    sort: ExperimentSort = "started",
    descending: bool = True,
    offset: Offset = 0,
    limit: Limit = PAGE_LENGTH,
    fragment: bool = False,
) -> Response:
    """Return the list of experiments, or with `fragment` its rows."""
    rows = state.listing.experiments(
        states=states, sort=sort, descending=descending, words=q, patience_s=_PAGE_PATIENCE_S
    )
    return templates.page(
        "experiments/rows.html" if fragment else "experiments/experiments.html",
        experiments=[row_summary(row, state.listing.progress(row)) for row in rows[offset:][:limit]],
        total=len(rows),
        states=[each.value for each in ExperimentState],
        asked={"states": [each.value for each in states], "q": q, "sort": sort, "descending": descending},
        offset=offset,
        limit=limit,
        sparkline=sparkline,
        first=_first_steps(state.server.project),
    )


def _first_steps(project: ProjectFolder) -> dict[str, str]:
    """Return what a page without experiments shows: how to make one that lands in this project."""
    program, demo = "python first.py", "cargobike demo"
    if project.root.name == DEFAULT:
        folder = str(project.root.parent)
        return {"program": FIRST_PROGRAM, "folder": folder, "command": program, "demo": f"cd {folder} && {demo}"}
    url = project.remote_url.read_text("utf-8").strip() if project.remote_url.exists() else str(project.root)
    choice = f"{settings.PROJECT}={url}"
    return {
        "program": FIRST_PROGRAM,
        "folder": "any folder",
        "command": f"{choice} {program}",
        "demo": f"{choice} {demo}",
    }


@routes.get("/experiments/{experiment_id}")
def experiment(state: State, templates: Pages, experiment_id: ExperimentId, fragment: bool = False) -> Response:
    """Return the page of an experiment, or with `fragment` its head."""
    if experiment_id == "last":
        names = [(row.id, row.name) for row in state.listing.experiments()]
        return RedirectResponse(f"/experiments/{resolve('last', names)}", 303)
    head = head_of(state, state.live.get(experiment_id), may_wait=fragment)
    return templates.page(
        "experiments/head.html" if fragment else "experiments/experiment.html",
        experiment=head.experiment,
        head=head,
        states=[each.value for each in TrialState],
        sparkline=sparkline,
    )


@routes.get("/experiments/{experiment_id}/trials/{number}")
def trial(
    state: State, templates: Pages, experiment_id: ExperimentId, number: TrialNumber, fragment: bool = False
) -> Response:
    """Return the page of a trial, or with `fragment` its head."""
    live = state.live.get(experiment_id)
    with live.reading() as record:
        detail = trial_detail(live, record, trial_in(record, number))
        summary = experiment_summary(live, record)
        last = max(record.runs)
    name = "experiments/trial_head.html" if fragment else "experiments/trial.html"
    mark = read_annotations(live.folder).marks.get(number, "")
    return templates.page(name, trial=detail, experiment=summary, last=last, mark=mark)


@routes.get("/compare")
def compare(templates: Pages) -> Response:
    """Return the page on which trials and experiments are compared."""
    return templates.page("experiments/compare.html")
