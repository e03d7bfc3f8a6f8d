"""Maggy's Bayesian optimizers."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.bayes.gp import GP
from cargobike.compat.maggy.optimizer.bayes.tpe import TPE

__all__ = ["GP", "TPE"]
