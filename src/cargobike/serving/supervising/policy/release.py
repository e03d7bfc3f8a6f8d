"""Bringing a version in beside the one that serves: start, warm, check, shift, drain; or back again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from cargobike.serving.facts import Plan, ReleaseEnded, ReleaseStarted, Share
from cargobike.serving.supervising.policy.events import Command, Record, Tell
from cargobike.serving.wire import VersionLoad

Phase = Literal["steady", "starting", "watched", "promoted"]
Judgement = Literal["wait", "promote", "take back"]

CRASHES: Final = 3
"""How often replicas of a version may die until it is taken back; an error that it raises counts at once."""
FEW: Final = 20
"""Requests of which the share that failed says something."""
FAILURES: Final = 3
"""Failures of which the share says something."""
SLACK_S: Final = 0.005
"""A difference in latency that does not matter, whatever the ratio."""


@dataclass(slots=True)
class Figures:
    """What happened at one version while it was watched."""

    answered: int = 0
    failed: int = 0
    latency_sum_s: float = 0.0
    differed: int = 0

    def add(self, load: VersionLoad) -> None:
        """Count what happened since the last message."""
        self.answered += load.answered
        self.failed += load.failed
        self.latency_sum_s += load.latency_sum_s
        self.differed += load.differed

    @property
    def requests(self) -> int:
        """How many requests it got."""
        return self.answered + self.failed

    @property
    def error_rate(self) -> float:
        """The share of them that failed."""
        return self.failed / self.requests if self.requests else 0.0

    @property
    def latency_s(self) -> float:
        """How long they took, on average."""
        return self.latency_sum_s / self.answered if self.answered else 0.0


def judge(plan: Plan, stable: Figures, candidate: Figures, watched_s: float) -> tuple[Judgement, str]:
    """Decide about a version by what happened at it and at the version that serves; says why."""
    if (
        candidate.requests >= FEW
        and candidate.failed >= FAILURES
        and candidate.error_rate > stable.error_rate + plan.errors
    ):
        return "take back", (
            f"{candidate.error_rate:.1%} of its requests failed, where {stable.error_rate:.1%} did before, and at most "
            f"{plan.errors:.1%} more were allowed"
        )
    if (
        min(candidate.answered, stable.answered) >= FEW
        and candidate.latency_s > plan.slower * stable.latency_s + SLACK_S
    ):
        return "take back", (
            f"its requests took {candidate.latency_s * 1e3:.1f} ms, where {stable.latency_s * 1e3:.1f} ms were usual, "
            f"and at most {plan.slower:g} times as long was allowed"
        )
    if candidate.answered >= plan.requests and watched_s >= plan.watch_s and not plan.shadow:
        return "promote", f"{candidate.requests} requests, {candidate.error_rate:.1%} of which failed"
    return "wait", ""


@dataclass
class Release:
    """Which versions serve, and how the next one comes in.

    Guarantees: requests go to a version only once a replica of it is loaded and warm; the version before serves until
    as many replicas of the new one are ready as it has itself; a version that cannot be loaded, or dies, never gets all
    requests. Going back is one step: requests turn to replicas that are still there, before any is ended.
    """

    current: int = 0
    previous: int = 0
    candidate: int = 0
    plan: Plan = field(default_factory=Plan)
    phase: Phase = "steady"
    ask: int = 0
    since: float = 0.0
    crashes: int = 0
    figures: dict[int, Figures] = field(default_factory=dict)
    last_error: str = ""

    def begin(self, at: float, version: int, plan: Plan, ask: int, step: str = "") -> list[Command]:
        """Start to bring a version in."""
        if self.candidate:
            return [Tell(ask, f"version {self.candidate} is being brought in; promote it or roll it back first")]
        if version == self.current:
            return [Tell(ask, body={"version": version, "already": True})]
        if not self.current:
            plan = Plan()
        self.candidate, self.plan, self.phase, self.ask = version, plan, "starting", ask
        self.since, self.crashes, self.last_error = at, 0, ""
        return [Record(ReleaseStarted(at=at, model_version=version, plan=plan, step=step))]

    def go_on(self, at: float) -> None:
        """Take up a release that another supervisor had begun."""
        if self.candidate:
            self.phase, self.since, self.crashes = "starting", at, 0

    def wanted(self, total: int) -> dict[int, int]:
        """Return how many replicas of each version there are to be, if `total` are needed."""
        wanted = {self.current: total} if self.current else {}
        if self.candidate:
            is_canary = self.plan.canary and not self.plan.shadow and self.phase != "promoted"
            share = self.plan.canary if is_canary else 1.0
            wanted[self.candidate] = max(1, math.ceil(share * total - 1e-9))
        return wanted

    def routes(self) -> tuple[tuple[Share, ...], int, str]:
        """Return where requests go: shares, shadow, field."""
        if self.phase not in {"watched", "promoted"}:
            return ((Share(self.current),) if self.current else ()), 0, ""
        if self.plan.shadow:
            return (Share(self.current),), self.candidate, ""
        share = self.plan.canary
        return (Share(self.current, 1.0 - share), Share(self.candidate, share)), 0, self.plan.by

    def look(self, at: float, ready: dict[int, int], total: int) -> list[Command]:
        """Shift requests if enough replicas of the new version are ready."""
        if self.phase not in {"starting", "promoted"}:
            return []
        count = ready.get(self.candidate, 0)
        if self.plan.is_watched and self.phase == "starting":
            if count < 1:
                return []
            self.phase, self.since = "watched", at
            self.figures = {self.current: Figures(), self.candidate: Figures()}
            return self._answer({"version": self.candidate, "phase": "watched"})
        if count < max(1, min(total, ready.get(self.current, 0))):
            return []
        return self._released(at)

    def see(self, at: float, loads: dict[int, VersionLoad]) -> list[Command]:
        """Count what happened, and judge the version that is watched."""
        if self.phase != "watched":
            return []
        for version, load in loads.items():
            if version in self.figures:
                self.figures[version].add(load)
        if not self.plan.decide:
            return []
        verdict, why = judge(self.plan, self.figures[self.current], self.figures[self.candidate], at - self.since)
        if verdict == "promote":
            return self.promote(at, 0)
        return self.take_back(at, why) if verdict == "take back" else []

    def promote(self, at: float, ask: int) -> list[Command]:
        """Give all requests to the version that is watched, once as many replicas of it are ready."""
        if self.phase != "watched":
            return [Tell(ask, "no version is being watched; bring one in with canary= or shadow= first")]
        self.phase, self.ask, self.since = "promoted", ask, at
        return []

    def died(self, at: float, version: int, reason: str, error: str) -> list[Command]:
        """A replica died that was not meant to."""
        if version != self.candidate:
            return []
        self.crashes += 1
        self.last_error = error or reason
        if not error and self.crashes < CRASHES:
            return []
        return self.take_back(at, error or f"its replicas died {self.crashes} times; the last one {reason}", "failed")

    def rollback(self, at: float, ask: int, reason: str, step: str = "") -> list[Command]:
        """Take back what is being brought in; else go back to the version before."""
        if self.candidate and self.current:
            self_version = self.candidate
            taken_back = self.take_back(at, reason or "a user took it back", step=step)
            return [*taken_back, Tell(ask, body={"taken_back": self_version})]
        if self.candidate:
            return [Tell(ask, "there is no version to go back to: this one is the first")]
        if not self.previous:
            return [Tell(ask, "there is no version to go back to: this one is the first")]
        return self.begin(at, self.previous, Plan(), ask, step)

    def take_back(
        self, at: float, why: str, outcome: Literal["failed", "rolled back"] = "rolled back", *, step: str = ""
    ) -> list[Command]:
        """Leave the version that serves as it is."""
        version = self.candidate
        short = why.strip().splitlines()[-1] if why.strip() else ""
        self.candidate, self.phase, self.last_error = 0, "steady", why
        fact = ReleaseEnded(
            at=at, model_version=version, outcome=outcome, previous=self.current, reason=short, step=step
        )
        return [Record(fact), *self._answer(error=why)]

    def _released(self, at: float) -> list[Command]:
        before, self.previous = self.current, self.current or self.previous
        self.current, self.candidate, self.phase = self.candidate, 0, "steady"
        fact = ReleaseEnded(at=at, model_version=self.current, outcome="released", previous=before)
        return [Record(fact), *self._answer({"version": self.current, "phase": "steady"})]

    def _answer(self, body: object = None, error: str = "") -> list[Command]:
        ask, self.ask = self.ask, 0
        return [Tell(ask, error, body)] if ask else []


def versions_of(shares: Iterable[Share], shadow: int) -> set[int]:
    """Return all versions that requests, or copies of them, go to."""
    return {share.version for share in shares} | ({shadow} if shadow else set())
