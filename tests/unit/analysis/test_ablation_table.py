from __future__ import annotations

import pytest

from cargobike.analysis.ablation import ablation_table
from cargobike.analysis.student import t_quantile
from cargobike.core.errors import InvalidInputError
from support.sample_records import ablated, lively


def test_differences_are_within_rounds_and_the_dearest_comes_first() -> None:
    table = ablation_table(ablated())
    assert [row.component for row in table] == ["dropout", "augment", "warmup"]
    assert table.baseline.mean == pytest.approx(0.85)
    assert table.baseline.difference is None
    dropout = table.rows[0]
    assert dropout.mean == pytest.approx(0.75)
    assert dropout.difference == pytest.approx(-0.1)
    # differences -0.10, -0.09, -0.11: standard error 0.01 / sqrt(3), t of 2 degrees of freedom 4.303
    assert [dropout.low, dropout.high] == pytest.approx([-0.12484, -0.07516], abs=1e-5)
    assert dropout.is_clear
    assert dropout.changed == {"dropout": 0}
    assert not table.rows[1].is_clear


def test_rounds_without_a_partner_do_not_count() -> None:
    warmup = ablation_table(ablated()).rows[2]
    assert (warmup.rounds, warmup.failed) == (2, 1)
    assert warmup.difference == pytest.approx(0.045)


def test_minimizing_turns_the_order_round_but_not_the_sign_of_what_was_measured() -> None:
    table = ablation_table(ablated(direction="min"))
    assert [row.component for row in table] == ["dropout", "augment", "warmup"]
    assert table.rows[0].difference == pytest.approx(0.1)


def test_one_round_has_no_interval_and_no_round_no_difference() -> None:
    scores: dict[str, list[float | None]] = {"baseline": [0.9, None, None], "a": [0.8, None, None], "b": [None] * 3}
    one, none = ablation_table(ablated(scores)).rows
    assert one.difference == pytest.approx(-0.1)
    assert (one.low, one.high, one.is_clear) == (None, None, False)
    assert (none.component, none.mean, none.difference, none.failed) == ("b", None, None, 3)


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = (ablation_table(ablated(), confidence=level).rows[0] for level in (0.8, 0.99))
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low
    with pytest.raises(InvalidInputError, match="between 0 and 1, 95 was given"):
        ablation_table(ablated(), confidence=95)


def test_the_table_can_be_printed() -> None:
    lines = str(ablation_table(ablated())).splitlines()
    assert lines[0].split() == ["without", "accuracy", "difference", "95%", "interval", "rounds"]
    assert lines[1].split() == ["(baseline)", "0.85", "3"]
    assert lines[2].split() == ["dropout", "0.75", "-0.1", "[-0.1248,", "-0.07516]", "3"]


def test_another_experiment_is_no_ablation() -> None:
    with pytest.raises(InvalidInputError, match=r"is not an ablation \(its optimizer was 'random'\)"):
        ablation_table(lively())


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 4, 2.7764),
        (0.95, 9, 1.8331),
        (0.995, 30, 2.7500),
        (0.975, 1000, 1.9623),
        (0.025, 2, -4.3027),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_of_student_are_those_of_the_tables(probability: float, freedom: float, value: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_quantiles_that_do_not_exist_are_refused(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, freedom)
