"""The figures of one experiment as objects of Plotly: what `result.plot` is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from cargobike.analysis.catalogue import Options, figure_of
from cargobike.analysis.figures.look import Spec
from cargobike.analysis.figures.source import FigureSource
from cargobike.analysis.figures.trial import draw_trial_curves
from cargobike.analysis.progress import Order
from cargobike.analysis.scores import objective_name
from cargobike.core.errors import InvalidInputError, MissingLibraryError, NotFoundError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, Trial
from cargobike.core.values.kinds import read_count, read_mapping, read_several, read_text
from cargobike.core.values.numbers import describe

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Plots:
    """Figures of one experiment; each call returns a `plotly.graph_objects.Figure`.

    A `metric` is any number that the train function returned, or `duration_s`; by default the objective, of several
    the first. With `step`, trials are compared by what they reported there, so that stopped ones count, too. Without
    either, and if few trials completed, parameters are compared by the last step that most trials reached.

    Trials that were stopped, have failed or still run look different from completed ones everywhere. Of
    very many trials a selection is drawn, the best always among them, and the figure says so. Trials that people have
    hidden are left out, except from what workers did, and the figure says how many.
    """

    def __init__(
        self,
        record: ExperimentRecord,
        curves_of: Callable[[int], Mapping[str, Curve]] | None = None,
        hidden: Collection[int] = (),
    ) -> None:
        self._record = record
        self._curves_of = curves_of
        self._hidden = hidden

    def best_so_far(self, by: Order = "trial", metric: str | None = None) -> go.Figure:
        """Draw the best score so far, by trial number or by `"time"`."""
        return self._draw("best-so-far", Options(by=by, metric=metric))

    def learning_curves(self, most: int = 200) -> go.Figure:
        """Draw the objective of each trial against its steps."""
        return self._draw("learning-curves", Options(most=most))

    def trial_curves(self, trial: Trial | int) -> go.Figure:
        """Draw every metric that one trial reported against its steps."""
        given: object = trial
        if not isinstance(given, Trial | int):
            hint = " `result.best` is None if no trial has completed." if given is None else ""
            raise InvalidInputError(f"a trial, or its number, is needed; {describe(given)} was given.{hint}")
        number = trial if isinstance(trial, int) else trial.number
        chosen = self._record.trials.get(number) or self._record.runs.get(number)
        if chosen is None:
            count = len(self._record.trials)
            raise NotFoundError(f"There is no trial {number}; there are {count}, counted from 0.", wanted=number)
        objective = {objective_name(self._record): chosen.curve}
        curves = objective if self._curves_of is None else self._curves_of(chosen.number)
        return as_figure(draw_trial_curves(self._record, chosen, curves))

    def parallel_coordinates(
        self, params: Sequence[str] | None = None, metric: str | None = None, step: int | None = None
    ) -> go.Figure:
        """Draw each trial with a score as a line through its parameters to that score."""
        return self._draw("parallel-coordinates", Options(params=_names(params), metric=metric, step=step))

    def slices(
        self, params: Sequence[str] | None = None, metric: str | None = None, step: int | None = None
    ) -> go.Figure:
        """Draw the score against each parameter."""
        return self._draw("slices", Options(params=_names(params), metric=metric, step=step))

    def contour(self, x: str, y: str, metric: str | None = None, step: int | None = None) -> go.Figure:
        """Draw a map of the score over two parameters."""
        return self._draw("contour", Options(x=x, y=y, metric=metric, step=step))

    def importance(self, metric: str | None = None, step: int | None = None) -> go.Figure:
        """Draw how much each parameter matters."""
        return self._draw("importance", Options(metric=metric, step=step))

    def pareto(self, first: str, second: str, direction: Mapping[str, Direction] | None = None) -> go.Figure:
        """Draw two metrics against each other; `direction` says which way each is better."""
        return self._draw("pareto", Options(x=first, y=second, direction=direction))

    def timeline(self) -> go.Figure:
        """Draw what each worker did when, and when it had nothing to do."""
        return self._draw("timeline", Options())

    def ablation(self, confidence: float = 0.95) -> go.Figure:
        """Draw what is lost without each component of an ablation."""
        return self._draw("ablation", Options(confidence=confidence))

    def _draw(self, name: str, options: Options) -> go.Figure:
        _check(options)
        return as_figure(figure_of(name).draw(FigureSource(self._record, self._hidden), options))


def _names(params: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if params is None else read_several("params", params, "['lr', 'layers']")


def _check(options: Options) -> None:
    """Refuse options of the wrong kind, so that what follows need not look at them."""
    texts = {"metric": options.metric, "x": options.x, "y": options.y}
    for name, text in texts.items():
        if text is not None:
            read_text(name, text)
    for text in options.params or ():
        read_text("each of params", text)
    if options.step is not None:
        read_count("step", options.step, least=-(2**63))
    read_count("most", options.most, least=1)
    if options.direction is not None:
        read_mapping("direction", options.direction, "{'recall': 'max'}")


def as_figure(spec: Spec) -> go.Figure:
    """Turn a figure's data into an object of Plotly.

    Raises:
        MissingLibraryError: If Plotly is not installed; says how to install it.
    """
    try:
        import plotly.graph_objects as go  # noqa: PLC0415 - optional, and only for figures
    except ImportError as error:
        raise _missing() from error
    return go.Figure(spec)


def plotly_script() -> str:
    """Return Plotly's own script as it lies in the installed package, for pages that load nothing from elsewhere."""
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional, and only for pages
    except ImportError as error:
        raise _missing() from error
    return str(get_plotlyjs())


def _missing() -> MissingLibraryError:
    return MissingLibraryError(
        'figures are drawn by Plotly, which is not installed; install it with: pip install "cargobike[plot]"',
        name="plotly",
    )
