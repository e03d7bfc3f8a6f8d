from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import read_seconds


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (2, 2.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("15m", 900.0),
        ("15 min", 900.0),
        ("1h30m", 5400.0),
        ("1 h 30 min", 5400.0),
        ("1.5 hours", 5400.0),
        ("2 days", 172800.0),
        ("250ms", 0.25),
        (timedelta(minutes=2), 120.0),
        (math.inf, None),
        (None, None),
    ],
)
def test_lengths_of_time_are_read_as_people_write_them(given: Any, seconds: float | None) -> None:
    assert read_seconds("timeout_s", given) == seconds


@pytest.mark.parametrize("given", ["", "soon", "1x", "h", "-1h", "1h,30m", "9" * 60, True, [1], 0, -1, math.nan, "0s"])
def test_what_is_no_length_of_time_is_refused_by_name(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^timeout_s must be .* was given"):
        read_seconds("timeout_s", given)
