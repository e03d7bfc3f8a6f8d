"""Optuna's samplers behind our interface: Gaussian processes, CMA-ES, NSGA-II, and samplers of your own.

Optuna is an optional extra, imported when such an optimizer is set up. It keeps an in-memory study of its own, which
knows every trial: finished, failed and still running.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial, TrialState
from cargobike.search.models.standing import loss_of
from cargobike.search.optimizers.optimizer import Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.parameter import Parameter

_TRIES = 5
"""Repeated combinations of a finite space that are passed over before a random one takes their place."""


class OptunaOptimizer(RandomSearch):
    """Lets an Optuna sampler decide.

    Everything is minimized, on columns from 0 to 1, so that scales and directions are ours. Conditions are respected:
    the sampler is asked only for parameters that exist. What breaks constraints is moved to where they hold. Trials
    that still run stay running in the study, so samplers that know what to do about them do it. Failed trials are told
    as failed, stopped ones as pruned.

    Args:
        sampler: An Optuna sampler, or a function that makes one from a seed, which keeps the experiment repeatable:
            `OptunaOptimizer(lambda seed: optuna.samplers.TPESampler(seed=seed))`.
    """

    name: ClassVar[str] = ""
    handles_objectives: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("optuna",)
    """Libraries without which it cannot work."""

    def __init__(self, sampler: Any) -> None:
        super().__init__()
        self._given = sampler
        self._load()

    @property
    def settings(self) -> Mapping[str, object]:
        """What it was made with: the sampler, unless the class brings its own."""
        return {"sampler": self._given} if type(self) is OptunaOptimizer else super().settings

    def initialize(self) -> None:
        """Begin an empty study."""
        super().initialize()
        optuna = self._load()
        seed = self.rng.getrandbits(31)
        # A sampler is an object with methods; what can be called makes one.
        sampler = self._given(seed) if callable(self._given) else self._given
        self._by = {"by": type(sampler).__name__, "optuna": optuna.__version__}
        self._states = optuna.trial.TrialState
        directions = ["minimize"] * max(1, len(self.objectives))
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it announces every new study
        self._study = optuna.create_study(sampler=sampler, directions=directions)
        optuna.logging.set_verbosity(verbosity)
        self._asked: dict[int, tuple[Any, Params]] = {}
        self._worst: list[float] = []

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return what the sampler wants to try, or `None` when a finite space is used up."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        if self._size is not None and len(self._tried) >= self._size:
            return None
        for _ in range(_TRIES):
            asked, params = self._ask()
            if self._remember(params):
                return self._suggest(asked, params)
            self._study.tell(asked, state=self._states.FAIL)
        drawn = self._draw()
        if drawn is None:
            return None
        self._enqueue(drawn)
        return self._suggest(*self._ask_anywhere())

    def observe(self, trial: Trial) -> None:
        """Tell the study how a trial ended; one that paused is still running there."""
        if not trial.state.is_final:
            return
        losses = self._losses(trial)
        asked, params = self._asked.pop(trial.info.get("trial", -1), (None, None))
        if params != trial.params:
            # A trial that was not suggested here, or a start point that replaced a suggestion.
            if asked is not None:
                self._study.tell(asked, state=self._states.FAIL)
            self._add(trial, losses)
        elif losses is not None:
            self._study.tell(asked, losses)
        else:
            was_stopped = trial.state is TrialState.STOPPED
            self._study.tell(asked, state=self._states.PRUNED if was_stopped else self._states.FAIL)

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Add trials of earlier experiments to the study."""
        super().learn_from(trials)
        for trial in trials:
            self._add(trial, self._losses(trial))

    def _load(self) -> Any:
        missing = [library for library in self.needs if importlib.util.find_spec(library) is None]
        if missing:
            raise InvalidInputError(
                f"the optimizer {self.name or type(self).__name__} needs {', '.join(missing)}, which is not installed; "
                f"pip install 'cargobike[optuna]'{' torch' if 'torch' in missing else ''}"
            )
        import optuna  # noqa: PLC0415 - optional, and takes most of a second to import

        return optuna

    def _ask(self) -> tuple[Any, Params]:
        """Ask the sampler for a trial; where it breaks constraints, for the nearest place found that keeps them."""
        asked, params = self._ask_anywhere()
        if self.space.contains(params):
            return asked, params
        self._study.tell(asked, state=self._states.FAIL)
        units = [self.space[name].to_unit(params[name]) if name in params else None for name in self.space.names]
        self._enqueue(self.space.from_unit(units))
        return self._ask_anywhere()

    def _enqueue(self, params: Params) -> None:
        self._study.enqueue_trial({name: _place(self.space[name], value) for name, value in params.items()})

    def _ask_anywhere(self) -> tuple[Any, Params]:
        """Ask the sampler for one parameter after the other, as conditions bring them up."""
        asked = self._study.ask()
        known: Params = {}
        while new := [name for name in self.space.active_names(known) if name not in known]:
            for name in new:
                parameter = self.space[name]
                known[name] = parameter.from_unit(_unit(parameter, _column(asked, parameter)))
        return asked, {name: known[name] for name in self.space.names if name in known}

    def _suggest(self, asked: Any, params: Params) -> Suggestion:
        self._asked[asked.number] = (asked, params)
        self._suggested += 1
        return Suggestion(params=dict(params), info={**self._by, "trial": asked.number})

    def _losses(self, trial: Trial) -> list[float] | None:
        """Return what to minimize; breaking constraints is worse than the worst trial that keeps them."""
        if trial.state is not TrialState.COMPLETED:
            return None
        if self.objectives:
            losses = [loss_of(trial.metrics.get(name, math.nan), way) for name, way in self.objectives.items()]
        else:
            losses = [loss_of(math.nan if trial.value is None else trial.value, self.direction)]
        if not all(map(math.isfinite, [*losses, trial.violation])):
            return None
        if trial.violation > 0:
            return [worst + trial.violation for worst in self._worst or losses]
        self._worst = [max(pair) for pair in zip(losses, self._worst or losses, strict=True)]
        return losses

    def _add(self, trial: Trial, losses: list[float] | None) -> None:
        """Make a trial that the sampler did not suggest known to it."""
        if losses is None or not self.space.contains(trial.params):
            return
        params = self.space.validate(trial.params)
        self._remember(params)
        optuna = self._load()
        # Added as it is: asking for it would make the sampler think about a trial that is over.
        self._study.add_trial(
            optuna.trial.create_trial(
                params={name: _place(self.space[name], value) for name, value in params.items()},
                distributions={name: _distribution(optuna, self.space[name]) for name in params},
                values=losses,
            )
        )


def _count(parameter: Parameter) -> int | None:
    """Return how many even cells a parameter has; lattices on a stretched scale have uneven ones."""
    return None if parameter.is_range and parameter.scale != "linear" else parameter.count


def _column(asked: Any, parameter: Parameter) -> float:
    """Ask for a place in a parameter's column: a number from 0 to 1, or the number of a cell."""
    count = _count(parameter)
    if count is None:
        return float(asked.suggest_float(parameter.name, 0.0, 1.0))
    if parameter.type == "CATEGORICAL":
        return int(asked.suggest_categorical(parameter.name, range(count)))
    return int(asked.suggest_int(parameter.name, 0, count - 1))


def _distribution(optuna: Any, parameter: Parameter) -> Any:
    """Return what Optuna calls the column that `_column` asks for."""
    count = _count(parameter)
    if count is None:
        return optuna.distributions.FloatDistribution(0.0, 1.0)
    if parameter.type == "CATEGORICAL":
        return optuna.distributions.CategoricalDistribution(range(count))
    return optuna.distributions.IntDistribution(0, count - 1)


def _unit(parameter: Parameter, place: float) -> float:
    count = _count(parameter)
    return place if count is None else (place + 0.5) / count


def _place(parameter: Parameter, value: Any) -> float:
    count = _count(parameter)
    unit = parameter.to_unit(value)
    return unit if count is None else min(int(unit * count), count - 1)


class GaussianProcess(OptunaOptimizer):
    """Optuna's Gaussian process sampler: the fewest trials on smooth functions, a slow think before each.

    Use it for up to a few hundred expensive trials of some numbers, few choices, no conditions.
    """

    name: ClassVar[str] = "gp"
    needs: ClassVar[tuple[str, ...]] = ("optuna", "scipy", "torch")

    def __init__(self) -> None:
        super().__init__(_sampler("GPSampler", warn_independent_sampling=False))


class CMAES(OptunaOptimizer):
    """Optuna's CMA-ES: follows curved valleys of many numbers; choices are drawn at random.

    Use it for thousands of cheap trials of numbers that interact.
    """

    name: ClassVar[str] = "cmaes"
    handles_objectives: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("optuna", "cmaes")

    def __init__(self) -> None:
        super().__init__(_sampler("CmaEsSampler", warn_independent_sampling=False))


class NSGA2(OptunaOptimizer):
    """Optuna's NSGA-II: evolves a front of compromises between several objectives, 50 at a time.

    Use it for thousands of trials; TPE gets further with some hundred.
    """

    name: ClassVar[str] = "nsga2"

    def __init__(self) -> None:
        super().__init__(_sampler("NSGAIISampler"))


def _sampler(name: str, **options: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from optuna import samplers  # noqa: PLC0415 - as above

        if name != "NSGAIISampler":
            options["independent_sampler"] = samplers.RandomSampler(seed=seed)
        return getattr(samplers, name)(seed=seed, **options)

    return make
