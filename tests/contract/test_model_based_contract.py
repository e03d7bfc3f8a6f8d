"""The contract of optimizers, held against those that learn from finished trials."""

from __future__ import annotations

import pytest

from cargobike.search.optimizers.auto import Auto
from cargobike.search.optimizers.bohb import BOHB
from cargobike.search.optimizers.dehb import DEHB
from cargobike.search.optimizers.differential_evolution import DifferentialEvolution
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.optuna_bridge import CMAES, NSGA2, OptunaOptimizer
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.optimizers.tpe import TPE
from cargobike.search.spaces.space import Searchspace
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


class NeedsOptuna(OptimizerContract):
    @pytest.fixture(autouse=True)
    def _optuna(self) -> None:
        pytest.importorskip("optuna")


class TestCMAES(NeedsOptuna):
    def make_optimizer(self) -> AbstractOptimizer:
        return CMAES()


class TestCMAESOfASmallSpace(NeedsOptuna, SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return CMAES()


class TestNSGA2(NeedsOptuna):
    def make_optimizer(self) -> AbstractOptimizer:
        return NSGA2()


class TestGaussianProcess(NeedsOptuna):
    num_trials = 5

    def make_optimizer(self) -> AbstractOptimizer:
        import optuna

        # Its own number of startup trials would leave no trial of this suite to the model.
        return OptunaOptimizer(lambda seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=3))

    def make_space(self) -> Searchspace:
        """A model takes long to think about more."""
        return Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"))


class TestBOHB(OptimizerContract):
    num_trials = 20

    def make_optimizer(self) -> AbstractOptimizer:
        return BOHB(resource_max=5)


class TestBOHBOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return BOHB(resource_max=5)


class TestBOHBStopping(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return BOHB(resource_max=5, variant="stopping")


class TestSobol(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Sobol()


class TestSobolOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return Sobol()


class TestAuto(OptimizerContract):
    num_trials = 20

    def make_optimizer(self) -> AbstractOptimizer:
        return Auto()


class TestAutoWithoutStops(OptimizerContract):
    num_trials = 20

    def make_optimizer(self) -> AbstractOptimizer:
        return Auto(stops_trials=False)


class TestAutoOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return Auto()


class TestDEHB(OptimizerContract):
    num_trials = 20

    def make_optimizer(self) -> AbstractOptimizer:
        return DEHB(resource_max=5, population=4)


class TestDEHBOfASmallSpace(SmallSpace):
    def make_optimizer(self) -> AbstractOptimizer:
        return DEHB(resource_max=5, variant="stopping")
