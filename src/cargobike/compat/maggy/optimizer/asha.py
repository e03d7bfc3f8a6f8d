"""Maggy's ASHA, with ranks in the right direction and at most as many trials as were asked for."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.core.errors import InvalidInputError
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.budgeted import Budgeted, halving_bracket

__all__ = ["Asha"]


class Asha(BuiltIn):
    """Asynchronous successive halving.

    A function with a parameter `budget` (or `hparams`, in which it is) is told how long to train, and the best are run
    again with more. A function without one that broadcasts is stopped or goes on by what it broadcasts:
    `cargobike.optimizers.ASHA`.

    Args:
        reduction_factor: One in so many goes on.
        resource_min: The smallest budget.
        resource_max: The largest budget.
    """

    def __init__(self, reduction_factor: int = 2, resource_min: int = 1, resource_max: int = 4) -> None:
        super().__init__()
        mistakes = [
            f"{name}={value!r} must be a whole number of at least {least}"
            for name, value, least in (
                ("reduction_factor", reduction_factor, 2),
                ("resource_min", resource_min, 1),
                ("resource_max", resource_max, 1),
            )
            if type(value) is not int or value < least
        ]
        if not mistakes and resource_min >= resource_max:
            mistakes.append(f"resource_min={resource_min} must be less than resource_max={resource_max}")
        if mistakes:
            raise InvalidInputError("Asha cannot be made:", mistakes)
        self.reduction_factor = reduction_factor
        self.resource_min = resource_min
        self.resource_max = resource_max

    def own(self) -> ASHA:
        """Return the one of ours that looks at what a function broadcasts."""
        return ASHA(self.reduction_factor, self.resource_min, self.resource_max)

    def budgeted(self, num_trials: int) -> Budgeted:
        """Return the one of ours that tells a function how long to train."""
        bracket = halving_bracket(num_trials, self.reduction_factor, self.resource_min, self.resource_max)
        return Budgeted([bracket], self.reduction_factor)
