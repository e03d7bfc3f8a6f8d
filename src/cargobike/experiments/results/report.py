"""The report: one page with everything about an experiment, in one file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from cargobike.analysis.catalogue import FIGURES, Options, draw_slice_panels
from cargobike.analysis.figures.source import FigureSource
from cargobike.analysis.views import seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.values.kinds import read_several
from cargobike.core.values.words import count
from cargobike.experiments.results.report_parts import failures, head, overview, table_of
from cargobike.store.history.annotations import read_annotations
from cargobike.ui.markup import as_json, text
from cargobike.ui.paper import Figures, lay_out, write_page

_MOST_PAIRS = 3
_TABLE = """
<section id="trials"><h2>Trials</h2>
<div class="tools"><input id="search" type="search" placeholder="Search, e.g. act=relu" aria-label="Search trials">
<select id="state" aria-label="State"><option value="">all states</option>{options}</select>
<span id="count" class="label"></span></div>
<div class="scroll"><table id="table"><thead><tr></tr></thead><tbody></tbody></table></div>
<button id="more" class="more" hidden>Show more</button>
<noscript><p class="hint">Table and figures need JavaScript; it is in this file, nothing is loaded.</p></noscript>
</section>
"""
_SWITCH = (
    '<span class="switch"><button data-target="figure-best" data-shows="best" aria-pressed="true">by trial</button>'
    '<button data-target="figure-best" data-shows="best-by-time" aria-pressed="false">by time</button></span>'
)


def write_report(
    record: ExperimentRecord,
    folder: ExperimentFolder,
    path: str | os.PathLike[str],
    *,
    pareto: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write an experiment's report and return its path.

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
    """Return an experiment's report as HTML, without the trials that people have hidden."""
    _check_pairs(pareto)
    figures = Figures()
    pairs = [*combinations(record.goals.objectives, 2)][:_MOST_PAIRS] + list(pareto)
    source = FigureSource(record, read_annotations(folder).hidden)
    record = source.record
    sections = [overview(record, source.hidden), *_Drawn(source, figures).sections(pairs)]
    states = dict.fromkeys(trial.state.value for trial in record.trials.values())
    sections.append(_TABLE.format(options="".join(f'<option value="{state}">{state}</option>' for state in states)))
    links = [*figures.links, ("trials", "Trials")]
    if section := failures(record, folder):
        sections.append(section)
        links.append(("failures", "Failures"))
    return lay_out(
        title=f"{record.header.name or record.id} · report",
        head=head(record),
        sections=sections,
        figures=figures,
        links=links,
        footer=f"Experiment {text(record.id)}, written by Cargobike {text(record.header.cargobike)}.",
        scripts=["report.js"],
        data={"table-data": as_json(table_of(seen_by(record)))},
    )


def _check_pairs(pareto: object) -> None:
    example = '[("accuracy", "latency_ms")]'
    for pair in read_several("pareto", pareto, example):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidInputError(f"pareto must be a list of pairs of metrics, such as {example}; it holds {pair!r}.")


class _Drawn:
    """The figures that a report chooses from the catalogue, each in a section of its own."""

    def __init__(self, source: FigureSource, figures: Figures) -> None:
        self._source = source
        self._figures = figures

    def sections(self, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield all sections; `pairs` are metrics to draw against each other."""
        yield from self._section("ablation", "ablation", "Ablation")
        for number, (x, y) in enumerate(pairs):
            spec = FIGURES["pareto"].draw(self._source, Options(x=x, y=y))
            yield self._figures.section(f"tradeoff-{number}", "Trade-off" if number == 0 else "", spec)
        for section in self._section("best-so-far", "best", "Best so far", above=_SWITCH):
            yield section
            self._figures.add("best-by-time", FIGURES["best-so-far"].draw(self._source, Options(by="time")))
        yield from self._section("learning-curves", "curves", "Curves")
        yield from self._section("importance", "importance", "Importance")
        yield from self._slices()
        yield from self._section("contour", "contour", "Map")
        yield from self._section("parallel-coordinates", "parallel", "Parallel coordinates", is_wide=True)
        yield from self._section("timeline", "timeline", "Workers")

    def _section(self, name: str, anchor: str, word: str, *, above: str = "", is_wide: bool = False) -> Iterator[str]:
        """Yield a figure that is worth showing."""
        figure = FIGURES[name]
        if figure.is_worth_showing(self._source):
            spec = figure.draw(self._source, Options())
            # A figure of parameters may need more trials than there are; nothing will be added to a report.
            if spec["data"] or figure.section != "parameters":
                yield self._figures.section(anchor, word, spec, above=above, is_wide=is_wide)

    def _slices(self) -> Iterator[str]:
        panels = draw_slice_panels(self._source, Options())
        if not panels:
            return
        self._figures.links.append(("slices", "Slices"))
        figures = [self._figures.add(f"slice-{number}", panel)[2] for number, panel in enumerate(panels)]
        step = self._source.early_step
        hint = "Score of completed trials against each parameter."
        if step is not None:
            hint = f"Few trials completed, so all are compared by what they had reported at step {step}."
        if self._source.learned() is not None:
            hint += " The line is the mean over all other parameters."
        if self._source.hidden:
            hint += f" Without {count(self._source.hidden, 'hidden trial')}."
        yield f'<section id="slices"><h2>Slices</h2><p>{hint}</p><div class="panels">{"".join(figures)}</div></section>'
