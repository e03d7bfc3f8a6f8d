"""Figures, drawn by the server as data that Plotly shows."""

from __future__ import annotations

import zlib
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from cargobike.analysis.catalogue import Options, figure_of, worth_showing
from cargobike.analysis.figures.source import FigureSource
from cargobike.analysis.figures.trial import draw_trial_curves
from cargobike.analysis.progress import Order
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.pages.answers import Figure, FigureInfo, FigureList
from cargobike.experiments.pages.api.inputs import ExperimentId, Name, TrialNumber
from cargobike.experiments.pages.finding import trial_in
from cargobike.experiments.pages.live import LiveExperiment
from cargobike.experiments.pages.state import State
from cargobike.store.history.annotations import read_annotations
from cargobike.ui.web.answering import REFUSALS, encoded, sends

FigureName = Annotated[str, Path(pattern=r"^[a-z][a-z-]{0,39}$", description="A name from the list of figures.")]
KnownVersion = Annotated[str | None, Header(alias="if-none-match", max_length=200)]
_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "Unchanged since the version that you have."}}

routes = APIRouter(prefix="/experiments/{experiment_id}", tags=["figures"], responses=REFUSALS)


@routes.get("/figures")
@sends
def figures(state: State, experiment_id: ExperimentId) -> FigureList:
    """Return the figures that make sense for an experiment."""
    live = state.live.get(experiment_id)
    with live.reading():
        figures = worth_showing(_source(live))
        listed = [
            FigureInfo(name=each.name, title=each.title, section=each.section, options=list(each.choices))
            for each in figures
        ]
        return FigureList(version=live.version, figures=listed)


@routes.get("/figures/{name}", response_model=Figure, responses=_UNCHANGED)
def figure(
    state: State,
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
    """Return a figure; its `ETag` changes when the experiment does, or what is hidden of it."""
    live = state.live.get(experiment_id)
    options = Options(by, metric, step, x, y, most)
    chosen = figure_of(name)
    with live.reading():
        source = _source(live)
        key = name, options, source.hidden_trials
        try:
            version, drawn = live.made(key, lambda _: encoded(Figure(**chosen.draw(source, options))))
        except InvalidInputError as error:  # a metric or a parameter that this experiment does not have
            raise NotFoundError(str(error)) from error
    without = "".join(f"-{number}" for number in source.hidden_trials)
    return _tagged(drawn, f'"{experiment_id}-{version}{_short(without)}"', known)


@routes.get("/trials/{number}/figures/curves", response_model=Figure, responses=_UNCHANGED)
def trial_curves(
    state: State, experiment_id: ExperimentId, number: TrialNumber, known: KnownVersion = None
) -> Response:
    """Return every metric that a trial reported against its steps, one panel each."""
    live = state.live.get(experiment_id)

    def draw(record: ExperimentRecord) -> bytes:
        return encoded(Figure(**draw_trial_curves(record, trial_in(record, number), live.metrics(number))))

    version, drawn = live.made(("trial", number), draw)
    return _tagged(drawn, f'"{experiment_id}-{number}-{version}"', known)


def _source(live: LiveExperiment) -> FigureSource:
    """Return what all figures of this version are drawn from; only inside `live.reading()`."""
    hidden = read_annotations(live.folder).hidden
    key = FigureSource, tuple(sorted(hidden))
    source: FigureSource = live.made(key, lambda record: FigureSource(record, hidden))[1]
    return source


def _short(numbers: str) -> str:
    """Return something as short as a tag should be that differs if the numbers do."""
    return f"-{zlib.crc32(numbers.encode()):08x}" if numbers else ""


def _tagged(body: bytes, tag: str, known: str | None) -> Response:
    headers = {"etag": tag, "cache-control": "no-cache"}
    if known is not None and tag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
