"""Every figure of an experiment: its name, its title, when it is worth showing and how it is drawn.

Notebook (`result.plot`), report and dashboard choose from this list and draw nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from cargobike.analysis.figures.comparison import draw_ablation, draw_importance, draw_pareto
from cargobike.analysis.figures.contour import draw_contour
from cargobike.analysis.figures.look import Spec, empty
from cargobike.analysis.figures.parameters import draw_parallel_coordinates, draw_slices, slice_panels
from cargobike.analysis.figures.progress import draw_best_so_far, draw_learning_curves
from cargobike.analysis.figures.source import FigureSource
from cargobike.analysis.figures.workers import draw_timeline
from cargobike.analysis.model import FEWEST_TRIALS, Model
from cargobike.analysis.progress import Order
from cargobike.analysis.scores import metric_names
from cargobike.analysis.views import seen_by
from cargobike.core.errors import NotFoundError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, TrialState
from cargobike.core.values.words import count

Section = Literal["progress", "parameters", "workers"]


@dataclass(frozen=True, slots=True)
class Options:
    """What a figure can be asked for with; each figure uses those that it knows.

    Attributes:
        by: Against what progress is drawn.
        metric: Another metric than the objective; of several objectives the first is the default.
        step: Compare trials by what they reported there, so that stopped ones count, too.
        x: The first of two parameters or metrics.
        y: The second one.
        most: How many curves at most.
        params: Only these parameters, in this order.
        direction: Which way metrics are better that the search was told nothing of.
        confidence: How sure intervals are.
    """

    by: Order = "trial"
    metric: str | None = None
    step: int | None = None
    x: str | None = None
    y: str | None = None
    most: int = 200
    params: tuple[str, ...] | None = None
    direction: Mapping[str, Direction] | None = field(default=None, hash=False)
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of an experiment.

    Attributes:
        name: By which it is asked for.
        title: What people call it.
        section: Where it belongs.
        choices: Options that a reader can change while looking at it.
        is_worth_showing: Whether it says anything about an experiment, now or once more trials have ended.
        draw: Draws it; where there is too little to see yet, the figure says so in words.
    """

    name: str
    title: str
    section: Section
    choices: tuple[str, ...]
    is_worth_showing: Callable[[FigureSource], bool]
    draw: Callable[[FigureSource, Options], Spec]


def figure_of(name: str) -> Figure:
    """Return a figure by its name.

    Raises:
        NotFoundError: If there is no figure of that name.
    """
    try:
        return FIGURES[name]
    except KeyError:
        known = f"there are {', '.join(FIGURES)}.{nearest(name, FIGURES)}"
        raise NotFoundError(f"There is no figure {name!r}; {known}", wanted=name) from None


def worth_showing(source: FigureSource) -> list[Figure]:
    """Return the figures that make sense for an experiment."""
    return [each for each in FIGURES.values() if each.is_worth_showing(source)]


def draw_slice_panels(source: FigureSource, options: Options) -> list[Spec]:
    """Draw slices as one small figure for each parameter, the most important first, for pages that arrange them."""
    return slice_panels(*_sliced(source, options))


def _best_so_far(source: FigureSource, options: Options) -> Spec:
    return draw_best_so_far(seen_by(source.record, options.metric), options.by)


def _learning_curves(source: FigureSource, options: Options) -> Spec:
    return draw_learning_curves(source.record, options.most)


def _pareto(source: FigureSource, options: Options) -> Spec:
    record = source.record
    names = [*record.goals.objectives] or metric_names(record)
    x = options.x or next((name for name in names if name != options.y), names[0])
    y = options.y or next((name for name in [*names, *metric_names(record)] if name != x), "duration_s")
    return draw_pareto(record, x, y, options.direction)


def _parallel_coordinates(source: FigureSource, options: Options) -> Spec:
    return draw_parallel_coordinates(source.compared(options.metric, options.step), options.params)


def _importance(source: FigureSource, options: Options) -> Spec:
    learned = source.learned(options.metric, options.step)
    compared = source.compared(options.metric, options.step)
    return draw_importance(compared, None if learned is None else learned.importance)


def _contour(source: FigureSource, options: Options) -> Spec:
    learned = source.learned(options.metric, options.step)
    x, y = options.x, options.y
    if x is None or y is None:
        if learned is None:
            return empty("Map of two parameters", f"A map needs at least {FEWEST_TRIALS} trials with a score.")
        if len(learned.order) < 2:
            return empty("Map of two parameters", "A map needs two parameters that vary.")
        x = x or next(name for name in learned.order if name != y)
        y = y or next(name for name in learned.order if name != x)
    compared = source.compared(options.metric, options.step)
    return draw_contour(compared, x, y, None if learned is None else learned.model)


def _slices(source: FigureSource, options: Options) -> Spec:
    return draw_slices(*_sliced(source, options))


def _sliced(source: FigureSource, options: Options) -> tuple[ExperimentRecord, Sequence[str] | None, Model | None]:
    """Return what slices are drawn of: the experiment as compared, the parameters in their order, the trend."""
    learned = source.learned(options.metric, options.step)
    compared = source.compared(options.metric, options.step)
    if learned is None:
        return compared, options.params, None
    return compared, learned.order if options.params is None else options.params, learned.model


def _ablation(source: FigureSource, options: Options) -> Spec:
    return draw_ablation(source.record, options.confidence)


def _timeline(source: FigureSource, options: Options) -> Spec:
    return draw_timeline(source.whole)


def _has_trials(source: FigureSource) -> bool:
    return bool(source.record.trials)


def _has_curves(source: FigureSource) -> bool:
    return any(len(trial.curve) for trial in source.record.trials.values())


def _has_metrics(source: FigureSource) -> bool:
    record = source.record
    return bool(record.goals.objectives) or (record.counts[TrialState.COMPLETED] > 1 and len(metric_names(record)) > 2)


def _has_ablation(source: FigureSource) -> bool:
    return any("ablation" in trial.info for trial in source.record.trials.values())


def _one_varies(source: FigureSource) -> bool:
    return len(source.varying) > 0


def _two_vary(source: FigureSource) -> bool:
    return len(source.varying) > 1


def _noting_hidden(figure: Figure) -> Figure:
    """Have a figure of trials say below its title how many of them are left out."""

    def draw(source: FigureSource, options: Options) -> Spec:
        spec = figure.draw(source, options)
        if source.hidden and figure.section != "workers":
            title = spec["layout"]["title"]
            words = f"without {count(source.hidden, 'hidden trial')}"
            before = title.get("subtitle", {}).get("text", "")
            title["subtitle"] = {"text": f"{before} · {words}" if before else words}
        return spec

    return replace(figure, draw=draw)


_FIGURES: Final = (
    Figure("best-so-far", "Best so far", "progress", ("by", "metric"), _has_trials, _best_so_far),
    Figure("learning-curves", "Learning curves", "progress", ("most",), _has_curves, _learning_curves),
    Figure("pareto", "Trade-off", "progress", ("x", "y"), _has_metrics, _pareto),
    Figure(
        "parallel-coordinates",
        "Parallel coordinates",
        "parameters",
        ("metric", "step"),
        _one_varies,
        _parallel_coordinates,
    ),
    Figure(
        "importance",
        "Importance of parameters",
        "parameters",
        ("metric", "step"),
        _one_varies,
        _importance,
    ),
    Figure(
        "contour",
        "Map of two parameters",
        "parameters",
        ("x", "y", "metric", "step"),
        _two_vary,
        _contour,
    ),
    Figure("slices", "Slices", "parameters", ("metric", "step"), _one_varies, _slices),
    Figure("ablation", "Ablation", "parameters", (), _has_ablation, _ablation),
    Figure("timeline", "Worker timeline", "workers", (), _has_trials, _timeline),
)
FIGURES: Final[dict[str, Figure]] = {figure.name: _noting_hidden(figure) for figure in _FIGURES}
"""All figures by name, in the order in which a page shows them."""
