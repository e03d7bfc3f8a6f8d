"""Figures, drawn by the server as data that Plotly shows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from cargobike.analysis.catalogue import Options, figure_of, worth_showing
from cargobike.analysis.figures.source import FigureSource
from cargobike.analysis.figures.trial import draw_trial_curves
from cargobike.analysis.progress import Order
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.api.inputs import REFUSALS, ExperimentId, Name, TrialNumber
from cargobike.experiments.pages.api.trials import trial_in
from cargobike.experiments.pages.describing import answer, encoded
from cargobike.experiments.pages.state import ServerState

FigureName = Annotated[str, Path(pattern=r"^[a-z][a-z-]{0,39}$", description="A name from the list of figures.")]
KnownVersion = Annotated[str | None, Header(alias="if-none-match", max_length=200)]


def figure_routes(state: ServerState) -> APIRouter:
    """Make the routes of figures."""
    routes = APIRouter(prefix="/experiments/{experiment_id}", tags=["figures"], responses=REFUSALS)

    @routes.get("/figures", response_model=answers.FigureList)
    def figures(experiment_id: ExperimentId) -> Response:
        """Return the figures that make sense for an experiment."""
        live = state.live.get(experiment_id)
        with live.reading():
            version, source = live.made(FigureSource, FigureSource)
            listed = [
                {"name": each.name, "title": each.title, "section": each.section, "options": list(each.choices)}
                for each in worth_showing(source)
            ]
        return answer({"version": version, "figures": listed})

    @routes.get(
        "/figures/{name}", response_model=answers.Figure, responses={304: {"description": "The same as you have."}}
    )
    def figure(
        experiment_id: ExperimentId,
        name: FigureName,
        *,
        by: Order = "trial",
        metric: Name = None,
        step: Annotated[int | None, Query(ge=-(2**53), le=2**53)] = None,
        x: Name = None,
        y: Name = None,
        most: Annotated[int, Query(ge=1, le=1000, description="How many curves at most.")] = 200,
        known: KnownVersion = None,
    ) -> Response:
        """Return a figure; its `ETag` changes when the experiment does."""
        live = state.live.get(experiment_id)
        options = Options(by, metric, step, x, y, most)
        entry = figure_of(name)
        with live.reading():
            source: FigureSource = live.made(FigureSource, FigureSource)[1]
            try:
                version, drawn = live.made((name, options), lambda _: encoded(entry.draw(source, options)))
            except InvalidInputError as error:  # a metric or a parameter that this experiment does not have
                raise NotFoundError(str(error)) from error
        return _tagged(drawn, f'"{experiment_id}-{version}"', known)

    @routes.get(
        "/trials/{number}/figures/curves",
        response_model=answers.Figure,
        responses={304: {"description": "The same as you have."}},
    )
    def trial_curves(experiment_id: ExperimentId, number: TrialNumber, known: KnownVersion = None) -> Response:
        """Return every metric that a trial reported against its steps, one panel each."""
        live = state.live.get(experiment_id)

        def make(record: ExperimentRecord) -> bytes:
            return encoded(draw_trial_curves(record, trial_in(record, number), live.metrics(number)))

        version, drawn = live.made(("trial", number), make)
        return _tagged(drawn, f'"{experiment_id}-{number}-{version}"', known)

    return routes


def _tagged(body: bytes, tag: str, known: str | None) -> Response:
    headers = {"etag": tag, "cache-control": "no-cache"}
    if known is not None and tag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
