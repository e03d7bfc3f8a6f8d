"""Rules that end running trials early: for `early_stop=`, next to any optimizer.

Example:
    >>> from cargobike.stop_rules import MedianRule, TargetReached
    >>> rules = [MedianRule(warmup_steps=3), TargetReached(0.95)]
"""

from __future__ import annotations

from cargobike.core.records import Decision
from cargobike.search.rules.stop_rule import EndRule, StopRule
from cargobike.search.rules.stop_rules import MedianRule, PatienceRule, PercentileRule, TargetReached

__all__ = ["Decision", "EndRule", "MedianRule", "PatienceRule", "PercentileRule", "StopRule", "TargetReached"]
