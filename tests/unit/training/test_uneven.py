"""The arithmetic of shares, without processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import read_environment
from cargobike.training.uneven import POLICIES, Policy, choose_policy, share_length, take_share

LENGTHS, WORLDS = st.integers(1, 200), st.integers(1, 9)


@pytest.mark.parametrize("policy", POLICIES)
@given(length=LENGTHS, world=WORLDS)
def test_lengths_are_what_is_said(policy: Policy, length: int, world: int) -> None:
    shares = [take_share(range(length), rank, world, policy) for rank in range(world)]
    assert [len(share) for share in shares] == [share_length(length, rank, world, policy) for rank in range(world)]


@given(length=LENGTHS, world=WORLDS)
def test_dropping_uses_nothing_twice_and_pads_nobody(length: int, world: int) -> None:
    shares = [take_share(range(length), rank, world, "drop") for rank in range(world)]
    used = [item for share in shares for item in share]
    assert len(used) == len(set(used)) == length - length % world
    assert len({len(share) for share in shares}) == 1


@given(length=LENGTHS, world=WORLDS)
def test_padding_uses_everything_and_gives_equally_many(length: int, world: int) -> None:
    shares = [take_share(range(length), rank, world, "pad") for rank in range(world)]
    assert {item for share in shares for item in share} == set(range(length))
    assert {len(share) for share in shares} == {-(-length // world)}


@given(length=LENGTHS, world=WORLDS)
def test_joining_uses_everything_exactly_once(length: int, world: int) -> None:
    shares = [take_share(range(length), rank, world, "join") for rank in range(world)]
    assert sorted(item for share in shares for item in share) == list(range(length))


@pytest.mark.parametrize(
    ("facts", "policy"),
    [
        ({"is_stream": False, "trains": True, "shuffles": True, "can_join": True}, "pad"),
        ({"is_stream": False, "trains": False, "shuffles": False, "can_join": True}, "join"),
        ({"is_stream": True, "trains": True, "shuffles": False, "can_join": False}, "drop"),
    ],
)
def test_the_default_depends_on_what_the_data_is_for(facts: dict[str, bool], policy: Policy) -> None:
    assert choose_policy("auto", **facts) == policy


def test_impossible_policies_are_refused() -> None:
    facts = {"is_stream": False, "trains": True, "shuffles": True, "can_join": False}
    with pytest.raises(InvalidInputError, match=r"must be one of auto, drop, pad, join, not 'dropp'.*mean 'drop'"):
        choose_policy("dropp", **facts)
    with pytest.raises(InvalidInputError, match="needs strategy 'ddp' or 'zero1'"):
        choose_policy("join", **facts)


def test_incomplete_variables_are_named_all_at_once() -> None:
    with pytest.raises(
        InvalidInputError, match=r"(?s)WORLD_SIZE is not set.*LOCAL_RANK must be a whole number, not 'x'"
    ):
        read_environment({"RANK": "0", "LOCAL_RANK": "x"})
    with pytest.raises(InvalidInputError, match="RANK 2 is not below WORLD_SIZE 2"):
        read_environment({"RANK": "2", "WORLD_SIZE": "2"})
    with pytest.raises(InvalidInputError, match="MASTER_PORT is not set"):
        read_environment({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"})
    assert read_environment({}).world_size == 1
