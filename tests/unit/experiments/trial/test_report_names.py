"""Reports that lack what running trials are compared by."""

from __future__ import annotations

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.trial.report_names import ReportNames


def test_the_objective_can_be_judged() -> None:
    assert ReportNames("accuracy").can_be_judged({"accuracy": 1.0, "loss": 2.0}, 0)


def test_another_name_is_refused_with_both_names_in_the_end() -> None:
    names = ReportNames("accuracy")
    assert not names.can_be_judged({"acuracy": 1.0}, 1)
    assert not names.can_be_judged({"acuracy": 1.0}, 2)

    with pytest.raises(InvalidInputError, match=r"compared by 'accuracy', but .* reports 'acuracy'.*Did you mean"):
        names.check_returned({"accuracy": 1.0})


def test_the_objective_may_come_at_every_tenth_step(caplog: pytest.LogCaptureFixture) -> None:
    names = ReportNames("accuracy")
    for step in range(9):
        assert not names.can_be_judged({"loss": 1.0}, step)
    assert names.can_be_judged({"loss": 1.0, "accuracy": 1.0}, 9)
    assert not names.can_be_judged({"loss": 1.0}, 10)
    names.check_returned({"accuracy": 1.0})
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "Running trials are compared by 'accuracy'"
    ]


def test_an_attempt_that_goes_on_may_have_reported_the_objective_before() -> None:
    names = ReportNames("accuracy", is_whole=False)
    assert not names.can_be_judged({"loss": 1.0}, 11)
    assert not names.can_be_judged({"loss": 1.0}, 12)
    names.check_returned({"accuracy": 1.0})


def test_the_objective_may_come_in_a_report_of_its_own() -> None:
    names = ReportNames("accuracy")

    assert not names.can_be_judged({"loss": 1.0}, 1)
    assert names.can_be_judged({"accuracy": 1.0}, 1)
    assert not names.can_be_judged({"loss": 1.0}, 2)
    assert not names.can_be_judged({"loss": 1.0}, 3)


def test_without_a_metric_the_only_name_is_taken() -> None:
    names = ReportNames(None)

    assert names.can_be_judged({"loss": 1.0}, 0)
    assert not names.can_be_judged({"accuracy": 1.0}, 1)


def test_of_several_names_one_must_be_chosen() -> None:
    names = ReportNames(None)
    assert not names.can_be_judged({"loss": 1.0, "accuracy": 0.5}, 0)

    with pytest.raises(InvalidInputError, match=r"reports 'loss' and 'accuracy', and it is not clear.*metric='loss'"):
        names.can_be_judged({"loss": 1.0, "accuracy": 0.5}, 1)


def test_a_score_by_another_name_than_the_reports_is_refused() -> None:
    names = ReportNames(None)
    assert names.can_be_judged({"loss": 1.0}, 0)
    names.check_returned({"loss": 1.0})
    names.check_returned({})
    names.check_returned({"loss": 1.0, "accuracy": 1.0})

    with pytest.raises(InvalidInputError, match=r"returned 'accuracy', but reports 'loss'"):
        names.check_returned({"accuracy": 1.0})


def test_what_was_never_reported_is_not_compared_with_what_was_returned() -> None:
    ReportNames(None).check_returned({"accuracy": 1.0})
