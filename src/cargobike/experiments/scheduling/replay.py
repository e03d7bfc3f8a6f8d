"""An experiment taken up again: its journal replayed, so that optimizer and scheduler go on as if nothing had happened.

An optimizer is a deterministic function of its seed and of what it was shown. The journal says what it was shown before
each answer, so a fresh one can be led to the same point, and must give the same answers on the way.
"""

from __future__ import annotations

from collections.abc import Iterable

from cargobike.core import facts
from cargobike.core.errors import OptimizerError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import IDLE, Suggestion, TrialState
from cargobike.core.values.exact import are_alike
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import LiveTrial
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.showing import AsSuggested, AsTheyEnd, Showing

_Answer = facts.TrialSuggested | facts.TrialResumed | facts.OptimizerIdled


class Replay:
    """Applies facts to a record, and repeats the conversation with the optimizer that they describe.

    Attributes:
        record: The experiment as far as it has come.
    """

    def __init__(self, plan: Plan, record: ExperimentRecord, session: OptimizerSession) -> None:
        self.record = record
        self._lives: dict[int, LiveTrial] = {}
        self._plan = plan
        self._session = session
        self._ordered = AsSuggested(plan.horizon) if plan.deterministic else None
        self._done: list[int] = []
        self._shown = 0

    def run(self, journal: Iterable[facts.AnyFact]) -> None:
        """Replay a journal after its first line.

        Raises:
            OptimizerError: If the optimizer now gives other answers than it gave then.
        """
        # With a higher limit than it had then, the optimizer would not have waited for the last trials, but gone on.
        self._session.limit(self.record.header.num_trials)
        for fact in journal:
            if isinstance(fact, facts.ExperimentResumed) and fact.num_trials is not None:
                self._session.limit(fact.num_trials)
            if isinstance(fact, facts.ExperimentResumed) and fact.space is not None:
                self._session.change_space(fact.space, fact.defaults)
            if isinstance(fact, facts.OptimizerIdled) and fact.exhausted:
                pass  # the trials shown with that question are shown with the next one, if there is more to try now
            elif isinstance(fact, _Answer):
                self._ask_again(fact)
            elif isinstance(fact, facts.Judged):
                self._judge_again(fact)
            if isinstance(fact, facts.TrialEnded | facts.TrialPaused):
                self._job_done(fact.trial)
            self.record.apply(fact)
        self._session.limit(self._plan.num_trials)

    def live(self) -> dict[int, LiveTrial]:
        """Return what the scheduler must remember about the trials that have not ended."""
        trials = self.record.runs
        return {number: live for number, live in self._lives.items() if not trials[number].state.is_final}

    @property
    def showing(self) -> Showing:
        """Which jobs the optimizer has been shown, and which are still to be shown."""
        if self._ordered is not None:
            return self._ordered
        showing = AsTheyEnd()
        for trial in self._done[self._shown :]:
            showing.done(trial)
        return showing

    def _job_done(self, trial: int) -> None:
        self._done.append(trial)
        if self._ordered is not None and self.record.runs[trial].state is TrialState.RUNNING:
            self._ordered.done(trial)

    def _ask_again(self, fact: _Answer) -> None:
        if self._ordered is not None:
            tell = self._ordered.take()
        else:
            tell = tuple(self._done[self._shown : fact.told])
            self._shown = fact.told
        question = ev.Ask(tell, fact.after)
        answer = self._session.answer(question, fact.at, self._session.show(question))
        if isinstance(answer, ev.StopRequested):
            raise OptimizerError(answer.reason)
        assert isinstance(answer, ev.SuggestionMade)
        self._compare(answer.suggestion, fact)
        if isinstance(fact, facts.OptimizerIdled):
            if self._ordered is not None:
                self._ordered.rest()
            return
        if isinstance(fact, facts.TrialSuggested):
            self._lives[fact.trial] = LiveTrial(fact.milestones, fact.copy_checkpoint_of, fact.told)
        else:
            live = self._lives[fact.trial]
            live.milestones, live.told = fact.milestones or live.milestones, fact.told
            live.verdict = None
        if self._ordered is not None:
            self._ordered.began(fact.trial)

    def _compare(self, suggestion: Suggestion | str | None, fact: _Answer) -> None:
        if isinstance(fact, facts.OptimizerIdled):
            same = suggestion == IDLE or (self._has_enough and isinstance(suggestion, Suggestion))
            answer: object = IDLE
        elif isinstance(fact, facts.TrialSuggested):
            same = isinstance(suggestion, Suggestion) and are_alike(suggestion.params, fact.params)
            answer = fact.params
        else:
            same = isinstance(suggestion, Suggestion) and suggestion.resume == fact.trial
            answer = f"resume trial {fact.trial}"
        if not same:
            raise OptimizerError(
                f"the optimizer does not repeat itself: it had answered {answer!r} and now answers {suggestion!r}. "
                "It must depend on nothing but self.rng and what it is shown; a search with it cannot be resumed."
            )

    @property
    def _has_enough(self) -> bool:
        """Whether a suggestion was refused because there were enough; the journal has that as an idle optimizer."""
        limit = self.record.header.num_trials
        return limit is not None and len(self.record.trials) >= limit

    def _judge_again(self, fact: facts.Judged) -> None:
        live = self._lives[fact.trial]
        live.judged_step = fact.step
        live.verdict = (fact.decision, fact.by) if fact.decision != "continue" else None
        horizon = live.told if self._plan.deterministic else None
        attempt = self.record.runs[fact.trial].attempts
        question = ev.Judge(fact.trial, attempt, fact.step, horizon)
        self._session.answer(question, fact.at, self._session.show(question))
