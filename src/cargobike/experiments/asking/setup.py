"""An experiment whose names have become objects, whether it was just asked for or is taken up again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cargobike.core.asked import Asked
from cargobike.core.records import Direction, Params, Trial
from cargobike.experiments.scheduling.plan import Plan
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.rules.stop_rule import EndRule, StopRule
from cargobike.search.spaces.space import Searchspace

_MOST_AHEAD = 64


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What resolution makes of a call, and what a recipe brings back.

    Attributes:
        asked: The record, with nothing left open.
        space: What may be tried.
        names: The parameters that trials may have.
        optimizer: As it was before its first question.
        stop_rules: What may end running trials early.
        start_points: What is tried first: points that were given, then the best of earlier experiments.
        past: Trials of earlier experiments that the optimizer learns from.
    """

    asked: Asked
    space: Searchspace
    names: tuple[str, ...]
    optimizer: AbstractOptimizer
    stop_rules: tuple[StopRule, ...] = ()
    start_points: tuple[Params, ...] = ()
    past: tuple[Trial, ...] = ()

    @property
    def direction(self) -> Direction:
        """Whether large values are good, or small ones."""
        return self.asked.aim.direction or "max"

    @property
    def judged_by_reports(self) -> bool:
        """Whether what was chosen compares running trials: it cannot without the objective in their reports."""
        return self.optimizer.needs_reports or self._rules_judge

    @property
    def _rules_judge(self) -> bool:
        return any(getattr(rule, "judges_steps", True) for rule in self.stop_rules)

    @property
    def _may_give_ahead(self) -> bool:
        """Whether workers may have trials before they need them: it makes no difference to any trial which come next.

        Not for a class that extends an optimizer which does not learn, unless it says so for itself.
        """
        place = self.asked.placement
        learns = vars(type(self.optimizer)).get("learns", True)
        is_plain = (place.gang.size or 1) == 1 and not place.gang.is_distributed and not place.gang.servers
        return place.isolation == "reuse" and is_plain and not learns and not self.asked.search.deterministic

    def plan(self) -> Plan:
        """Return the scheduler's instructions."""
        search, place, limits = self.asked.search, self.asked.placement, self.asked.limits
        gang = place.gang
        return Plan(
            workers=place.workers or 1,
            gang=gang.size or 1,
            least_gang=gang.least,
            servers=gang.servers,
            roles=gang.roles,
            is_distributed=gang.is_distributed,
            stall_timeout_s=limits.stall_timeout_s,
            num_trials=search.num_trials,
            ask_ahead=0 if place.workers == 0 else 1,
            ahead=_MOST_AHEAD if self._may_give_ahead else 0,
            seed=search.seed or 0,
            deterministic=search.deterministic,
            every_report_is_milestone=self.optimizer.wants_every_report or self._rules_judge,
            max_failures=limits.max_failures,
            fail_fast=0 if self.asked.is_single else 3,
            trial_timeout_s=limits.trial_timeout_s,
            timeout_s=limits.timeout_s,
            reason_to_end=end_of(self.stop_rules, self.direction),
        )


def end_of(rules: Sequence[StopRule], direction: Direction) -> Callable[[Trial], str | None] | None:
    """Return what tells whether a trial that ended is reason enough to end the search; `None` if nothing does."""
    ending = [rule for rule in rules if isinstance(rule, EndRule)]
    if not ending:
        return None
    return lambda trial: next(filter(None, (rule.reason_to_end(trial, direction) for rule in ending)), None)
