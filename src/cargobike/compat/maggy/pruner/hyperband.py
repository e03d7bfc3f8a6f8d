"""Maggy's Hyperband pruner: which budgets there are, and how many trials get each."""

from __future__ import annotations

from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.search.models.sampler import Sampler
from cargobike.search.optimizers.budgeted import Budgeted, hyperband_brackets

__all__ = ["Hyperband"]


class Hyperband:
    """Hyperband's budgets; `RandomSearch(pruner="hyperband", pruner_kwargs={…})` and `TPE(…)` search with them.

    Args:
        min_budget: The smallest budget.
        max_budget: The largest budget.
        eta: One in so many goes on.
        n_iterations: How many courses of halving there are.
        **others: What Maggy passed inside.
    """

    def __init__(self, min_budget: int, max_budget: int, eta: int, n_iterations: int, **others: Any) -> None:
        mistakes = []
        if not min_budget > 0:
            mistakes.append(f"expected min_budget > 0, got {min_budget!r}")
        if min_budget >= max_budget:
            mistakes.append(f"max_budget={max_budget!r} needs to be larger than min_budget={min_budget!r}")
        if eta < 2:
            mistakes.append(f"expected eta greater or equal to 2, got {eta!r}")
        if n_iterations < 1:
            mistakes.append(f"expected n_iterations of at least 1, got {n_iterations!r}")
        if mistakes:
            raise InvalidInputError("Hyperband cannot be made:", mistakes)
        self.min_budget = min_budget
        self.max_budget = max_budget
        self.eta = eta
        self.n_iterations = n_iterations

    @property
    def budgets(self) -> list[int]:
        """All budgets, the smallest first."""
        return list(self.budgeted().budgets)

    def num_trials(self) -> int:
        """Return how many trials there will be, longer ones included."""
        return int(self.budgeted().preset_num_trials or 0)

    def budgeted(self, sampler: Sampler | None = None) -> Budgeted:
        """Return the optimizer of ours that searches with these budgets."""
        brackets = hyperband_brackets(self.min_budget, self.max_budget, self.eta, self.n_iterations)
        return Budgeted(brackets, self.eta, sampler=sampler)

    def pruning_routine(self) -> Any:
        """Say that optimizers of users choose budgets themselves.

        Raises:
            InvalidInputError: Always.
        """
        raise InvalidInputError(
            "pruning_routine is not there: a pruner works with RandomSearch and TPE. An optimizer of your own gives "
            "budgets itself: create_trial(hparams, 'promoted', run_budget=9)."
        )
