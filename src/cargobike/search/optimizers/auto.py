"""The optimizer that chooses an optimizer: by the space, the budget, and what the function turns out to do."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from cargobike.core.records import Decision, Suggestion, Trial, TrialState
from cargobike.search.models.rungs import Rung, first_point_from
from cargobike.search.models.sampler import AutoSampler
from cargobike.search.optimizers.asha import ASHA, Ladder
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.smooth import is_smooth
from cargobike.search.spaces.space import Searchspace

if TYPE_CHECKING:
    from cargobike.search.models.foresight import Foresight

log = logging.getLogger(__name__)

_WHOLE = 27
"""Spaces of up to so many combinations are tried whole if the number of trials allows it; larger ones are halved."""
_PATIENT_EVERY = 11
"""One new trial in so many is compared late, or never: these tell what becomes of those that others would not be."""
_PATIENT_AT_FIRST = 4
"""So many of the first trials are never compared: foresight begins with ends."""
_ENDS_FIRST = 6
"""So many trials must have ended before the process suggests: what fewer foresee leads it away from slow starters."""
_FIRST_SHARE = 8
"""But no more of either than one in so many of all trials."""
_STAY_AT_FIRST = 0.6
"""Such a share goes on from the first rung, where nothing but a single score is known."""
_STAY_WHERE_ALL_IS_TOLD, _STAY_WHERE_NOTHING_IS = 1 / 3, 2 / 3
"""Such a share goes on from other rungs, by how much of the variance of ends is told there."""


class Auto(AbstractOptimizer):
    """Chooses, and says what and why in the log and in each trial's info.

    - A finite space that fits into the budget is tried whole, once each, spread out.
    - Several objectives are searched by TPE.
    - Anything else is searched with a model. If the function reports, trials are halved as by ASHA and the model
      learns from every level of training; if it also saves checkpoints, trials are paused instead of stopped. If it
      does not report, that is TPE.

    Args:
        num_trials: Used if the experiment gives no number itself.
        searchspace: Used if the experiment gives no space itself.
        stops_trials: Whether trials may be stopped or paused by what they report. Without, as in a search for which no
            optimizer was chosen, every trial runs to its end, and the model learns from final scores alone.

    Attributes:
        choice: What was chosen, as in each trial's info; empty before the first question.
    """

    name: ClassVar[str] = "auto"
    is_endless: ClassVar[bool] = True
    handles_objectives: ClassVar[bool] = True
    judges_steps = False

    def __init__(
        self, num_trials: int | None = None, searchspace: Searchspace | None = None, *, stops_trials: bool = True
    ) -> None:
        self.preset_num_trials = num_trials
        self.preset_space = searchspace
        self.stops_trials = stops_trials

    def initialize(self) -> None:
        """Leave the choice to the first question: until then it may change how many trials there will be."""
        self._chosen: AbstractOptimizer | None = None
        self.choice = ""
        self._past: Sequence[Trial] = ()

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Keep trials of earlier experiments for the optimizer that will be chosen."""
        self._past = trials

    @property
    def chosen(self) -> AbstractOptimizer:
        """The optimizer that was chosen, as far as that can be done before anything has run."""
        if self._chosen is None:
            chosen, self.choice, why = self._choose()
            chosen.deterministic = self.deterministic
            chosen.objectives = self.objectives
            seed = self.rng.getrandbits(32)
            chosen.setup(self.space, num_trials=self.num_trials, direction=self.direction, seed=seed)
            chosen.trials, chosen.final_store = self.trials, self.final_store
            chosen.initialize()
            chosen.learn_from(self._past)
            self._chosen = chosen
            log.info("auto chose %s: %s", self.choice, why)
        # An experiment that is taken up again may be given more trials.
        self._chosen.num_trials = self.num_trials
        return self._chosen

    def _choose(self) -> tuple[AbstractOptimizer, str, str]:
        size = self.space.size
        if size is not None and self.num_trials is not None and size <= min(self.num_trials, _WHOLE):
            return Sobol(), "sobol", f"all {size} combinations fit into {self.num_trials} trials"
        if self.objectives:
            from cargobike.search.optimizers.tpe import TPE  # noqa: PLC0415 - loads NumPy, which most first trials need not

            return TPE(), "tpe", f"there are {len(self.objectives)} objectives"
        if not self.stops_trials:
            return ModelHalving(halves=False), "model", "trials run to their end"
        return ModelHalving(), "model", "halving follows if the function reports"

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return what the chosen optimizer suggests."""
        answer = self.chosen.get_suggestion(trial)
        if isinstance(answer, dict):
            answer = Suggestion(params=answer)
        if isinstance(answer, Suggestion):
            answer.info["auto"] = self.choice
        return answer

    def observe(self, trial: Trial) -> None:
        """Show the trial on, and say what the first one that got anywhere tells about the function."""
        chosen = self.chosen
        may_halve = self.stops_trials and len(trial.curve) > 0
        if self.choice == "model" and (may_halve or trial.state is TrialState.COMPLETED):
            why = "the function does not report" if self.stops_trials else "no trial is to be stopped"
            if not may_halve and is_smooth(self.space):
                self.choice = "gaussian"
                log.info("auto chose gaussian: %s, and its parameters are all continuous", why)
            elif not may_halve:
                self.choice = "tpe"
                log.info("auto chose tpe: %s, and not all of its parameters are continuous", why)
            else:
                self.choice = "asha+model"
                does = "saves checkpoints, so trials pause" if trial.has_checkpoint else "saves none, so trials stop"
                log.info("auto chose asha+model: the function reports and %s", does)
        chosen.observe(trial)

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Ask the chosen optimizer."""
        return self.chosen.judge(trial, step, trials)

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Pass the trials on to the chosen optimizer."""
        self.chosen.finalize_experiment(trials)


class ModelHalving(ASHA):
    """ASHA with a model and with foresight; for a function that does not report, the model alone.

    Trials are compared from the first rung on, as by `ASHA`, so that many are looked at. But they are ranked by what
    they are foreseen to end with, which counts how steeply they still fall. The first four trials, and one new trial in
    eleven later, are compared late or never, and teach foresight.

    Once six have ended, and as long as not more than 200 are known, new trials come from a Gaussian process over what
    the known ones ended with or are foreseen to end with, as far as that tells ends, and one that waits and promises
    more than a new one goes on whatever its rank is; from a rung that tells little more go on by rank, too. Beyond that
    new ones come from densities, and one that may still end better than the best so far goes on. Some are points where
    none has been yet. When nothing new is left, those that wait go on: in turns the one best placed and the one that
    the model likes best.

    Args:
        halves: Whether trials are compared at all; without, reports count for nothing.
    """

    def __init__(self, *, halves: bool = True) -> None:
        self._halves = halves
        self._model = AutoSampler(minds_reports=halves)
        super().__init__(sampler=self._model)

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Show trials of earlier experiments to the model."""
        if self._halves:
            super().learn_from(trials)
            self._has_past = bool(trials)
            return
        for trial in trials:
            if trial.state is TrialState.COMPLETED and trial.value is not None:
                self.sampler.observe(trial, self.resource_min, trial.value)

    def _milestones(self, rungs: Iterable[Rung]) -> tuple[int, ...]:
        return super()._milestones(rungs) if self._halves else ()

    def _ladder_of(self, trial: Trial) -> Ladder:
        return super()._ladder_of(trial) if self._halves else []

    def _completed(self, trial: Trial) -> None:
        if self._halves:
            super()._completed(trial)
            if self._longest is not None:
                self._count_training(trial.number, self._longest)
            self._learn_to_foresee(trial)
            return
        self._has_completed = True
        if trial.value is not None:
            self.sampler.observe(trial, self.resource_min, trial.value)

    def _build_ladders(self) -> list[Ladder]:
        whole = super()._build_ladders()[0]
        if whole:
            whole[0] = Rung(whole[0].level, 1 / _STAY_AT_FIRST, self.direction)
        return [whole[skipped:] for skipped in range(len(whole) + 1)]

    def initialize(self) -> None:
        """Forget everything seen before."""
        super().initialize()
        self._left = 0
        self._has_past = False
        self._foresight: Foresight | None = None
        self._trained: dict[int, int] = {}
        self._training = 0
        self._model.foresight = None
        self._model.ends_first = self._of_first(_ENDS_FIRST)
        self._place_of = {rung.level: place for place, rung in enumerate(self._ladders[0])}
        # The ladders share their rungs: trials are compared with all that trained as long, wherever they came in.
        self._from_the_top = [(rung, self._ladders[0]) for rung in reversed(self._ladders[0])]

    def _of_first(self, most: int) -> int:
        return most if self.num_trials is None else min(most, self.num_trials // _FIRST_SHARE)

    def _next_bracket(self) -> int:
        """Return how many rungs the next new trial passes without being compared."""
        most = len(self._ladders) - 1
        if self._started <= self._of_first(_PATIENT_AT_FIRST):
            return most
        turn, is_other = divmod(self._started, _PATIENT_EVERY)
        if is_other:
            return 0
        known = self._longest
        all_of_them = 2 if known is None else sum(rung.level < known for rung in self._ladders[0])
        return min(all_of_them - turn // 2 % 2, most)

    def _enter(self, trial: Trial, rung: Rung, value: float) -> None:
        if trial.number in rung:
            return
        self._note(trial)
        self._count_training(trial.number, rung.level)
        rung.add(trial.number, value if self.deterministic else self._foreseen(rung, trial.number))
        self.sampler.observe(trial, rung.level, value)

    def _note(self, trial: Trial) -> None:
        """Show foresight what a trial had reached at each rung, also at those where it was not compared."""
        arrivals = (first_point_from(trial.curve, self._steps.step(trial, rung.level)) for rung in self._ladders[0])
        sign = 1.0 if self.direction == "min" else -1.0
        reached = list[float]()
        for arrival in arrivals:
            if arrival is None:
                break
            reached.append(sign * arrival[1])
        if self._foresight is None:
            # As NumPy: it must not delay the first trial.
            from cargobike.search.models.foresight import Foresight  # noqa: PLC0415

            self._foresight = Foresight()
            # Densities know the trials of earlier experiments, and the process would not.
            self._model.foresight = None if self._has_past else self._foresight
        self._foresight.note(trial.number, reached)

    def _learn_to_foresee(self, trial: Trial) -> None:
        """Show foresight where a trial ended, and rank the others by what is foreseen then."""
        if trial.value is None or not len(trial.curve):
            return
        self._note(trial)
        assert self._foresight is not None
        loss = trial.value if self.direction == "min" else -trial.value
        below = sum(not self._is_beyond(rung) for rung in self._ladders[0])
        if self._foresight.note_end(trial.number, loss, below) and not self.deterministic:
            for rung in self._ladders[0][1:below]:
                rung.rank_again(functools.partial(self._foreseen, rung))
                rung.admit(self._share_from(rung))

    def _share_from(self, rung: Rung) -> float:
        """Return which share goes on from a rung by its rank: the more, the less is told there."""
        assert self._foresight is not None
        left_open = self._foresight.left_open(self._place_of[rung.level]) if self._model.foresees else None
        more = _STAY_WHERE_NOTHING_IS - _STAY_WHERE_ALL_IS_TOLD
        return _STAY_WHERE_ALL_IS_TOLD + more * (left_open or 0.0)

    def _foreseen(self, rung: Rung, number: int) -> float:
        assert self._foresight is not None
        loss = self._foresight.foreseen(number, self._place_of[rung.level])
        return loss if self.direction == "min" else -loss

    def _may_go_on(self, number: int, rung: Rung) -> bool:
        # The process weighs it when it waits: the worker that it frees asks at once who of all that wait promises most.
        return super()._may_go_on(number, rung) or (not self._model.knows(number) and self._may_win(number, rung))

    def _survives(self, number: int, rung: Rung) -> bool:
        return super()._survives(number, rung) or self._promises_more(number, rung)

    def _may_resume(self, number: int, rung: Rung) -> bool:
        # While the process is asked, it weighs all that wait at once: see below.
        return super()._may_go_on(number, rung) if self._model.foresees else self._may_go_on(number, rung)

    def _rather_than_new(self) -> tuple[int, Rung, Ladder] | None:
        if not self._model.foresees:  # there may be very many that wait
            return None
        waiting = {number: (rung, ladder) for rung, ladder in self._from_the_top for number in rung.waiting()}
        prices = {number: self._price(rung) for number, (rung, _) in waiting.items()}
        number = self._model.rather(prices, may_start=self._may_start) if waiting else None
        return None if number is None else (number, *waiting[number])

    def _count_training(self, number: int, level: int) -> None:
        self._training += level - self._trained.get(number, 0)
        self._trained[number] = level

    def _price(self, rung: Rung) -> float:
        """Return what is left to train from a rung on, as a multiple of what trials have been trained on average."""
        if self._longest is None or not self._trained:
            return 1.0
        return (self._longest - rung.level) * len(self._trained) / self._training

    def _promises_more(self, number: int, rung: Rung) -> bool:
        """Tell whether more is to be expected of a trial than of a new one."""
        if (promises_more := self._model.promises_more(number, self._price(rung))) is not None:
            return promises_more
        return self._may_win(number, rung)

    def _may_win(self, number: int, rung: Rung) -> bool:
        return self._foresight is not None and self._foresight.may_win(number, self._place_of[rung.level])

    def _best_left(self) -> tuple[int, Rung, Ladder] | None:
        self._left += 1
        if self._left % 2:
            return super()._best_left()
        waiting = [(number, rung, ladder) for rung, ladder in self._from_the_top for number in rung.waiting()]
        liked = self._model.favourite([self.trials[number].params for number, _, _ in waiting])
        return super()._best_left() if liked is None else waiting[liked]

    def _say(self, what: str) -> None:
        """Say nothing: a function that does not report is searched well all the same."""
