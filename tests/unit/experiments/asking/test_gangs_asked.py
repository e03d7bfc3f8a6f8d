"""The gangs that a call asks for: their sizes, their roles, and what cannot be a gang."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.core.asked import Gang
from cargobike.core.errors import InvalidInputError
from cargobike.experiments.asking.gangs import gang_of, gang_with_servers


@pytest.mark.parametrize(
    ("workers", "size", "least"),
    [(None, None, None), (1, 1, None), (3, 3, None), ((1, 1), 1, 1), ((2, 2), 2, 2), ((2, 8), 8, 2)],
)
def test_a_gang_has_the_size_that_was_asked_for(workers: Any, size: int | None, least: int | None) -> None:
    assert gang_of(workers, None) == Gang(size=size, least=least, is_distributed=True)


@pytest.mark.parametrize("workers", [0, -1, (0, 2), (2, 0), (3, 2)])
def test_a_gang_of_no_possible_size_is_refused(workers: Any) -> None:
    with pytest.raises(InvalidInputError, match="workers"):
        gang_of(workers, None)


def test_more_than_the_most_is_refused_in_words_about_both() -> None:
    with pytest.raises(InvalidInputError, match=r"workers=\(3, 2\) was given; .* the least and the most of them"):
        gang_of((3, 2), None)


def test_roles_are_in_the_order_of_ranks() -> None:
    gang = gang_of(None, {"ps": 1, "worker": 2, "evaluator": 1, "chief": 1})
    assert gang.roles == ("chief", "worker", "worker", "ps", "evaluator")
    assert gang == Gang(size=5, roles=gang.roles, is_distributed=True)


@pytest.mark.parametrize("roles", [{"chief": 1}, {"worker": 1}, {"chief": 1, "worker": 3}])
def test_a_chief_or_a_worker_is_enough(roles: dict[str, int]) -> None:
    assert gang_of(None, roles).size == sum(roles.values())


@pytest.mark.parametrize(
    ("roles", "workers", "words"),
    [
        ({"cheif": 1}, None, ["'cheif' is not a role", "chief"]),
        ({"worker": 0}, None, ["worker=0; give a whole number of at least 1"]),
        ({"worker": True}, None, ["worker=True; give a whole number"]),
        ({"chief": 2, "worker": 1}, None, ["there can be one chief only"]),
        ({"ps": 1}, None, ["there is neither a chief nor a worker"]),
        ({"worker": 2}, 2, ["workers=2 as well; leave it out"]),
        ({"boss": 1, "ps": 0}, 3, ["'boss' is not a role", "ps=0", "workers=3 as well"]),
    ],
)
def test_roles_that_make_no_gang_are_refused(roles: dict[str, int], workers: int | None, words: list[str]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        gang_of(workers, roles)
    assert [text for text in words if text not in str(caught.value)] == []


def test_one_mistake_is_not_followed_by_another_that_comes_of_it() -> None:
    with pytest.raises(InvalidInputError) as caught:
        gang_of(None, {"boss": 1})
    assert "neither" not in str(caught.value)


def test_a_gang_with_servers_keeps_their_number_and_options() -> None:
    assert gang_with_servers(None, 1, {}) == Gang(size=None, servers=1, is_distributed=True, options={})
    options = {"timeout_s": 5}
    asked = gang_with_servers(2, 3, options)
    assert asked == Gang(size=2, servers=3, is_distributed=True, options=options)
    for workers, servers in ((0, 1), (1, 0)):
        with pytest.raises(InvalidInputError, match=r"at least 1|above 0"):
            gang_with_servers(workers, servers, {})
    with pytest.raises(InvalidInputError, match="on_stale"):
        gang_with_servers(1, 1, {"on_stale": "hope"})
