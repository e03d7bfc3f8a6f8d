"""Every figure is one that Plotly accepts, tells states apart, stays small, and shows strangers' text as text."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cargobike.analysis.axes import Axis
from cargobike.analysis.figures.comparison import draw_ablation, draw_importance, draw_pareto
from cargobike.analysis.figures.contour import draw_contour
from cargobike.analysis.figures.look import STATES, Spec, comfortable_range, escaped, seconds_as
from cargobike.analysis.figures.parameters import draw_parallel_coordinates, draw_slices
from cargobike.analysis.figures.progress import draw_best_so_far, draw_learning_curves
from cargobike.analysis.figures.ticks import ticks_of
from cargobike.analysis.figures.workers import draw_timeline
from cargobike.analysis.importance import importance_of
from cargobike.analysis.model import fit
from cargobike.analysis.plots import Plots, as_figure, plotly_script
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction
from cargobike.search.spaces.space import Searchspace
from support.sample_records import HOSTILE, SPACE, Story, ablated, compromising, hostile, lively

Draw = Callable[[ExperimentRecord], Spec]

ALWAYS: dict[str, Draw] = {
    "best": draw_best_so_far,
    "best by time": lambda record: draw_best_so_far(record, "time"),
    "curves": draw_learning_curves,
    "parallel": draw_parallel_coordinates,
    "slices": draw_slices,
    "importance": draw_importance,
    "timeline": draw_timeline,
}
LIVELY: dict[str, Draw] = ALWAYS | {
    "contour": lambda record: draw_contour(record, "lr", "layers"),
    "map of choices": lambda record: draw_contour(record, "act", "momentum"),
    "pareto": lambda record: draw_pareto(record, "accuracy", "latency_ms"),
}


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a figure that Plotly might read as HTML; keys and ticks of parcoords are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            if not (key == "ticktext" and "label" in value):
                yield from texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def trace(spec: Spec, name: str) -> dict[str, Any]:
    (found,) = [each for each in spec["data"] if each.get("name") == name and each.get("showlegend", True)]
    return dict(found)


@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("name", LIVELY)
def test_plotly_accepts_every_figure(name: str, direction: Any) -> None:
    figure = as_figure(LIVELY[name](lively(direction=direction)))
    assert len(figure.data) > 0
    assert figure.layout.title.text
    assert "NaN" not in figure.to_json()


@pytest.mark.parametrize("name", ALWAYS)
def test_nothing_to_see_is_said_in_words(name: str) -> None:
    figure = as_figure(ALWAYS[name](Story(SPACE).so_far()))
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", ALWAYS)
def test_a_few_trials_are_enough_to_draw_or_to_say_so(name: str, count: int) -> None:
    as_figure(ALWAYS[name](lively(count)))


@pytest.mark.parametrize("name", ALWAYS)
def test_text_of_strangers_is_shown_and_not_read(name: str) -> None:
    spec = ALWAYS[name](hostile())
    shown = list(texts(spec))
    assert shown
    for text in shown:
        for tag in ("<img", "<script", "</script"):
            assert tag not in text
        assert "\x1b" not in text
    as_figure(spec)


@pytest.mark.parametrize(
    "draw",
    [
        lambda record: draw_contour(record, HOSTILE, "lr"),
        lambda record: draw_pareto(record, HOSTILE, "other"),
    ],
)
def test_also_where_strangers_named_the_axes(draw: Draw) -> None:
    assert not any("<img" in text for text in texts(draw(hostile())))


def test_states_differ_in_more_than_colour() -> None:
    states = ("completed", "stopped", "failed")
    assert len({STATES[state][1:] for state in states}) == 3
    spec = draw_best_so_far(lively())
    for state in states:
        assert trace(spec, state)["marker"]["symbol"] == STATES[state][1]
    curves = draw_learning_curves(lively())
    assert {trace(curves, state)["line"]["dash"] for state in states} == {"solid", "dash", "dot"}


def test_the_best_so_far_line_ends_at_the_best() -> None:
    for direction in ("max", "min"):
        record = lively(direction=direction)
        assert record.best is not None
        assert trace(draw_best_so_far(record), "best so far")["y"][-1] == record.best.value


def test_hovering_tells_number_state_score_and_parameters() -> None:
    text = trace(draw_best_so_far(lively()), "completed")["hovertext"][0]
    record = lively()
    assert text.startswith("<b>trial 0</b> · completed<br>accuracy = ")
    for name in record.trials[0].params:
        assert f"<br>{name} = " in text
    assert "ValueError: no" in trace(draw_best_so_far(record), "failed")["hovertext"][0]
    assert "(last report)" in trace(draw_best_so_far(record), "stopped")["hovertext"][0]


def test_log_scales_are_drawn_as_such() -> None:
    spec = draw_slices(lively(), ["lr"])
    axis = spec["layout"]["xaxis"]
    assert axis["tickvals"] == [-4.0, -3.0, -2.0, -1.0]
    assert axis["ticktext"] == ["0.0001", "0.001", "0.01", "0.1"]
    record = lively()
    expected = [math.log10(t.params["lr"]) for t in record.trials.values() if t.value is not None]
    assert spec["data"][0]["x"].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis("x", "number", "linear", 0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Axis("x", "number", "linear", 1.0, 3.0, is_whole=True), ["1", "2", "3"]),
        (Axis("x", "number", "log", 1e-9, 1e3), ["1e-09", "1e-07", "1e-05", "0.001", "0.1", "10", "1000"]),
        (Axis("x", "number", "log", 2.0, 9.0), ["2", "5"]),
        (Axis("x", "number", "reverse-log", 0.9, 0.999), ["0.999", "0.99", "0.9"]),
        (Axis("x", "choice", labels=("a", "b")), ["a", "b"]),
    ],
)
def test_ticks_are_round_numbers(axis: Axis, labels: list[str]) -> None:
    places, found = ticks_of(axis)
    assert found == labels
    for place, label in zip(places, found, strict=True):
        if axis.kind == "number":
            assert axis.unstretched(place) == pytest.approx(float(label))


def test_what_does_not_exist_lies_below_all_values() -> None:
    record = lively()
    spec = draw_parallel_coordinates(record)
    (momentum,) = [each for each in spec["data"][0]["dimensions"] if each["label"] == "momentum"]
    assert momentum["ticktext"][0] == "absent"
    floor = momentum["tickvals"][0]
    absent = ["momentum" not in t.params for t in record.trials.values() if t.value is not None]
    assert [value == floor for value in momentum["values"]] == absent
    assert all(value >= floor for value in momentum["values"])


def test_the_best_region_has_the_lightest_colour_whatever_the_direction() -> None:
    assert not draw_parallel_coordinates(lively())["data"][0]["line"]["reversescale"]
    assert draw_parallel_coordinates(lively(direction="min"))["data"][0]["line"]["reversescale"]


def test_unknown_parameters_are_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidInputError, match=r"'layer' is not a parameter that varies. Did you mean 'layers'\?"):
        draw_contour(lively(), "lr", "layer")
    with pytest.raises(InvalidInputError, match="two different parameters"):
        draw_contour(lively(), "lr", "lr")


def test_ten_thousand_trials_stay_small_enough_for_a_browser() -> None:
    record = lively(10_000)
    model = fit(record)
    sharing: dict[str, Draw] = {
        "slices": lambda record: draw_slices(record, model=model),
        "importance": lambda record: draw_importance(record, importance_of(model)),
        "contour": lambda record: draw_contour(record, "lr", "layers", model),
        "map of choices": lambda record: draw_contour(record, "act", "momentum", model),
    }
    for name, draw in (LIVELY | sharing).items():
        spec = draw(record)
        marks = sum(len(each.get("x", ())) for each in spec["data"] if "markers" in each.get("mode", "markers"))
        limit = 12_000 if name == "timeline" else 7_000
        assert name == "parallel" or marks <= limit, name
        assert len(as_figure(spec).to_json()) < 3_000_000, name
    assert "of 10,000 trials shown" in draw_best_so_far(record)["layout"]["title"]["subtitle"]["text"]


def test_far_out_values_do_not_squeeze_the_others() -> None:
    values = np.array([0.8, 0.82, 0.85, 0.9, 0.91, 1e9])
    view, wider = comfortable_range(values), comfortable_range(values, keep=[2.0])
    assert view is not None
    assert view == pytest.approx((0.7934, 0.9166))
    assert wider is not None
    assert wider[1] > 2.0
    assert comfortable_range(values[:-1]) is None
    assert comfortable_range(np.array([1.0, math.nan])) is None
    assert comfortable_range(values, "min") == view, "the far end is the bad one"
    assert comfortable_range(values, "max") is None, "the good end is never cut off"


@pytest.mark.parametrize("way", ["max", "min"])
def test_the_front_of_a_tradeoff_is_seen_however_far_out_it_lies(way: Direction) -> None:
    sign = 1.0 if way == "max" else -1.0
    story = Story()
    crowd = [(1 + number / 100, 2 - number / 100) for number in range(30)]
    for a, b in (*crowd, (1e6, -1e5), (-1e7, -1e7)):
        story.complete(story.start({"lr": 0.1}), 1.0, a=sign * a, b=sign * b)
    drawn = draw_pareto(story.end(), "a", "b", {"a": way, "b": way})
    front = next(trace for trace in drawn["data"] if trace["name"] == "Pareto front")
    assert sign * 1e6 in front["x"]
    for axis, values in (("xaxis", front["x"]), ("yaxis", front["y"])):
        low, high = drawn["layout"][axis]["range"]
        assert low < min(values)
        assert max(values) < high
        assert not low < sign * -1e7 < high
    assert "outside the view" in drawn["layout"]["title"]["subtitle"]["text"]


def test_stopped_trials_can_be_compared_at_a_step_and_still_look_stopped() -> None:
    record = lively()
    final, early = draw_slices(record, ["lr"]), draw_slices(seen_at(record, 1), ["lr"])
    assert len(final["data"][0]["x"]) < len(early["data"][0]["x"])
    assert early["layout"]["yaxis"]["title"]["text"] == "accuracy at step 1"
    assert set(final["data"][0]["marker"]["symbol"]) == {"circle", "star"}
    assert set(early["data"][0]["marker"]["symbol"]) == {"circle", "star", "circle-open"}
    stopped = [text for text in early["data"][0]["hovertext"] if "stopped" in text]
    assert stopped
    assert all("accuracy at step 1 = " in text and "last report" not in text for text in stopped)
    for figure in (Plots(record).contour("lr", "layers", step=1), Plots(record).parallel_coordinates(step=1)):
        assert figure.data


def test_trials_that_break_a_limit_look_different() -> None:
    record = compromising()
    symbol = STATES["breaks a limit"][1]
    for spec in (draw_best_so_far(seen_by(record)), draw_pareto(record, "latency_ms", "accuracy")):
        marks = trace(spec, "breaks a limit")
        assert marks["marker"]["symbol"] == symbol
        assert "breaks limits by" in marks["hovertext"][0]
        as_figure(spec)


def test_several_objectives_can_each_be_looked_at() -> None:
    plots = Plots(compromising())
    for figure in (
        plots.best_so_far(),
        plots.best_so_far(metric="latency_ms"),
        plots.slices(metric="accuracy"),
        plots.contour("lr", "layers", metric="accuracy"),
        plots.importance(metric="accuracy"),
        plots.parallel_coordinates(metric="latency_ms"),
    ):
        assert figure.data


def test_an_ablation_says_what_is_clear() -> None:
    spec = draw_ablation(ablated())
    assert trace(spec, "worse without it")["y"] == ["dropout"]
    assert trace(spec, "not clear")["y"] == ["warmup", "augment"]
    as_figure(spec)


def test_importance_admits_when_it_knows_nothing() -> None:
    story = Story(Searchspace(a=("DOUBLE", [0.0, 1.0])))
    for index in range(20):
        story.complete(story.start({"a": (index * 7 % 20) / 20}), float(index % 2))
    assert "too little to trust" in draw_importance(story.end())["layout"]["title"]["subtitle"]["text"]


@pytest.mark.parametrize(("seconds", "unit"), [(5, "s"), (200, "min"), (4 * 3600, "h"), (9 * 86400, "d")])
def test_times_have_a_unit_that_fits(seconds: float, unit: str) -> None:
    assert seconds_as(seconds)[1] == unit


def test_escaping_is_what_plotly_undoes() -> None:
    assert escaped("a<b>&amp;\x1b[1m") == "a&lt;b&gt;&amp;amp; "
    assert len(escaped("x" * 1000, 20)) == 20


def test_the_plots_of_a_result_are_figures_of_plotly() -> None:
    plots = Plots(lively())
    for figure in (
        plots.best_so_far(by="time"),
        plots.learning_curves(most=10),
        plots.parallel_coordinates(["lr", "act"]),
        plots.slices(["lr"]),
        plots.contour("lr", "layers"),
        plots.importance(step=1),
        plots.pareto("accuracy", "duration_s", {"duration_s": "min"}),
        plots.timeline(),
        Plots(ablated()).ablation(confidence=0.9),
    ):
        assert json.loads(figure.to_json())["data"]


def test_without_plotly_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plotly", "plotly.graph_objects", "plotly.offline"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError, match=r'pip install "cargobike\[plot\]"'):
        Plots(lively()).timeline()
    with pytest.raises(ImportError, match="Plotly, which is not installed"):
        plotly_script()
