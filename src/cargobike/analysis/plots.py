"""The figures of one experiment as objects of Plotly: what `result.plot` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cargobike.analysis.figures.comparison import draw_ablation, draw_importance, draw_pareto
from cargobike.analysis.figures.contour import draw_contour
from cargobike.analysis.figures.look import Spec
from cargobike.analysis.figures.parameters import draw_parallel_coordinates, draw_slices
from cargobike.analysis.figures.progress import draw_best_so_far, draw_learning_curves
from cargobike.analysis.figures.trial import draw_trial_curves
from cargobike.analysis.figures.workers import draw_timeline
from cargobike.analysis.progress import Order
from cargobike.analysis.scores import objective_name
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.errors import MissingLibraryError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, Trial

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Plots:
    """Figures of one experiment; each call returns a `plotly.graph_objects.Figure`.

    A `metric` is any number that the train function returned, or `duration_s`; by default the objective, of several
    the first. With `step`, trials are compared by what they reported there, so that stopped ones count, too.

    Trials that were stopped, have failed or still run look different from completed ones everywhere. Of
    very many trials a selection is drawn, the best always among them, and the figure says so.
    """

    def __init__(self, record: ExperimentRecord, curves_of: Callable[[int], Mapping[str, Curve]] | None = None) -> None:
        self._record = record
        self._curves_of = curves_of

    def best_so_far(self, by: Order = "trial", metric: str | None = None) -> go.Figure:
        """Draw the best score so far, by trial number or by `"time"`."""
        return as_figure(draw_best_so_far(seen_by(self._record, metric), by))

    def learning_curves(self, most: int = 200) -> go.Figure:
        """Draw the objective of each trial against its steps."""
        return as_figure(draw_learning_curves(self._record, most))

    def trial_curves(self, trial: Trial | int) -> go.Figure:
        """Draw every metric that one trial reported against its steps."""
        found = self._record.trials[trial] if isinstance(trial, int) else trial
        objective = {objective_name(self._record): found.curve}
        curves = objective if self._curves_of is None else self._curves_of(found.number)
        return as_figure(draw_trial_curves(self._record, found, curves))

    def parallel_coordinates(
        self, params: Sequence[str] | None = None, metric: str | None = None, step: int | None = None
    ) -> go.Figure:
        """Draw each trial with a score as a line through its parameters to that score."""
        return as_figure(draw_parallel_coordinates(self._seen(metric, step), params))

    def slices(
        self, params: Sequence[str] | None = None, metric: str | None = None, step: int | None = None
    ) -> go.Figure:
        """Draw the score against each parameter."""
        return as_figure(draw_slices(self._seen(metric, step), params))

    def contour(self, x: str, y: str, metric: str | None = None, step: int | None = None) -> go.Figure:
        """Draw a map of the score over two parameters."""
        return as_figure(draw_contour(self._seen(metric, step), x, y))

    def importance(self, metric: str | None = None, step: int | None = None) -> go.Figure:
        """Draw how much each parameter matters."""
        return as_figure(draw_importance(self._seen(metric, step)))

    def pareto(self, first: str, second: str, direction: Mapping[str, Direction] | None = None) -> go.Figure:
        """Draw two metrics against each other; `direction` says which way each is better."""
        return as_figure(draw_pareto(self._record, first, second, direction))

    def timeline(self) -> go.Figure:
        """Draw what each worker did when, and when it had nothing to do."""
        return as_figure(draw_timeline(self._record))

    def ablation(self, confidence: float = 0.95) -> go.Figure:
        """Draw what is lost without each component of an ablation."""
        return as_figure(draw_ablation(self._record, confidence))

    def _seen(self, metric: str | None, step: int | None) -> ExperimentRecord:
        seen = seen_by(self._record, metric)
        return seen if step is None else seen_at(seen, step)


def as_figure(spec: Spec) -> go.Figure:
    """Turn a figure's data into an object of Plotly.

    Raises:
        MissingLibraryError: If Plotly is not installed; says how to install it.
    """
    try:
        import plotly.graph_objects as go  # noqa: PLC0415 - optional, and only for who looks at figures
    except ImportError as error:
        raise _missing() from error
    return go.Figure(spec)


def plotly_script() -> str:
    """Return Plotly's own script as it lies in the installed package, for pages that load nothing from elsewhere."""
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional, and only for who writes pages
    except ImportError as error:
        raise _missing() from error
    return str(get_plotlyjs())


def _missing() -> MissingLibraryError:
    return MissingLibraryError(
        'figures are drawn by Plotly, which is not installed; install it with: pip install "cargobike[plot]"'
    )
