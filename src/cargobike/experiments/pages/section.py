"""The part of the dashboard that experiments provide."""

from __future__ import annotations

from fastapi import APIRouter

from cargobike.analysis.axes import text_of
from cargobike.core.values.words import duration
from cargobike.experiments.pages import pages
from cargobike.experiments.pages.api import comparing, events, experiments, figures, files, trials, usage
from cargobike.experiments.pages.glancing import documents, experiment_card
from cargobike.experiments.pages.state import NAME, ExperimentPages
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.state import ServerState


def experiment_section(server: ServerState) -> Section:
    """Make the section of experiments of one server."""
    state = ExperimentPages.of(server)
    api = APIRouter()
    for module in (experiments, trials, usage, figures, files, comparing, events):
        api.include_router(module.routes)
    return Section(
        name=NAME,
        holds="experiments, trials, metrics, logs, files and figures",
        links=(Link("Experiments", "/experiments", "experiments"), Link("Compare", "/compare", "compare")),
        pages=pages.routes,
        api=api,
        package="cargobike.experiments.pages",
        state=state,
        filters={"number": _number, "shown": text_of, "duration": duration},
        cards=(experiment_card(state.listing),),
        documents=lambda: documents(state.listing),
        prepare=state.listing.prepare,
        close=state.listing.close,
    )


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
