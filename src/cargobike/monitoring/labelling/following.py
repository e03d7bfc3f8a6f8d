"""Labels in, errors over time and alarms out; no files and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.values.words import number
from cargobike.monitoring.alarms.change_points import ChangePoint, ChangePoints
from cargobike.monitoring.facts import AnyMonitorFact, ErrorMeasured, Moved, WindowJudged
from cargobike.monitoring.labelling.metrics import Metric, measure
from cargobike.monitoring.watching.judging import Judging
from cargobike.monitoring.watching.windows import seconds_of

_KEPT_POINTS: Final = 10_000


class LabellingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept between two deliveries of labels.

    Attributes:
        labels: The number of the last labels that were joined.
        measured: How many facts there were.
        streams: For each metric what finds changes in it.
        times: When the request of each of the last labelled rows came, for saying since when errors changed.
        seen: How many labelled rows there were.
    """

    labels: int = 0
    measured: int = 0
    streams: dict[str, ChangePoints] = {}
    times: list[float] = []
    seen: int = 0


class Labelling:
    """Follows the errors of a model.

    Args:
        metrics: How errors are measured.
        judging: What raises alarms.
        record: What was kept.
    """

    def __init__(self, metrics: Mapping[str, Metric], judging: Judging, record: LabellingRecord | None = None) -> None:
        kept = record or LabellingRecord()
        self._metrics = metrics
        self._judging = judging
        self.labels, self._measured, self._seen = kept.labels, kept.measured, kept.seen
        self._times = list(kept.times)
        self._streams = {name: _copied(kept.streams.get(name)) for name in metrics}

    def record(self) -> LabellingRecord:
        """Return what is to be kept."""
        return LabellingRecord(
            labels=self.labels,
            measured=self._measured,
            streams=dict(self._streams),
            times=list(self._times),
            seen=self._seen,
        )

    def feed(
        self, labelled: pa.Table, prediction: str, label: str, *, labels: int, unmatched: int, now: float
    ) -> list[AnyMonitorFact]:
        """Measure the errors of predictions that got their labels, in the order of their requests.

        Args:
            labelled: Rows of the log with the column of labels.
            prediction: The column with what was predicted.
            label: The column with what is true.
            labels: The number of these labels.
            unmatched: How many labels had no prediction.
            now: What time it is.

        Raises:
            InvalidInputError: If a metric cannot be computed.
        """
        self.labels = labels
        for column in (label, prediction):
            labelled = labelled.filter(labelled[column].is_valid())
        labelled = labelled.sort_by([("at", "ascending")])
        ats = seconds_of(labelled["at"])
        self._measured += 1
        if not labelled.num_rows:
            return [
                ErrorMeasured(at=now, number=self._measured, labels=labels, metrics={}, rows=0, unmatched=unmatched)
            ]
        measured = measure(self._metrics, _array(labelled[prediction]), _array(labelled[label]))
        fact = ErrorMeasured(
            at=now,
            number=self._measured,
            labels=labels,
            metrics={name: float(np.mean(values)) for name, values in measured.items()},
            rows=labelled.num_rows,
            first_at=float(ats[0]),
            last_at=float(ats[-1]),
            model_version=int(labelled["version"][-1].as_py() or 0),
            unmatched=unmatched,
        )
        self._seen += labelled.num_rows
        self._times = [*self._times, *(float(at) for at in ats)][-_KEPT_POINTS:]
        facts: list[AnyMonitorFact] = [fact]
        for name, values in measured.items():
            for point in self._streams[name].update([float(value) for value in values if np.isfinite(value)]):
                facts += self._changed(name, point, fact)
        return facts

    def refuse(self, labels: int, problem: str, now: float) -> ErrorMeasured:
        """Go on behind labels that nothing can be measured with."""
        self.labels = labels
        self._measured += 1
        return ErrorMeasured(at=now, number=self._measured, labels=labels, metrics={}, rows=0, problem=problem)

    def _changed(self, metric: str, point: ChangePoint, fact: ErrorMeasured) -> list[AnyMonitorFact]:
        if point.after <= point.before:
            if self._judging.is_open("error"):
                return [self._judging.end_alarm("error", fact.number, fact.at)]
            return []
        if self._judging.is_open("error"):
            return []
        since = self._time_of(point.since)
        moved = Moved(
            feature=metric,
            statistic="change point",
            size=point.after - point.before,
            probability=self._streams[metric].false_alarms,
            reference=f"mean {number(point.before)}",
            now=f"mean {number(point.after)}",
        )
        about = WindowJudged(
            at=fact.at,
            number=fact.number,
            model_version=fact.model_version,
            first_at=fact.first_at,
            last_at=fact.last_at,
            rows=fact.rows,
            moved=(moved,),
        )
        words = f"{metric} rose from {number(point.before)} to {number(point.after)} where labels came."
        return [self._judging.raise_alarm(about, "error", windows=(fact.number,), since=since, text=words)]

    def _time_of(self, row: int) -> float:
        """Return when the request of a labelled row came, counted over all; the oldest that is known if it is older."""
        place = row - (self._seen - len(self._times))
        return self._times[max(0, min(place, len(self._times) - 1))]


def _copied(stream: ChangePoints | None) -> ChangePoints:
    if stream is None:
        return ChangePoints()
    return msgspec.convert(msgspec.to_builtins(stream), ChangePoints)


def _array(column: pa.ChunkedArray) -> Any:
    if pa.types.is_nested(column.type):
        # The class with the highest score, as models answer with a score for each.
        return np.array([int(np.argmax(value)) if value else -1 for value in column.to_pylist()])
    return column.to_numpy(zero_copy_only=False)
