"""Maggy's optimizers."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.abstractoptimizer import AbstractOptimizer
from cargobike.compat.maggy.optimizer.asha import Asha
from cargobike.compat.maggy.optimizer.bayes import GP, TPE
from cargobike.compat.maggy.optimizer.gridsearch import GridSearch
from cargobike.compat.maggy.optimizer.randomsearch import RandomSearch
from cargobike.compat.maggy.optimizer.singlerun import SingleRun

__all__ = ["GP", "TPE", "AbstractOptimizer", "Asha", "GridSearch", "RandomSearch", "SingleRun"]
