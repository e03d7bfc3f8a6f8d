"""A run of a pipeline in virtual time: journal, files and processes are lists and dicts, and may be lost."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cargobike.pipelines.driving import events
from cargobike.pipelines.driving.conductor import Conductor
from cargobike.pipelines.driving.events import Event, Hit, Options, Outcome
from cargobike.pipelines.facts import AnyRunFact, RunStarted, StepAsked, StepEnded
from cargobike.pipelines.record import RunFolder, RunRecord, fold
from cargobike.pipelines.values.value import Value, digest_of

FOLDER = RunFolder(Path("/nowhere/runs/mine"))


class Killed(Exception):
    """Stands for the death of the driver."""


@dataclass
class Asking:
    """One step of a pipeline that only asks.

    Attributes:
        after: The steps whose results it needs.
        fails: How many attempts fail.
        seconds: How long an attempt takes.
    """

    after: tuple[int, ...] = ()
    fails: int = 0
    seconds: float = 1.0
    options: Options = field(default_factory=lambda: Options(backoff_s=0.5))
    name: str = "step"
    code: str = "code"
    digest: str = "inputs"


class VirtualRun:
    """What outlives a driver: the journal, what steps said how they ended, how often each had an effect."""

    def __init__(self, asks: Sequence[Asking], *, parallel: int = 2) -> None:
        self.asks = asks
        self.parallel = parallel
        self.now = 100.0
        self.journal: list[AnyRunFact] = [RunStarted(at=self.now, id="mine", pipeline="virtual")]
        self.outcomes: dict[tuple[int, int], Outcome] = {}
        self.effects: dict[int, int] = {}
        self.failed: dict[int, int] = {}
        self.cache: dict[str, Hit] = {}
        self.began: list[tuple[float, int, int]] = []
        self.ended: list[tuple[int, int]] = []
        self.most_at_once = 0
        self.refused: list[str] = []
        self.conductor: Conductor | None = None

    def drive(
        self, *, kill_at: int | None = None, outlive: Mapping[int, bool] | None = None, **options: bool
    ) -> RunRecord:
        """Drive the run to its end, or until the driver is killed before its command of that number.

        Args:
            kill_at: When to kill the driver.
            outlive: Which steps that run then still say how they ended; the others die without a word.
            **options: For the conductor.
        """
        record = fold(self.journal, FOLDER)
        self.conductor = Conductor(record, parallel=self.parallel, **options)
        self._left = kill_at if kill_at is not None else -1
        self._processes: list[tuple[float, int, int]] = []
        try:
            self._drive()
        except Killed:
            for _, step, attempt in self._processes:
                if (outlive or {}).get(step, False):
                    self._finish(step, attempt)
        return fold(self.journal, FOLDER)

    def _drive(self) -> None:
        assert self.conductor is not None
        for number, ask in enumerate(self.asks, start=1):
            fact = StepAsked(at=self.now, step=number, name=ask.name, code=ask.code, digest=ask.digest, after=ask.after)
            self._happen(events.Asked(fact, ask.options))
        while not self.conductor.is_over:
            next_end = self._processes[0][0] if self._processes else float("inf")
            due = self.conductor.next_time
            assert min(next_end, due) < float("inf"), "nothing will ever happen"
            if due <= next_end:
                self.now = max(self.now, due)
                self._happen(events.Passed(self.now))
                continue
            self.now, step, attempt = heapq.heappop(self._processes)
            outcome = self._finish(step, attempt)
            self._happen(events.Ended(self.now, step, attempt, outcome))

    def _finish(self, step: int, attempt: int) -> Outcome:
        ask = self.asks[step - 1]
        if self.failed.get(step, 0) < ask.fails:
            self.failed[step] = self.failed.get(step, 0) + 1
            outcome = Outcome(ok=False, error="failed")
        else:
            self.effects[step] = self.effects.get(step, 0) + 1
            outcome = Outcome(ok=True, result=Value("plain", digest_of(ask.code.encode(), ask.digest.encode()), step))
        self.outcomes[step, attempt] = outcome
        return outcome

    def _happen(self, event: Event) -> None:
        waiting = [event]
        while waiting:
            assert self.conductor is not None
            for command in self.conductor.handle(waiting.pop(0)):
                if self._left == 0:
                    raise Killed
                self._left -= 1
                answer = self._do(command)
                if answer is not None:
                    waiting.append(answer)

    def _do(self, command: events.Command) -> Event | None:
        if isinstance(command, events.Write):
            self.journal.append(command.fact)
        elif isinstance(command, events.Begin):
            self.began.append((self.now, command.step, command.attempt))
            end = self.now + self.asks[command.step - 1].seconds
            heapq.heappush(self._processes, (end, command.step, command.attempt))
            self.most_at_once = max(self.most_at_once, len(self._processes))
        elif isinstance(command, events.EndAttempt):
            self.ended.append((command.step, command.attempt))
            self._processes = [one for one in self._processes if one[1:] != (command.step, command.attempt)]
            ended = Outcome(ok=False, error="ended")
            return events.Ended(self.now, command.step, command.attempt, ended)
        elif isinstance(command, events.Recover):
            return events.Recovered(self.now, command.step, self.outcomes.get((command.step, command.attempt)))
        elif isinstance(command, events.LookUp):
            return events.LookedUp(self.now, command.step, self.cache.get(command.key))
        elif isinstance(command, events.Remember):
            assert self.conductor is not None
            result = self.conductor.record.steps[command.step].result
            assert result is not None
            self.cache[command.key] = Hit(result, f"mine/{command.step}")
        elif isinstance(command, events.Refuse):
            self.refused.append(command.message)
            raise Killed
        return None

    def ends_of(self, step: int) -> list[StepEnded]:
        """Return what the journal says of the end of a step."""
        return [fact for fact in self.journal if isinstance(fact, StepEnded) and fact.step == step]
