"""Maggy's optimizers, by the name that documents gave the module."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer import GP, TPE, AbstractOptimizer, Asha, GridSearch, RandomSearch, SingleRun

__all__ = ["GP", "TPE", "AbstractOptimizer", "Asha", "GridSearch", "RandomSearch", "SingleRun"]
