"""Leave one component out: the whole model first, then once without each part."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from cargobike.compat.maggy.ablation.ablator.abstractablator import AbstractAblator
from cargobike.compat.maggy.core.exceptions import BadArgumentsError, NotSupportedError
from cargobike.compat.maggy.running.components import model_without
from cargobike.compat.maggy.trial import Trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load

__all__ = ["LOCO"]

NOTHING: Final = "None"
"""What trials call it that nothing was left out."""


class LOCO(AbstractAblator):
    """One trial with everything, then one for each feature, layer, group and model that the study names."""

    def get_number_of_trials(self) -> int:
        """Return how many trials there are, the one with everything included."""
        layers = self.ablation_study.model.layers
        return (
            1
            + len(self.ablation_study.features.included_features)
            + len(layers.included_layers)
            + len(layers.included_groups)
            + len(self.ablation_study.model.custom_model_generators)
        )

    def get_dataset_generator(self, ablated_feature: str | None = None, dataset_type: str = "tfrecord") -> Any:
        """Return the study's own generator, or one that reads the training dataset without a feature."""
        study = self.ablation_study
        if study.custom_dataset_generator:
            return study.custom_dataset_generator
        if dataset_type != "tfrecord":
            raise NotSupportedError("dataset type", dataset_type, "Write your own dataset generator.")
        if not study.hops_training_dataset_name or not study.label_name:
            raise InvalidInputError(
                "An ablation study needs the name of a training dataset and of its label, or a dataset generator."
            )
        return functools.partial(
            _rows_of,
            study.hops_training_dataset_name,
            study.hops_training_dataset_version,
            study.label_name,
            ablated_feature,
        )

    def get_model_generator(self, layer_identifier: Any = None, custom_model_generator: Any = None) -> Any:
        """Return what makes the model without a layer or a group of them, or another model.

        Args:
            layer_identifier: The name of a layer, or a set: several names, or one that is a prefix.
            custom_model_generator: A pair of what makes another model, and its name.
        """
        if layer_identifier is not None and custom_model_generator is not None:
            raise BadArgumentsError("get_model_generator", "Give a layer or a custom model, not both.")
        if custom_model_generator is not None:
            return custom_model_generator[0]
        base = self.ablation_study.model.base_model_generator
        if layer_identifier is None:
            return base
        if base is None:
            raise InvalidInputError("A layer is to be left out: say of what, model.set_base_model_generator(function).")
        return functools.partial(model_without, base, _as_identifier(layer_identifier))

    def initialize(self) -> None:
        """Prepare all trials, the one with everything first."""
        study = self.ablation_study
        model = study.model
        parts: list[dict[str, Any]] = [{}]
        parts += [{"ablated_feature": feature} for feature in study.features.included_features]
        parts += [{"layer_identifier": layer} for layer in model.layers.included_layers]
        parts += [{"layer_identifier": set(group)} for group in model.layers.included_groups]
        parts += [{"custom_model_generator": custom} for custom in model.custom_model_generators]
        self.trial_buffer = [Trial(self.create_trial_dict(**part), trial_type="ablation") for part in parts]

    def get_trial(self, ablation_trial: Trial | None = None) -> Trial | None:
        """Return the next trial, `None` if there is none left."""
        return self.trial_buffer.pop(0) if self.trial_buffer else None

    def finalize_experiment(self, trials: list[Trial]) -> None:
        """Do nothing."""

    def create_trial_dict(
        self,
        ablated_feature: str | None = None,
        layer_identifier: Any = None,
        custom_model_generator: tuple[Callable[[], Any], str] | None = None,
    ) -> dict[str, Any]:
        """Return the parameters of a trial: what makes its data and its model, and what was left out."""
        layer = NOTHING
        if custom_model_generator is not None:
            layer = f"Custom model: {custom_model_generator[1]}"
        elif isinstance(layer_identifier, str):
            layer = layer_identifier
        elif layer_identifier is not None:
            names = sorted(layer_identifier)
            layer = str(names) if len(names) > 1 else f"Layers prefixed {names[0]}"
        return {
            "dataset_function": self.get_dataset_generator(ablated_feature),
            "model_function": self.get_model_generator(layer_identifier, custom_model_generator),
            "ablated_feature": ablated_feature or NOTHING,
            "ablated_layer": layer,
        }


def _rows_of(*arguments: Any, **named: Any) -> Any:
    """Read a training dataset; only this needs what reads tables."""
    return load("cargobike.compat.maggy.running.training_rows:rows_of")(*arguments, **named)


def _as_identifier(given: Any) -> str | tuple[str, ...]:
    return given if isinstance(given, str) else tuple(sorted(given))
