"""Maggy's early-stop policies as stop rules of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cargobike.compat.maggy.earlystop import AbstractEarlyStop, MedianStoppingRule, NoStoppingRule
from cargobike.compat.maggy.running.translated import as_theirs, update
from cargobike.compat.maggy.trial import Trial as TheirTrial
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Decision, Direction, Trial, TrialState

_ENDED = (TrialState.COMPLETED, TrialState.STOPPED)


class PolicyError(InvalidInputError, TypeError):
    """What was given is no early-stop policy: Maggy raised a TypeError."""


class Checked(TheirTrial):
    """A trial that is asked about: the trial, as since 0.2, and the dict with it alone, as in 0.1."""

    def items(self) -> list[tuple[str, TheirTrial]]:
        """Return its id and itself."""
        return [(self.trial_id, self)]

    def keys(self) -> list[str]:
        """Return its id."""
        return [self.trial_id]

    def values(self) -> list[TheirTrial]:
        """Return itself."""
        return [self]

    def __getitem__(self, trial_id: str) -> TheirTrial:
        if trial_id != self.trial_id:
            raise KeyError(trial_id)
        return self

    def __iter__(self) -> Iterator[str]:
        return iter([self.trial_id])

    def __len__(self) -> int:
        return 1


class Policy:
    """A policy of Maggy's as a stop rule.

    Args:
        policy: The class or object with `earlystop_check`.
        es_min: It is asked when more trials than this have ended.
        es_interval: It is asked at steps that this divides, but for step 0.
    """

    def __init__(self, policy: Any, es_min: int, es_interval: int) -> None:
        self.policy = policy
        self.es_min = es_min
        self.es_interval = es_interval

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Ask the policy, if it is time to."""
        if step == 0 or step % self.es_interval:
            return Decision.CONTINUE
        ended = [other for other in trials if other.state in _ENDED and other.number != trial.number]
        if len(ended) <= self.es_min:
            return Decision.CONTINUE
        checked = Checked(dict(trial.params))
        update(checked, trial)
        check: Callable[..., Any] = self.policy.earlystop_check
        answer = check(checked, [as_theirs(other) for other in ended], direction)
        chosen = [answer] if isinstance(answer, str | TheirTrial) else list(answer or ())
        ids = {one.trial_id if isinstance(one, TheirTrial) else one for one in chosen}
        return Decision.STOP if checked.trial_id in ids else Decision.CONTINUE


def rules_of(es_policy: Any, es_min: int, es_interval: int) -> list[Policy]:
    """Return the stop rules that a policy stands for.

    Raises:
        PolicyError: If it is no policy.
    """
    named = {"median": MedianStoppingRule, "none": NoStoppingRule}
    policy = named.get(es_policy.lower()) if isinstance(es_policy, str) else es_policy
    if policy is None and es_policy is None:
        return []
    is_policy = isinstance(policy, AbstractEarlyStop) or (
        inspect.isclass(policy) and issubclass(policy, AbstractEarlyStop)
    )
    if not is_policy:
        raise PolicyError(
            f"es_policy={es_policy!r}: give 'median', 'none', or an early-stop policy that is a subclass of "
            "maggy.earlystop.AbstractEarlyStop."
        )
    if type(es_interval) is not int or es_interval < 1 or type(es_min) is not int or es_min < 0:
        raise InvalidInputError(
            f"es_interval={es_interval!r} must be a whole number of at least 1, es_min={es_min!r} one of at least 0."
        )
    if policy is NoStoppingRule or isinstance(policy, NoStoppingRule):
        return []
    return [Policy(policy, es_min, es_interval)]
