"""The report of a benchmark as one page: what was measured, where, and four kinds of figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cargobike.bench.cases import SIZES, Outcome, Way
from cargobike.bench.figures import draw_communication, draw_convergence, draw_speed_by_size, draw_speed_by_workers
from cargobike.bench.summary import HEADINGS, row_of
from cargobike.ui.markup import fact_list, text
from cargobike.ui.paper import Figures, lay_out, write_page


def write_bench_page(outcomes: Sequence[Outcome], facts: Mapping[str, object], path: str | os.PathLike[str]) -> Path:
    """Write the page and return where it lies.

    Args:
        outcomes: What was measured; at least one.
        facts: About the machine and the settings, for people.
        path: Where to write; folders that are missing are made, a file that is there is replaced.

    Raises:
        MissingLibraryError: If Plotly is not installed.
    """
    figures = Figures()
    models = [name for name in SIZES if any(each.case.model == name for each in outcomes)]
    sections = [_overview(outcomes, facts)]
    for name in models:
        word = "Convergence" if name == models[0] else ""
        sections.append(figures.section(f"convergence-{name}", word, draw_convergence(outcomes, name)))
    for name in models:
        word = "Workers" if name == models[0] else ""
        sections.append(figures.section(f"workers-{name}", word, draw_speed_by_workers(outcomes, name)))
    if len(models) > 1:
        sections.append(figures.section("size", "Model size", draw_speed_by_size(outcomes)))
    if any(each.case.way != Way.ONE for each in outcomes):
        sections.append(figures.section("communication", "Communication", draw_communication(outcomes)))
    page = lay_out(
        title="cargobike bench train",
        head="<header><div><div class=line><h1>cargobike bench train</h1></div>"
        "<p>How fast this place trains, in each of the ways that Cargobike knows.</p></div></header>",
        sections=sections,
        figures=figures,
        links=[("overview", "Overview"), *figures.links],
        footer=f"Written by Cargobike {text(facts.get('cargobike', ''))}.",
    )
    return write_page(page, path)


def _overview(outcomes: Sequence[Outcome], facts: Mapping[str, object]) -> str:
    kinds = ["number" if is_number else "" for _, is_number in HEADINGS]
    head = "".join(f'<th class="{kind}">{text(word)}</th>' for kind, (word, _) in zip(kinds, HEADINGS, strict=True))
    rows = ""
    for each in outcomes:
        cells = zip(kinds, row_of(each), strict=True)
        rows += "<tr>" + "".join(f'<td class="{kind}">{text(cell)}</td>' for kind, cell in cells) + "</tr>"
    return (
        f'<section id="overview"><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div>{fact_list(facts)}</section>"
    )
