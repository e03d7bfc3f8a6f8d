"""BOHB: Hyperband's brackets, filled by a model instead of by chance."""

from __future__ import annotations

from typing import ClassVar

from cargobike.search.models.sampler import ModelSampler
from cargobike.search.optimizers.asha import Variant
from cargobike.search.optimizers.hyperband import Hyperband


class BOHB(Hyperband):
    """Asynchronous Hyperband whose new trials come from a model of those that did well.

    Use it for functions that report and take long: short training of many trials finds the region, long training
    of few confirms it. With fewer trials than some dozen the model has no say, and it is Hyperband.

    Args:
        reduction_factor: One in so many goes on from each rung.
        resource_min: Where the first rung of bracket 0 is; see `ASHA` for the unit.
        resource_max: Where the function ends; learned from the first trial that completes if not given.
        variant: `"promotion"`, `"stopping"`, or `"auto"`: promotion if the function saves checkpoints.
        random_share: How often a new trial is not left to the model, in case short training misleads it.
    """

    name: ClassVar[str] = "bohb"

    def __init__(
        self,
        reduction_factor: float = 3,
        resource_min: int = 1,
        resource_max: int | None = None,
        *,
        variant: Variant = "auto",
        random_share: float = 0.1,
    ) -> None:
        super().__init__(
            reduction_factor, resource_min, resource_max, variant=variant, sampler=ModelSampler(random_share)
        )
        self.random_share = random_share
