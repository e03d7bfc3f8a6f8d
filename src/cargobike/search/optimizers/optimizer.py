"""The optimizer interface: four methods that decide what to try next and what to stop."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias

from cargobike.core.errors import OptimizerError
from cargobike.core.records import IDLE, Decision, Direction, Params, Suggestion, Trial
from cargobike.search.described import settings_of
from cargobike.search.spaces.space import Searchspace

__all__ = ["IDLE", "AbstractOptimizer", "Suggested", "Suggestion", "Trial", "as_suggestion"]

Suggested: TypeAlias = Suggestion | Trial | Params | Literal["IDLE"] | None
"""What `get_suggestion` may return."""


def as_suggestion(answer: object) -> Suggestion:
    """Return what `get_suggestion` answered as a suggestion, in whichever of its forms it came.

    Raises:
        OptimizerError: If it is not a suggestion.
    """
    if isinstance(answer, Trial):
        return Suggestion(params=answer.params, info=answer.info)
    if isinstance(answer, dict):
        return Suggestion(params=answer)
    if not isinstance(answer, Suggestion):
        raise OptimizerError(f"get_suggestion returned {answer!r}, which is not a suggestion")
    return answer


class AbstractOptimizer(ABC):
    """Decides what to try next, and what to stop.

    Guarantees by the driver, on which an implementation may rely:

    - `setup` is called once, then `initialize` once, before anything else.
    - Calls never overlap: an optimizer needs no lock.
    - Every trial that reaches a final state, and every pause, is shown to `observe` exactly once, before the
      next `get_suggestion`. A failed or lost trial is shown too; look at `trial.state`.
    - `get_suggestion` may be called before earlier suggestions have ended (several workers, and one ahead of
      need so that no worker waits for a slow optimizer).
    - After `None` it is not asked again; after `IDLE` it is asked again when something has changed.

    Duties: be deterministic in `self.rng` (never the global `random`) and in the calls seen; treat
    `direction="min"` and the negated objective with `"max"` alike; never change a `Trial` that it was shown.

    Attributes:
        space: What may be tried; set by `setup`.
        num_trials: How many new trials will be asked for, `None` for no limit.
        direction: `"max"` or `"min"`.
        rng: Seeded source of randomness.
        trials: Every trial suggested so far, by number, kept up to date by the driver.
        final_store: Trials in a final state, in the order in which they were shown.
    """

    name: ClassVar[str] = ""
    """Short name under which `optimizer="…"` finds it."""

    judges_steps: bool | None = None
    """Whether `early_check` wants to see every report; `None`: yes if the subclass overrides it."""

    needs_reports: ClassVar[bool] = False
    """Whether it is chosen for comparing trials by their reports: one that lacks the objective is a mistake then."""

    preset_space: Searchspace | None = None
    """A space given to the constructor, as Maggy's users do; used if the experiment itself gives none."""

    preset_num_trials: int | None = None
    """A number of trials given to the constructor; used if the experiment itself gives none."""

    deterministic: bool = False
    """Whether the search must not depend on timing; set by the driver. What `judge` decides may then depend on the
    trial itself and on what was known when it was suggested, not on what else has been judged or shown since."""

    judged_by: str = ""
    """What made the last decision, for optimizers that ask others; by default the name of the class."""

    handles_objectives: ClassVar[bool] = False
    """Whether it can search for several objectives at once; they are then in `objectives`, and `trial.metrics`."""

    objectives: Mapping[str, Direction] = MappingProxyType({})
    """Several objectives with their directions, by metric name; empty for a search after one number."""

    learns: ClassVar[bool] = True
    """Whether what it suggests depends on what became of trials; if not, trials may be handed out before their time."""

    is_endless: ClassVar[bool] = False
    """Whether it goes on for ever unless the number of trials or the time is limited."""

    space: Searchspace
    num_trials: int | None
    direction: Direction
    rng: random.Random
    trials: dict[int, Trial]
    final_store: list[Trial]

    def setup(self, space: Searchspace, *, num_trials: int | None, direction: Direction, seed: int) -> None:
        """Receive what the experiment is about; called by the driver, overriding it is rarely needed."""
        self.space = space
        self.num_trials = self.preset_num_trials if num_trials is None else num_trials
        self.direction = direction
        self.rng = random.Random(seed)
        self.trials = {}
        self.final_store = []

    def count_trials(self, space: Searchspace) -> int | None:
        """Return how many trials it makes of a space if no number is given; `None` if it cannot tell."""
        return self.preset_num_trials

    @abstractmethod
    def initialize(self) -> None:
        """Prepare, now that `space`, `num_trials`, `direction` and `rng` are known."""

    @abstractmethod
    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return what to try next.

        Args:
            trial: The trial whose end made the driver ask, if it was that.

        Returns:
            A `Suggestion`, a `Trial` or a dict of parameters to start a trial; `IDLE` if there is nothing
            just now; `None` if there is nothing any more.
        """

    def learn_from(self, trials: Sequence[Trial]) -> None:  # noqa: B027 - what does not learn need not learn this
        """Learn from trials of earlier experiments, before the first question; they do not count as trials of this one.

        Args:
            trials: Completed and stopped trials whose parameters lie in `space`, with scores in terms of this search.
        """

    def observe(self, trial: Trial) -> None:  # noqa: B027 - most optimizers need none
        """Learn from a trial that ended or paused."""

    def early_check(
        self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: Direction
    ) -> Iterable[Trial | int]:
        """Return those of `to_check` that should stop now.

        Args:
            to_check: Running trials that have just reported.
            trials: All trials that may be compared with.
            direction: `"max"` or `"min"`.
        """
        return ()

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Decide about a trial at a milestone; asks `early_check` unless overridden.

        Args:
            trial: The trial that has just reported `step` and now stands still.
            step: The step it reported.
            trials: All trials that may be compared with.
        """
        chosen = self.early_check([trial], trials, self.direction)
        numbers = {other.number if isinstance(other, Trial) else other for other in chosen or ()}
        return Decision.STOP if trial.number in numbers else Decision.CONTINUE

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:  # noqa: B027 - most need none
        """Look back once, when all trials have ended."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What it was made with, by the names of the constructor's arguments; read from attributes of these names."""
        return settings_of(self)

    @property
    def wants_every_report(self) -> bool:
        """Whether each report is a milestone for this optimizer."""
        if self.judges_steps is not None:
            return self.judges_steps
        return type(self).early_check is not AbstractOptimizer.early_check
