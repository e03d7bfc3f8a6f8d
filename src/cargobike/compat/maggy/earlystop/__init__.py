"""Maggy's rules for stopping trials early."""

from __future__ import annotations

from cargobike.compat.maggy.earlystop.abstractearlystop import AbstractEarlyStop
from cargobike.compat.maggy.earlystop.medianrule import MedianStoppingRule
from cargobike.compat.maggy.earlystop.nostop import NoStoppingRule

__all__ = ["AbstractEarlyStop", "MedianStoppingRule", "NoStoppingRule"]
