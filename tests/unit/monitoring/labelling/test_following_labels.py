from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.following import Stretch
from cargobike.monitoring.facts import AlarmEnded, AlarmRaised, AnyMonitorFact, ErrorMeasured, Watched
from cargobike.monitoring.labelling.following import Labelling, LabellingRecord
from cargobike.monitoring.labelling.joining import label_log, predictions_in
from cargobike.monitoring.labelling.metrics import METRICS, choose_metrics, measure, name_of
from cargobike.monitoring.watching.judging import Judging
from support.watched_rows import START, logged, small_reference


def distance(predictions: Any, labels: Any) -> Any:
    """Return how far each is off."""
    return abs(predictions - labels)


class Log:
    """A log in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.is_closed = False

    def read(self, position: str, most: int) -> Stretch:
        return Stretch(self.rows, "end", more=False)

    def end(self) -> str:
        return "end"

    def close(self) -> None:
        self.is_closed = True


def errors(sizes: list[int], right: int, wrong: int) -> list[AnyMonitorFact]:
    """Return the facts of rows that are right, then wrong, in deliveries that each go to another process."""
    rows = logged(right + wrong)
    rows = rows.append_column("label", pa.array([1.0] * right + [0.0] * wrong))
    judging, kept = Judging(Watched(subject="digits"), small_reference()), LabellingRecord()
    facts, start = list[AnyMonitorFact](), 0
    for number, size in enumerate(sizes, 1):
        labelling = Labelling(choose_metrics(["error"]), judging, kept)
        part = rows.slice(start, size)
        facts += labelling.feed(part, "output.score", "label", labels=number, unmatched=0, now=START)
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(labelling.record()), type=LabellingRecord)
        start += size
    return facts


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_an_alarm_does_not_depend_on_how_labels_are_delivered(sizes: list[int]) -> None:
    sizes = [*sizes, max(1, 600 - sum(sizes))] if sum(sizes) < 600 else sizes
    whole = [fact for fact in errors([sum(sizes)], 300, sum(sizes) - 300) if isinstance(fact, AlarmRaised)]
    parts = [fact for fact in errors(sizes, 300, sum(sizes) - 300) if isinstance(fact, AlarmRaised)]
    assert [(one.since, one.kind, one.moved) for one in parts] == [(one.since, one.kind, one.moved) for one in whole]
    assert len(whole) == 1
    assert START + 290 < whole[0].since < START + 310


def test_errors_that_fall_end_the_alarm() -> None:
    rows = logged(900).append_column("label", pa.array([1.0] * 300 + [0.0] * 300 + [1.0] * 300))
    labelling = Labelling(choose_metrics(["error"]), Judging(Watched(subject="digits"), small_reference()))
    facts = labelling.feed(rows, "output.score", "label", labels=1, unmatched=2, now=START)
    assert [type(fact) for fact in facts] == [ErrorMeasured, AlarmRaised, AlarmEnded]
    assert isinstance(facts[0], ErrorMeasured)
    assert (facts[0].rows, facts[0].unmatched) == (900, 2)
    assert facts[0].metrics["error"] == pytest.approx(1 / 3)


def test_labels_without_predictions_are_recorded() -> None:
    rows = logged(0).append_column("label", pa.array([], pa.float64()))
    labelling = Labelling(choose_metrics(["error"]), Judging(Watched(subject="digits"), small_reference()))
    (fact,) = labelling.feed(rows, "output.score", "label", labels=1, unmatched=5, now=START)
    assert isinstance(fact, ErrorMeasured)
    assert (fact.rows, fact.metrics, fact.unmatched) == (0, {}, 5)


def test_labels_find_their_request_and_their_row() -> None:
    rows = logged(4).set_column(0, "request_id", pa.array(["a", "a", "b", "c"]))
    rows = rows.set_column(rows.column_names.index("row"), "row", pa.array([0, 1, 0, 0], pa.int32()))
    log = Log(rows)
    whole = label_log(pa.table({"request_id": ["a", "x"], "label": [1, 0]}), lambda: log)
    assert whole.rows["row"].to_pylist() == [0, 1], "a label of a request is one of all its rows"
    assert whole.unmatched.num_rows == 1
    assert log.is_closed
    by_row = label_log(pa.table({"request_id": ["a", "b"], "row": [1, 0], "label": [5, 6]}), lambda: log)
    assert by_row.rows.select(["request_id", "row", "label"]).to_pylist() == [
        {"request_id": "a", "row": 1, "label": 5},
        {"request_id": "b", "row": 0, "label": 6},
    ]


def test_the_prediction_is_found_or_asked_for() -> None:
    rows = logged(2)
    assert predictions_in(rows, "")[0] == "output.score"
    assert predictions_in(rows, "score")[0] == "output.score"
    two = rows.append_column("output.digit", pa.array([1, 2]))
    assert predictions_in(two, "output.digit")[1].to_pylist() == [1, 2]
    with pytest.raises(InvalidInputError, match=r"Which of output\.score, output\.digit is the prediction"):
        predictions_in(two, "")
    bare = rows.drop_columns(["output.score"]).set_column(8, "output", pa.array(["0.5", "1"]))
    assert predictions_in(bare, "")[0] == "output.value"


def test_metrics_are_numbers_for_each_row() -> None:
    chosen = choose_metrics(["error", "mae", "mse", "log_loss", distance])
    measured = measure(chosen, np.array([0.5, 1.0]), np.array([1.0, 1.0]))
    assert measured["error"].tolist() == [1.0, 0.0]
    assert measured["mae"].tolist() == measured["distance"].tolist() == [0.5, 0.0]
    assert measured["mse"].tolist() == [0.25, 0.0]
    assert measured["log_loss"][0] == pytest.approx(-math.log(0.5))
    texts = np.array(["a", "b"], object)
    assert measure({"error": METRICS["error"]}, texts, np.array(["a", "c"], object))["error"].tolist() == [0, 1]
    with pytest.raises(InvalidInputError, match="The metric 'mae' cannot be computed of these labels"):
        measure({"mae": METRICS["mae"]}, texts, texts)
    with pytest.raises(InvalidInputError, match=r"returned \(\) for 2 rows; return a number for each row"):
        measure({"mean": lambda one, other: 1.0}, texts, texts)


def test_a_function_is_kept_by_its_name_and_found_again() -> None:
    name = name_of(distance)
    assert name.endswith("test_following_labels:distance")
    (again,) = choose_metrics([name]).values()
    assert again is distance
    with pytest.raises(InvalidInputError, match=r"The metric 'no\.such:thing' cannot be imported"):
        choose_metrics(["no.such:thing"])
