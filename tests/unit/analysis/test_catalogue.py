"""One catalogue of figures: what notebook, report and page choose from, and what they are drawn of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike.analysis.catalogue import FIGURES, Options, draw_slice_panels, figure_of, worth_showing
from cargobike.analysis.figures.source import ENOUGH_COMPLETED, FigureSource
from cargobike.analysis.plots import Plots
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.results.report import report_page
from support.sample_records import SPACE, Story, compromising, lively


def mostly_stopped(completed: int = 5, trials: int = 40) -> ExperimentRecord:
    """Return a search that stopped most of its trials after three steps."""
    story = Story(SPACE, metric="accuracy")
    for index in range(trials):
        number = story.start({"lr": 0.001 * (index + 1), "layers": index % 5 + 1})
        story.report(number, [0.01 * index] * (9 if index < completed else 3))
        if index < completed:
            story.complete(number, 0.01 * index)
        else:
            story.stop(number)
    return story.end()


def y_titles(spec: Any) -> str:
    return str(spec["layout"].get("yaxis", {}).get("title", {}).get("text", ""))


def test_every_figure_draws_what_its_name_says_and_is_listed_once() -> None:
    source = FigureSource(lively())
    shown = worth_showing(source)
    assert [each.name for each in shown] == [name for name in FIGURES if name != "ablation"]
    for figure in shown:
        spec = figure.draw(source, Options())
        assert spec["data"], figure.name
        assert figure_of(figure.name) is figure


def test_nothing_is_worth_showing_before_the_first_trial() -> None:
    assert worth_showing(FigureSource(Story(SPACE).so_far())) == []


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(NotFoundError, match=r"no figure 'slice'.*Did you mean 'slices'\?"):
        figure_of("slice")


def test_few_completed_trials_are_compared_by_an_earlier_step_everywhere(tmp_path: Path) -> None:
    record = mostly_stopped()
    source = FigureSource(record)
    assert source.early_step == 2
    page = figure_of("slices").draw(source, Options())
    notebook = Plots(record).slices()
    report = report_page(record, ExperimentFolder(tmp_path))
    assert y_titles(page) == notebook.layout.yaxis.title.text == "accuracy at step 2"
    assert "accuracy at step 2" in report
    assert len(page["data"][0]["x"]) == len(notebook.data[0].x) == 40
    assert Plots(record).contour("lr", "layers").data
    assert Plots(record).importance().data


def test_enough_completed_trials_are_compared_by_their_scores() -> None:
    enough = int(ENOUGH_COMPLETED * 40)
    assert FigureSource(mostly_stopped(completed=enough)).early_step is None
    assert FigureSource(mostly_stopped(completed=enough - 1)).early_step == 2


def test_what_was_asked_for_goes_before_the_earlier_step() -> None:
    source = FigureSource(mostly_stopped())
    assert y_titles(figure_of("slices").draw(source, Options(step=1))) == "accuracy at step 1"
    assert source.compared(metric="accuracy").header.metric == "accuracy"
    with pytest.raises(InvalidInputError, match="there is no metric 'acuracy'"):
        source.compared(metric="acuracy")


def test_a_model_is_made_once_for_all_figures_that_need_it() -> None:
    source = FigureSource(lively())
    first = source.learned()
    assert first is not None
    for name in ("importance", "slices", "contour"):
        figure_of(name).draw(source, Options())
    assert source.learned() is first
    assert source.learned(step=1) is not first


def test_a_model_learns_from_a_selection_of_very_many_trials() -> None:
    learned = FigureSource(lively(6000)).learned()
    assert learned is not None
    assert len(learned.model.trials) == 2500


def test_slices_show_the_most_important_first_and_only_what_was_asked_for() -> None:
    source = FigureSource(lively())
    learned = source.learned()
    assert learned is not None
    titles = [panel["layout"]["xaxis"]["title"]["text"] for panel in draw_slice_panels(source, Options())]
    assert titles == learned.order
    chosen = draw_slice_panels(source, Options(params=("layers", "lr")))
    assert [panel["layout"]["xaxis"]["title"]["text"] for panel in chosen] == ["layers", "lr"]


def test_objectives_are_drawn_against_each_other() -> None:
    spec = figure_of("pareto").draw(FigureSource(compromising()), Options())
    assert "accuracy against latency_ms" in spec["layout"]["title"]["text"]


def test_figures_need_neither_the_web_nor_a_plotting_library() -> None:
    code = (
        "import sys, cargobike.analysis.catalogue, cargobike.analysis.plots\n"
        "loaded = {'fastapi', 'starlette', 'pydantic', 'jinja2', 'plotly', 'cargobike.ui', 'cargobike.store'}\n"
        "print(sorted(loaded & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("ablation", "timeline")])
def test_hidden_trials_are_in_no_figure_and_it_says_how_many(name: str) -> None:
    record = lively()
    assert record.best is not None
    hidden = {record.best.number, 3, 999}
    left = FigureSource(record, hidden)
    assert left.hidden_trials == tuple(sorted(hidden - {999}))
    assert left.record.best is not None
    assert left.record.best.number not in hidden
    drawn = FIGURES[name].draw(left, Options())
    assert "without 2 hidden trials" in drawn["layout"]["title"]["subtitle"]["text"]
    whole = FIGURES[name].draw(FigureSource(record), Options())
    assert "hidden" not in str(whole["layout"]["title"])
    assert repr(drawn["data"]) != repr(whole["data"]), "it is drawn from the others"


def test_what_workers_did_includes_hidden_trials() -> None:
    record = lively()
    draw = FIGURES["timeline"].draw
    assert draw(FigureSource(record, {3, 4}), Options()) == draw(FigureSource(record), Options())
