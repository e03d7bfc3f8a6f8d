"""Maggy's TPE."""

from __future__ import annotations

from typing import Any

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.core.registering.lazy import load
from cargobike.search.models.sampler import ModelSampler, Sampler
from cargobike.search.optimizers.optimizer import AbstractOptimizer as Own

__all__ = ["TPE"]


class TPE(BuiltIn):
    """The tree-structured Parzen estimator; `cargobike.optimizers.TPE`, or with a pruner what BOHB samples with.

    Args:
        gamma: Ours chooses by itself how many trials count as good.
        n_samples: How many draws compete for each suggestion.
        bw_estimation: Ours estimates bandwidths by itself.
        bw_factor: As `bw_estimation`.
        num_warmup_trials: How many trials come before the model.
        random_fraction: With a pruner: how often the model is not asked.
        **others: What else Maggy's had; a pruner as in `RandomSearch`.
    """

    def __init__(
        self,
        gamma: float = 0.15,
        n_samples: int = 24,
        bw_estimation: str = "normal_reference",
        bw_factor: float = 3,
        num_warmup_trials: int = 15,
        random_fraction: float = 0.33,
        **others: Any,
    ) -> None:
        super().__init__(pruner=others.get("pruner"), pruner_kwargs=others.get("pruner_kwargs"))
        self.n_samples = n_samples
        self.num_warmup_trials = num_warmup_trials
        self.random_fraction = random_fraction

    def own(self) -> Own:
        """Return the TPE of ours."""
        made: Own = load("cargobike.optimizers:TPE")(startup=self.num_warmup_trials, candidates=self.n_samples)
        return made

    def sampler(self) -> Sampler:
        """Return the model that fills the brackets of a pruner."""
        return ModelSampler(random_share=self.random_fraction, startup=self.num_warmup_trials)
