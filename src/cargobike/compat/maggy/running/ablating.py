"""Maggy's ablation studies as ablations of ours."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from cargobike import experiment
from cargobike.compat.maggy.ablation.ablationstudy import AblationStudy
from cargobike.compat.maggy.ablation.ablator import LOCO, AbstractAblator
from cargobike.compat.maggy.ablation.ablator.loco import NOTHING
from cargobike.compat.maggy.config import AblationConfig
from cargobike.compat.maggy.core.exceptions import NotSupportedError
from cargobike.compat.maggy.core.reporter import Reporter
from cargobike.compat.maggy.running.calling import REPORTER, USUAL_KEYS, read_returned
from cargobike.compat.maggy.running.results import as_dict
from cargobike.compat.maggy.running.translated import as_theirs
from cargobike.compat.maggy.trial import Trial
from cargobike.compat.placing import placement
from cargobike.core.errors import InvalidInputError
from cargobike.optimizers import Ablation

FEATURE: Final = "ablated_feature"
LAYER: Final = "ablated_layer"
_MOST_TRIALS: Final = 10_000


class Ablated:
    """A train function that is told what was left out, and gets the functions that make data and model without it.

    Args:
        function: The user's function.
        makers: `dataset_function` and `model_function` of each trial, by what it leaves out.
        objects: What the configuration holds besides.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        makers: Mapping[tuple[str, str], Mapping[str, Any]],
        objects: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._makers = dict(makers)
        self._objects = dict(objects)
        self._names = tuple(inspect.signature(function).parameters)
        self.__signature__ = inspect.signature(self._parameters)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "__signature__"}

    def _parameters(self, ablated_feature: str, ablated_layer: str) -> None:
        """Have the parameters that trials have."""

    def __call__(self, ablated_feature: str, ablated_layer: str) -> Any:
        """Call the user's function."""
        left_out = {FEATURE: ablated_feature, LAYER: ablated_layer}
        trial_id = Trial(dict(left_out), "ablation").trial_id
        given = {
            **self._objects,
            **self._makers[ablated_feature, ablated_layer],
            **left_out,
            REPORTER: Reporter(USUAL_KEYS[0], trial_id),
        }
        arguments = {name: given[name] for name in self._names if name in given}
        return read_returned(self._function(**arguments), USUAL_KEYS[0])


def run_ablation(train_fn: Callable[..., Any], config: AblationConfig, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Run an ablation study, and return what Maggy returned.

    `repeats=3`, one of our own arguments, runs it three times with other seeds: `experiment.load(…).ablation()` then
    says which differences are clear.
    """
    if not isinstance(config.ablation_study, AblationStudy):
        raise InvalidInputError(f"ablation_study={config.ablation_study!r}: give a maggy.ablation.AblationStudy.")
    ablator = _ablator(config)
    trials = _trials(ablator)
    makers = {
        (trial.params[FEATURE], trial.params[LAYER]): {
            name: value for name, value in trial.params.items() if name not in (FEATURE, LAYER)
        }
        for trial in trials
    }
    called = Ablated(train_fn, makers, {"model": config.model, "dataset": config.dataset})
    said = {"name": config.name, "description": config.description, "metric": USUAL_KEYS[0], **placement(ours)}
    direction = (config.direction or "max").lower()
    repeats = said.pop("repeats", 1)
    changes = {_words(*pair): _change(*pair) for pair in makers if pair != (NOTHING, NOTHING)}
    if (NOTHING, NOTHING) in makers and changes:
        study = Ablation({FEATURE: NOTHING, LAYER: NOTHING}, changes, repeats=repeats)
        result = experiment.launch(called, optimizer=study, direction=_read_direction(direction), **said)
    else:
        listed = [{FEATURE: feature, LAYER: layer} for feature, layer in makers]
        result = experiment.launch(called, listed, direction=_read_direction(direction), repeats=repeats, **said)
    finished = [as_theirs(trial) for trial in result.trials]
    ablator.final_store.extend(trial for trial in finished if trial.status == Trial.FINALIZED)
    ablator.finalize_experiment(finished)
    return as_dict(result, direction, "ablation")


def _ablator(config: AblationConfig) -> AbstractAblator:
    given = config.ablator
    if isinstance(given, str):
        if given.lower() != "loco":
            raise NotSupportedError("ablator", given, "Use 'loco', or an AbstractAblator of your own.")
        return LOCO(config.ablation_study)
    if isinstance(given, type) and issubclass(given, AbstractAblator):
        return given(config.ablation_study, [])
    if not isinstance(given, AbstractAblator):
        raise InvalidInputError(
            f"ablator={given!r}: give 'loco', or an instance of maggy.ablation.ablator.AbstractAblator."
        )
    return given


def _trials(ablator: AbstractAblator) -> list[Trial]:
    """Return all trials of an ablator."""
    ablator.initialize()
    trials: list[Trial] = []
    while len(trials) < _MOST_TRIALS and (trial := ablator.get_trial()) is not None:
        for name in (FEATURE, LAYER):
            trial.params[name] = str(trial.params.get(name) or NOTHING)
        trials.append(trial)
    if not trials:
        raise InvalidInputError(f"The ablator {ablator.name()} has made no trials.")
    return trials


def _words(feature: str, layer: str) -> str:
    parts = [f"feature {feature}"] if feature != NOTHING else []
    parts += [layer if " " in layer else f"layer {layer}"] if layer != NOTHING else []
    return " + ".join(parts)


def _change(feature: str, layer: str) -> dict[str, str]:
    left_out = {FEATURE: feature, LAYER: layer}
    return {name: value for name, value in left_out.items() if value != NOTHING}


def _read_direction(direction: str) -> Any:
    if direction not in ("max", "min"):
        raise InvalidInputError(f"direction={direction!r}; allowed are 'max' and 'min'.")
    return direction
