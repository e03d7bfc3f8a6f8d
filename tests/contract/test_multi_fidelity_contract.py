"""The contract of optimizers, held against those that compare trials before they have ended."""

from __future__ import annotations

from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.auto import Auto
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.pbt import PopulationBasedTraining
from cargobike.testing.optimizers import OptimizerContract


class TestASHAThatStops(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return ASHA(variant="stopping")


class TestASHAThatPromotes(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return ASHA(variant="promotion")


class TestASHAThatFindsOut(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return ASHA(reduction_factor=2, resource_max=5)


class TestASHAWithoutTiming(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        optimizer = ASHA(variant="promotion")
        optimizer.deterministic = True
        return optimizer


class TestASHAThatStopsWithoutTiming(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        optimizer = ASHA(variant="stopping")
        optimizer.deterministic = True
        return optimizer


class TestHyperband(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Hyperband(resource_max=5)


class TestHyperbandThatPromotes(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return Hyperband(2, variant="promotion")


class TestAutoThatHalves(OptimizerContract):
    num_trials = 40  # enough for the model, for trials that are compared late, and for what their ends say

    def make_optimizer(self) -> AbstractOptimizer:
        return Auto()


class TestAutoThatHalvesWithoutTiming(OptimizerContract):
    num_trials = 40

    def make_optimizer(self) -> AbstractOptimizer:
        optimizer = Auto()
        optimizer.deterministic = True
        return optimizer


class TestPopulationBasedTraining(OptimizerContract):
    def make_optimizer(self) -> AbstractOptimizer:
        return PopulationBasedTraining(4, interval=2)
