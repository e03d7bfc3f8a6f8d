"""The contract of optimizers, held against those that learn from finished trials."""

from __future__ import annotations

from cargobike.search.differential_evolution import DifferentialEvolution
from cargobike.search.optimizer import AbstractOptimizer
from cargobike.search.space import Searchspace
from cargobike.search.tpe import TPE
from cargobike.testing.optimizers import OptimizerContract


class SmallSpace(OptimizerContract):
    """A space that is used up before all trials asked for are made."""

    def make_space(self) -> Searchspace:
        return Searchspace(a=("INTEGER", [1, 3]), b=["x", "y"])


class TestTPE(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return TPE(startup=4)


class TestTPEOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return TPE(startup=2)


class TestTPEWithoutInteractions(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return TPE(startup=4, multivariate=False)


class TestDifferentialEvolution(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return DifferentialEvolution(population=4)


class TestDifferentialEvolutionOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return DifferentialEvolution(population=4)
