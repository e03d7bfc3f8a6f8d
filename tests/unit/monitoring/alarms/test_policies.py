"""How many windows of how many make an alarm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring import Policy


@given(judged=st.lists(st.booleans(), max_size=30), needed=st.integers(1, 5), more=st.integers(0, 5))
def test_an_alarm_is_raised_while_enough_windows_are_unusual(judged: list[bool], needed: int, more: int) -> None:
    policy = Policy(needed, needed + more)
    windows = policy.windows
    expected = [sum(judged[max(0, end - windows) : end]) >= needed for end in range(1, len(judged) + 1)]
    assert policy.raised(judged) == expected
    since = policy.since(judged)
    assert (since is not None) == bool(expected and expected[-1])
    if since is not None:
        assert judged[since]
        assert expected[since:].count(True) >= 1


@pytest.mark.parametrize("text", ["3 of 5", " 3 OF 5", "3/5"])
def test_policies_are_written_as_people_say_them(text: str) -> None:
    assert Policy.parse(text) == Policy(3, 5)
    assert str(Policy(3, 5)) == "3 of 5"


@pytest.mark.parametrize("text", ["", "three of five", "3", "3 of", "-1 of 5"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="such as '3 of 5'"):
        Policy.parse(text)


@pytest.mark.parametrize("text", ["6 of 5", "0 of 5"])
def test_a_policy_that_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not more than there are windows"):
        Policy.parse(text)


def test_it_began_with_the_first_unusual_window() -> None:
    policy = Policy.parse("3 of 5")
    assert policy.since([True, False, False, False, False, False, True, False, True, True]) == 6
    assert policy.since([True] * 3 + [False] * 3) is None
    assert policy.since([]) is None
