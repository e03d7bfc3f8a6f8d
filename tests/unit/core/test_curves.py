"""Curves hold each report once: a number that comes again takes the place of that report and of all after it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.facts import Reported, TrialSuggested, pack_numbers
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve
from cargobike.experiments.reading import Curves
from cargobike.testing.journals import first_fact

METRICS = st.dictionaries(st.sampled_from(["score", "loss", "rate"]), st.floats(allow_nan=False), min_size=1)
ATTEMPTS = st.lists(st.tuples(st.integers(0, 12), st.lists(METRICS, max_size=8)), min_size=1, max_size=5)
"""What each attempt does: it goes back by so many reports, then makes these."""


@given(attempts=ATTEMPTS)
def test_every_metric_has_the_points_of_the_reports_that_survive(
    attempts: list[tuple[int, list[dict[str, float]]]],
) -> None:
    record = ExperimentRecord(first_fact(at=0.0, id="20270115-080000-test", metric="score"))
    record.apply(TrialSuggested(at=0.0, trial=0, params={}))
    curves = Curves()
    surviving: list[dict[str, float]] = []
    for attempt, (goes_back, reports) in enumerate(attempts, 1):
        for position, metrics in enumerate(reports):
            if position == 0:
                del surviving[max(0, len(surviving) - goes_back) :]
            surviving.append(metrics)
            number, step = len(surviving), len(surviving) // 2  # two reports of one step
            packed = pack_numbers(metrics)
            fact = Reported(at=0.0, trial=0, step=step, metrics=packed, attempt=attempt, number=number)
            record.apply(fact)
            curves.add(fact)
    for name in ("score", "loss", "rate"):
        expected = [((i + 1) // 2, metrics[name]) for i, metrics in enumerate(surviving) if name in metrics]
        assert list(curves.by_metric.get(name, Curve())) == expected
        if name == "score":
            assert list(record.trials[0].curve) == expected
    assert record.trials[0].reports == curves.reports == len(surviving)


def test_reports_without_numbers_follow_each_other_and_numbers_may_begin_later() -> None:
    """A journal of an earlier version that is continued by this one."""
    curves = Curves()
    for step in (0, 1, 1, 2):
        curves.add(Reported(at=0.0, trial=0, step=step, metrics={"score": float(step)}))
    curves.add(Reported(at=0.0, trial=0, step=2, metrics={"score": 9.0}, attempt=2, number=4))
    assert list(curves.by_metric["score"]) == [(0, 0.0), (1, 1.0), (1, 1.0), (2, 9.0)]


def test_a_curve_that_was_rewound_says_so() -> None:
    curve = Curve()
    for step in range(4):
        curve.add(step, 0.5, step + 1)
    curve.rewind(5)
    assert (len(curve), curve.rewinds) == (4, 0), "nothing was dropped"
    curve.rewind(2)
    curve.add(1, 0.25, 2)
    assert (list(curve), curve.rewinds) == ([(0, 0.5), (1, 0.25)], 1)
