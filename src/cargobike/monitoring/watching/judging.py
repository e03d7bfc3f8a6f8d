"""From windows to judgements, from judgements to alarms; plain data between two windows, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.core.values.words import count, number
from cargobike.monitoring.alarms.policy import Policy
from cargobike.monitoring.facts import AlarmEnded, AlarmKind, AlarmRaised, AnyMonitorFact, Moved, Watched, WindowJudged
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.records import Side
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.watching.windows import Closed

_MOST_MOVED: Final = 20


class _Unusual(msgspec.Struct, frozen=True, array_like=True):
    """A window that counts for alarms: its number, whether it was unusual, when its first request came."""

    window: int
    is_unusual: bool
    first_at: float


class JudgingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept between two windows.

    Attributes:
        windows: How many windows there were.
        alarms: How many alarms there were.
        recent: The last windows that count, the oldest first.
        open: The alarm of each kind that is open.
    """

    windows: int = 0
    alarms: int = 0
    recent: list[_Unusual] = []
    open: dict[AlarmKind, str] = {}


class Judged(msgspec.Struct, frozen=True):
    """What became of a window: facts, and everything that is said about it, if it was judged."""

    facts: list[AnyMonitorFact]
    number: int
    judgement: Judgement | None


class Judging:
    """Judges windows, and raises alarms.

    Args:
        watched: What was asked for.
        reference: What is usual.
        record: What was kept.
    """

    def __init__(self, watched: Watched, reference: Reference, record: JudgingRecord | None = None) -> None:
        self._watched = watched
        self._policy = Policy.parse(watched.alarm)
        self._reference = reference
        kept = record or JudgingRecord()
        self._windows, self._alarms = kept.windows, kept.alarms
        self._recent, self._open = list(kept.recent), dict(kept.open)

    def record(self) -> JudgingRecord:
        """Return what is to be kept."""
        return JudgingRecord(
            windows=self._windows, alarms=self._alarms, recent=list(self._recent), open=dict(self._open)
        )

    def judge(self, closed: Closed, now: float, *, dropped: int = 0, position: str = "") -> Judged:
        """Judge a window that was closed; return what is true from now on.

        Args:
            closed: The window.
            now: What time it is.
            dropped: How many requests the log could not keep, since the window before.
            position: Where in the log it ended.
        """
        self._windows += 1
        reason = ""
        if closed.rows < self._watched.least:
            reason = f"it has {count(closed.rows, 'row')}, and at least {self._watched.least} are needed to judge"
        judgement = None if reason else self._reference.judge_state(self._reference.read_state(closed.state))
        window = WindowJudged(
            at=now,
            number=self._windows,
            model_version=closed.version,
            first_at=closed.first_at,
            last_at=closed.last_at,
            rows=closed.rows,
            start=closed.start,
            late=closed.late,
            dropped=dropped,
            reason=reason,
            **({} if judgement is None else _said(judgement)),
        )
        facts: list[AnyMonitorFact] = [window]
        if judgement is not None:
            facts += self._alarm(window, position)
        return Judged(facts, window.number, judgement)

    def _alarm(self, window: WindowJudged, position: str) -> list[AnyMonitorFact]:
        self._recent.append(_Unusual(window.number, window.unusual, window.first_at))
        del self._recent[: -self._policy.windows]
        unusual = [one for one in self._recent if one.is_unusual]
        is_raised = len(unusual) >= self._policy.needed
        if is_raised and "drift" not in self._open:
            return [
                self.raise_alarm(
                    window,
                    "drift",
                    windows=tuple(one.window for one in unusual),
                    since=unusual[0].first_at,
                    position=position,
                )
            ]
        if not is_raised and "drift" in self._open and not window.unusual:
            return [AlarmEnded(at=window.at, id=self._open.pop("drift"), window=window.number)]
        return []

    def raise_alarm(
        self,
        window: WindowJudged,
        kind: AlarmKind,
        *,
        windows: Sequence[int],
        since: float,
        position: str = "",
        text: str = "",
    ) -> AlarmRaised:
        """Open an alarm about a window."""
        self._alarms += 1
        self._open[kind] = f"alarm-{self._alarms}"
        names = ", ".join(moved.feature for moved in window.moved[:3])
        more = f" and {len(window.moved) - 3} more" if len(window.moved) > 3 else ""
        counted = f"{len(windows)} of the last {self._policy.windows} windows are unusual"
        return AlarmRaised(
            at=window.at,
            id=self._open[kind],
            kind=kind,
            window=window.number,
            windows=tuple(windows),
            since=since,
            first_at=window.first_at,
            last_at=window.last_at,
            model_version=window.model_version,
            rows=window.rows,
            moved=window.moved,
            position=position,
            text=text or f"{self._watched.subject} drifted: {names}{more}; {counted}.",
        )

    def is_open(self, kind: AlarmKind) -> bool:
        """Tell whether an alarm of a kind is open."""
        return kind in self._open

    def end_alarm(self, kind: AlarmKind, window: int, now: float) -> AlarmEnded:
        """Close the open alarm of a kind."""
        return AlarmEnded(at=now, id=self._open.pop(kind), window=window)


def _said(judgement: Judgement) -> dict[str, Any]:
    columns = {column.name: column for column in judgement.columns}
    moved = tuple(
        Moved(
            feature=shift.feature,
            statistic=shift.statistic,
            size=shift.size,
            probability=shift.probability,
            reference=_side(columns[shift.feature].reference) if shift.feature in columns else "",
            now=_side(columns[shift.feature].now) if shift.feature in columns else "",
        )
        for shift in judgement.features[:_MOST_MOVED]
    )
    drift: dict[str, float] = {}
    for figures in judgement.statistics.values():
        for subject, figure in figures.items():
            if subject in columns:
                drift[subject] = round(min(drift.get(subject, 1.0), figure.probability), 6)
    psi = {name: round(figure.value, 6) for name, figure in judgement.statistics.get("psi", {}).items()}
    return {
        "unusual": judgement.alarm,
        "probability": judgement.probability,
        "moved": moved,
        "drift": drift,
        "psi": psi,
    }


def _side(side: Side) -> str:
    missing = f", {side.missing:.1%} missing" if side.missing else ""
    if side.mean is None:
        return f"{side.distinct} different values{missing}"
    return f"mean {number(side.mean)} ± {number(side.deviation or 0.0)}{missing}"
