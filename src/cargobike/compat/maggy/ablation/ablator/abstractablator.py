"""Maggy's interface for ablators that users have written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from cargobike.compat.maggy.ablation.ablationstudy import AblationStudy
from cargobike.compat.maggy.trial import Trial

__all__ = ["AbstractAblator"]


class AbstractAblator(ABC):
    """Makes the trials of a study.

    Each trial's parameters hold `dataset_function` and `model_function`, which the train function gets, and
    `ablated_feature` and `ablated_layer`, which say what was left out. All trials are
    asked for before the first starts.

    Args:
        ablation_study: The study.
        final_store: Where finished trials go.
    """

    def __init__(self, ablation_study: AblationStudy, final_store: list[Trial] | None = None) -> None:
        self.ablation_study = ablation_study
        self.final_store: list[Trial] = [] if final_store is None else final_store
        self.trial_buffer: list[Trial] = []

    @abstractmethod
    def get_number_of_trials(self) -> int:
        """Return how many trials there are."""

    @abstractmethod
    def get_dataset_generator(self, ablated_feature: str | None = None, dataset_type: str = "tfrecord") -> Any:
        """Return what makes the data without a feature."""

    @abstractmethod
    def get_model_generator(self, ablated_layer: Any = None) -> Any:
        """Return what makes the model without a layer."""

    @abstractmethod
    def initialize(self) -> None:
        """Prepare the trials."""

    @abstractmethod
    def get_trial(self, ablation_trial: Trial | None = None) -> Trial | None:
        """Return the next trial, `None` if there is none left."""

    @abstractmethod
    def finalize_experiment(self, trials: list[Trial]) -> None:
        """Look back once, when all trials have ended."""

    def name(self) -> str:
        """Return what it is called in records."""
        return type(self).__name__
