"""The loop of a watcher: read the log, judge, keep, tell; wait while the storage is gone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.core.registering.following import Follower
from cargobike.monitoring.facts import AlarmRaised, AnyMonitorFact, Trouble, Watched
from cargobike.monitoring.hooks.telling import Teller
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.labelling.files import newest_labels, read_labels
from cargobike.monitoring.labelling.following import Labelling
from cargobike.monitoring.labelling.joining import Open, label_log, predictions_in
from cargobike.monitoring.labelling.metrics import choose_metrics
from cargobike.monitoring.record import MonitorFolder
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.running.keeping import Keeper, Kept
from cargobike.monitoring.watching.watching import Watching

ROWS_AT_ONCE: Final = 20_000
LOOK_S: Final = 0.25
POLL_S: Final = 1.0
LABELS_EVERY_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 30.0
_log: Final = logging.getLogger(__name__)


class Watcher:
    """Watches one subject, for the process that holds the monitor's lock.

    Guarantees: each row of the log counts once, however often the process is killed and started again. A storage or a
    broker that is gone is waited for.

    Args:
        folder: The monitor.
        watched: What was asked for.
        reference: What is usual.
        keeper: Keeps facts and state.
        opened: Opens the log; called again after it could not be read.
        log: Opens it for labels, where rows do not come here otherwise.
        teller: Tells hooks.
        clock: Tells the time, in seconds since 1970.
    """

    label_patience_s = 30.0
    """How long labels wait for requests that are not in the log yet."""

    def __init__(
        self,
        folder: MonitorFolder,
        watched: Watched,
        reference: Reference,
        keeper: Keeper,
        *,
        opened: Open,
        log: Open | None = None,
        teller: Teller,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._watched, self._reference, self._keeper = folder, watched, reference, keeper
        self._opened, self._log, self._teller, self._clock = opened, log or opened, teller, clock
        self._metrics = choose_metrics(watched.metrics)
        self._waited: dict[int, float] = {}
        self._go_on()
        self._follower: Follower | None = None
        self._trouble = ""
        self._labels_at = 0.0

    def _go_on(self) -> None:
        """Go on from what is kept; what was read since is read again."""
        self._watching = Watching(self._watched, self._reference, self._keeper.kept.watching)
        self._labelling = Labelling(self._metrics, self._watching.judging, self._keeper.kept.labelling)

    def run(self, over: threading.Event) -> None:
        """Watch until it is told to end, or asked to by a file."""
        pause_s = 0.0
        while not over.is_set() and not self._folder.stop_request.exists():
            try:
                has_more = self.step()
                pause_s = 0.0 if has_more else POLL_S
            except (StoreError, ConnectionError) as error:
                pause_s = min(_LONGEST_PAUSE_S, max(POLL_S, 2 * pause_s))
                self._say_trouble(str(error))
            give_up_at = time.monotonic() + pause_s
            while (left := give_up_at - time.monotonic()) > 0 and not self._folder.stop_request.exists():
                if over.wait(min(left, LOOK_S)):
                    break

    def step(self) -> bool:
        """Read and judge once; returns whether there is more already.

        Raises:
            StoreError: If the log cannot be read now, or facts cannot be kept; nothing is lost.
        """
        if self._follower is None:
            self._follower = self._opened()
        before = self._watching.position
        stretch = self._follower.read(before, ROWS_AT_ONCE)
        now = self._clock()
        outcome = self._watching.feed(stretch.rows, stretch.position, now, dropped=stretch.dropped)
        facts, judgements = list(outcome.facts), dict(outcome.judgements)
        if not stretch.more:
            ticked = self._watching.tick(now)
            facts += ticked.facts
            judgements |= ticked.judgements
            facts += self._label(now)
        facts += self._teller.told(now)
        if self._trouble:
            facts.append(Trouble(at=now, text=""))
        if facts or stretch.position != before:
            self._commit(facts, judgements)
        self._trouble = ""
        return stretch.more

    def close(self, timeout_s: float = 5.0) -> None:
        """Close the log, and end the hooks."""
        self._teller.close(timeout_s)
        if self._follower is not None:
            self._follower.close()

    def _commit(self, facts: Sequence[AnyMonitorFact], judgements: dict[int, Judgement]) -> None:
        self._keeper.commit(
            Kept(watching=self._watching.record(), labelling=self._labelling.record()), facts, judgements
        )
        for fact in facts:
            if isinstance(fact, AlarmRaised):
                _log.warning("%s: %s", fact.id, fact.text)
                self._teller.tell(fact)

    def _say_trouble(self, text: str) -> None:
        """Record that the log cannot be read, once, and go on from what is kept."""
        self._go_on()
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        if not self._trouble:
            _log.warning("%s", text)
            try:
                self._keeper.commit(self._keeper.kept, [Trouble(at=self._clock(), text=text)])
            except StoreError as error:
                _log.warning("%s", error)
        self._trouble = text

    def _label(self, now: float) -> list[AnyMonitorFact]:
        """Join labels that have come with what was predicted."""
        if time.monotonic() < self._labels_at:
            return []
        facts: list[AnyMonitorFact] = []
        newest = newest_labels(self._folder.project, self._folder.id, self._labelling.labels)
        for number in range(self._labelling.labels + 1, newest + 1):
            try:
                joined = self._joined(number, now)
                if joined is None:
                    break
                facts += joined
            except InvalidInputError as error:
                facts.append(self._labelling.refuse(number, str(error), now))
        self._labels_at = time.monotonic() + LABELS_EVERY_S
        return facts

    def _joined(self, number: int, now: float) -> list[AnyMonitorFact] | None:
        """Return what labels say; `None` if requests are missing that may still be on their way into the log."""
        joined = label_log(read_labels(self._folder.project, self._folder.id, number), self._log)
        waited_s = time.monotonic() - self._waited.setdefault(number, time.monotonic())
        if joined.unmatched.num_rows and waited_s < self.label_patience_s:
            return None
        self._waited.pop(number)
        rows, column = joined.rows, "output"
        if rows.num_rows:
            column, values = predictions_in(rows, self._watched.prediction)
            rows = rows if column in rows.column_names else rows.append_column(column, values)
        return self._labelling.feed(
            rows,
            column,
            self._watched.label,
            labels=number,
            unmatched=joined.unmatched.num_rows,
            now=now,
        )


def open_log(follow: Callable[[], Follower]) -> Open:
    """Return what opens a log, and turns what keeps it from being opened into an error that is waited out."""

    def opened() -> Follower:
        try:
            return follow()
        except StoreError:
            raise
        except CargobikeError as error:
            raise StoreError(f"The log cannot be followed: {error}") from error

    return opened
