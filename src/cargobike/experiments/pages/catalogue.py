"""The figures that can be asked for, the same ones as in `result.plot` and in the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cargobike.analysis.axes import axes_of
from cargobike.analysis.figures.comparison import draw_ablation, draw_importance, draw_pareto
from cargobike.analysis.figures.contour import draw_contour
from cargobike.analysis.figures.look import Spec, empty
from cargobike.analysis.figures.parameters import draw_parallel_coordinates, draw_slices
from cargobike.analysis.figures.progress import draw_best_so_far, draw_learning_curves
from cargobike.analysis.figures.workers import draw_timeline
from cargobike.analysis.importance import importance_of
from cargobike.analysis.model import FEWEST_TRIALS, Model, fit
from cargobike.analysis.progress import Order
from cargobike.analysis.scores import common_step, goodness_of, metric_names, scored, thinned
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import TrialState
from cargobike.experiments.pages.live import LiveExperiment

_ENOUGH: Final = 0.3
"""With fewer completed trials than this share, parameters are compared by an earlier step that most trials reached."""
MOST_LEARNED: Final = 2500
"""A model learns from so many trials at most, the best and an even selection: more would not change what it says."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a figure can be asked for with; each figure uses those that it knows."""

    by: Order = "trial"
    metric: str | None = None
    step: int | None = None
    x: str | None = None
    y: str | None = None
    most: int = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A figure: its title, where it belongs, the options it knows, when it makes sense, how it is drawn.

    Whether it makes sense may depend on how many parameters vary, the second argument.
    """

    title: str
    section: str
    options: tuple[str, ...]
    makes_sense: Callable[[ExperimentRecord, int], bool]
    draw: Callable[[LiveExperiment, ExperimentRecord, Options], Spec]


def figure_names(record: ExperimentRecord) -> list[str]:
    """Return the names of the figures that make sense for an experiment."""
    varying = len(axes_of(record)) if len(record.trials) > 1 else 0
    return [name for name, entry in FIGURES.items() if entry.makes_sense(record, varying)]


def draw(live: LiveExperiment, name: str, options: Options) -> tuple[int, Spec]:
    """Draw a figure, or return it as it was drawn for the same version; only inside `live.reading()`.

    Raises:
        NotFoundError: If there is no figure of that name.
        InvalidInputError: If an option names what is not there.
    """
    entry = FIGURES.get(name)
    if entry is None:
        raise NotFoundError(f"There is no figure {name!r}; there are {', '.join(FIGURES)}.{nearest(name, FIGURES)}")
    return live.made(("figure", name, options), lambda record: entry.draw(live, record, options))


def _compared(record: ExperimentRecord, options: Options) -> ExperimentRecord:
    """Return the experiment by the metric and the step asked for, or by a step that most trials reached."""
    seen = seen_by(record, options.metric)
    if options.step is not None:
        return seen_at(seen, options.step)
    if options.metric is None and len(scored(seen)) < _ENOUGH * len(seen.trials):
        step = common_step(seen, FEWEST_TRIALS)
        if step is not None:
            return seen_at(seen, step)
    return seen


def _learned(record: ExperimentRecord) -> ExperimentRecord:
    trials = thinned(scored(record), MOST_LEARNED, goodness_of(record))
    if len(trials) < MOST_LEARNED:
        return record
    fewer = dataclasses.replace(record, trials={trial.number: trial for trial in trials})
    fewer.best = record.best
    return fewer


def _model(live: LiveExperiment, options: Options) -> Model | None:
    """Return the model that several figures are read from; `None` if there is too little to learn from."""

    def learn(record: ExperimentRecord) -> Model | None:
        try:
            return fit(_learned(_compared(record, options)))
        except InvalidInputError:
            return None

    found: Model | None = live.made(("model", options.metric, options.step), learn)[1]
    return found


def _importance(live: LiveExperiment, record: ExperimentRecord, options: Options) -> Spec:
    compared, model = _compared(record, options), _model(live, options)
    return draw_importance(compared, None if model is None else importance_of(model))


def _slices(live: LiveExperiment, record: ExperimentRecord, options: Options) -> Spec:
    compared, model = _compared(record, options), _model(live, options)
    order = None if model is None else list(importance_of(model).main)
    return draw_slices(compared, order, model)


def _contour(live: LiveExperiment, record: ExperimentRecord, options: Options) -> Spec:
    compared, model = _compared(record, options), _model(live, options)
    if model is None:
        return empty("Map of two parameters", f"A map needs at least {FEWEST_TRIALS} trials with a score.")
    order = list(importance_of(model).main)
    if len(order) < 2:
        return empty("Map of two parameters", "A map needs two parameters that vary.")
    x = options.x or next(name for name in order if name != options.y)
    y = options.y or next(name for name in order if name != x)
    return draw_contour(compared, x, y, model)


def _pareto(live: LiveExperiment, record: ExperimentRecord, options: Options) -> Spec:
    names = [*record.goals.objectives] or metric_names(record)
    x = options.x or next((name for name in names if name != options.y), names[0])
    y = options.y or next((name for name in [*names, *metric_names(record)] if name != x), "duration_s")
    return draw_pareto(record, x, y)


def _begun(record: ExperimentRecord, _: int) -> bool:
    return bool(record.trials)


def _varies(_: ExperimentRecord, varying: int) -> bool:
    return varying > 0


def _two_vary(_: ExperimentRecord, varying: int) -> bool:
    return varying > 1


def _has_metrics(record: ExperimentRecord, _: int) -> bool:
    return bool(record.goals.objectives) or (record.counts[TrialState.COMPLETED] > 1 and len(metric_names(record)) > 2)


FIGURES: Final[dict[str, Entry]] = {
    "best-so-far": Entry(
        "Best so far",
        "progress",
        ("by", "metric"),
        _begun,
        lambda _, record, options: draw_best_so_far(seen_by(record, options.metric), options.by),
    ),
    "learning-curves": Entry(
        "Learning curves",
        "progress",
        ("most",),
        lambda record, _: any(len(trial.curve) for trial in record.trials.values()),
        lambda _, record, options: draw_learning_curves(record, options.most),
    ),
    "pareto": Entry("Trade-off", "progress", ("x", "y"), _has_metrics, _pareto),
    "parallel-coordinates": Entry(
        "Parallel coordinates",
        "parameters",
        ("metric", "step"),
        _varies,
        lambda _, record, options: draw_parallel_coordinates(_compared(record, options)),
    ),
    "importance": Entry("Importance of parameters", "parameters", ("metric", "step"), _varies, _importance),
    "contour": Entry("Map of two parameters", "parameters", ("x", "y", "metric", "step"), _two_vary, _contour),
    "slices": Entry("Slices", "parameters", ("metric", "step"), _varies, _slices),
    "ablation": Entry(
        "Ablation",
        "parameters",
        (),
        lambda record, _: any("ablation" in trial.info for trial in record.trials.values()),
        lambda _, record, __: draw_ablation(record),
    ),
    "timeline": Entry("Worker timeline", "workers", (), _begun, lambda _, record, __: draw_timeline(record)),
}
"""All figures by name, in the order in which a page shows them."""
