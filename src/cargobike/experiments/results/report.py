"""The report: one page with everything about an experiment, in one file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from cargobike.analysis.figures.comparison import draw_ablation, draw_importance, draw_pareto
from cargobike.analysis.figures.contour import draw_contour
from cargobike.analysis.figures.look import Spec
from cargobike.analysis.figures.parameters import draw_parallel_coordinates, slice_panels
from cargobike.analysis.figures.progress import draw_best_so_far, draw_learning_curves
from cargobike.analysis.figures.workers import draw_timeline
from cargobike.analysis.importance import importance_of
from cargobike.analysis.model import FEWEST_TRIALS, Model, fit
from cargobike.analysis.scores import common_step, scored
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.results.report_parts import failures, head, overview, table_of
from cargobike.ui.markup import as_json, text
from cargobike.ui.paper import Figures, lay_out, write_page

_MOST_PAIRS = 3
_ENOUGH = 0.3
"""With fewer completed trials than this share, parameters are compared by an earlier step that most trials reached."""
_TABLE = """
<section id="trials"><h2>Trials</h2>
<div class="tools"><input id="search" type="search" placeholder="Search, e.g. act=relu" aria-label="Search trials">
<select id="state" aria-label="State"><option value="">all states</option>{options}</select>
<span id="count" class="label"></span></div>
<div class="scroll"><table id="table"><thead><tr></tr></thead><tbody></tbody></table></div>
<button id="more" class="more" hidden>Show more</button>
<noscript><p class="hint">Table and figures need JavaScript; it stands in this file, nothing is loaded.</p></noscript>
</section>
"""


def write_report(
    record: ExperimentRecord,
    folder: ExperimentFolder,
    path: str | os.PathLike[str],
    *,
    pareto: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write an experiment's report and return where it lies.

    Args:
        record: The experiment.
        folder: Its folder, for the last lines that failed trials printed.
        path: Where to write; folders that are missing are made, a file that is there is replaced.
        pareto: Pairs of metrics to draw against each other.

    Raises:
        MissingLibraryError: If Plotly is not installed.
    """
    return write_page(report_page(record, folder, pareto=pareto), path)


def report_page(record: ExperimentRecord, folder: ExperimentFolder, *, pareto: Sequence[tuple[str, str]] = ()) -> str:
    """Return an experiment's report as HTML."""
    figures = Figures()
    pairs = [*combinations(record.goals.objectives, 2)][:_MOST_PAIRS] + list(pareto)
    seen = seen_by(record)
    sections = [overview(record), *_sections(seen, figures, [draw_pareto(record, *pair) for pair in pairs])]
    states = dict.fromkeys(trial.state.value for trial in record.trials.values())
    sections.append(_TABLE.format(options="".join(f'<option value="{state}">{state}</option>' for state in states)))
    links = [*figures.links, ("trials", "Trials")]
    if told := failures(record, folder):
        sections.append(told)
        links.append(("failures", "Failures"))
    return lay_out(
        title=f"{record.header.name or record.id} · report",
        head=head(record),
        sections=sections,
        figures=figures,
        links=links,
        footer=f"Experiment {text(record.id)}, written by Cargobike {text(record.header.cargobike)}.",
        scripts=["report.js"],
        data={"table-data": as_json(table_of(seen))},
    )


def _sections(record: ExperimentRecord, figures: Figures, tradeoffs: Sequence[Spec]) -> Iterator[str]:
    if any("ablation" in trial.info for trial in record.trials.values()):
        yield figures.section("ablation", "Ablation", draw_ablation(record))
    for number, spec in enumerate(tradeoffs):
        yield figures.section(f"tradeoff-{number}", "Trade-off" if number == 0 else "", spec)
    figures.place("best-by-time", draw_best_so_far(record, "time"))
    switch = (
        '<span class="switch"><button data-target="figure-best" data-shows="best" aria-pressed="true">by trial</button>'
        '<button data-target="figure-best" data-shows="best-by-time" aria-pressed="false">by time</button></span>'
    )
    yield figures.section("best", "Best so far", draw_best_so_far(record), above=switch)
    if any(len(trial.curve) for trial in record.trials.values()):
        yield figures.section("curves", "Curves", draw_learning_curves(record))
    yield from _parameters(record, figures)
    yield figures.section("timeline", "Workers", draw_timeline(record))


def _parameters(record: ExperimentRecord, figures: Figures) -> Iterator[str]:
    hint = "Score of completed trials against each parameter."
    step = common_step(record, FEWEST_TRIALS)
    if step is not None and len(scored(record)) < _ENOUGH * len(record.trials):
        record = seen_at(record, step)
        hint = f"Few trials completed, so all are compared by what they had reported at step {step}."
    model: Model | None = None
    order: list[str] | None = None
    if len(scored(record)) >= FEWEST_TRIALS:
        try:
            model = fit(record)
        except InvalidInputError:  # no parameter varies
            return
        found = importance_of(model)
        order = list(found.main)
        yield figures.section("importance", "Importance", draw_importance(record, found))
    panels = slice_panels(record, order, model)
    if not panels:
        return
    figures.links.append(("slices", "Slices"))
    placed = [figures.place(f"slice-{number}", panel)[2] for number, panel in enumerate(panels)]
    line = "" if model is None else " The line is the mean over all other parameters."
    yield (
        f'<section id="slices"><h2>Slices</h2><p>{hint}{line}</p><div class="panels">{"".join(placed)}</div></section>'
    )
    if model is not None and order is not None and len(order) > 1:
        yield figures.section("contour", "Map", draw_contour(record, order[0], order[1], model))
    yield figures.section("parallel", "Parallel coordinates", draw_parallel_coordinates(record), is_wide=True)
