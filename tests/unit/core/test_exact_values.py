"""Values of hyperparameters come back equal in type and value from every place where they are written down."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.asked import Asked, Search
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted, TrialSuggested, encode_fact
from cargobike.core.values.exact import are_alike, pack_exactly, unpack_exactly
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.registry import describe_optimizer, is_told_whole, restore_optimizer
from cargobike.search.spaces.space import Searchspace

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["$tuple", "$dict", "$", "nan", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.sampled_from([0.0, -0.0, 1.0, 1e300, 2.0**53, math.inf])
    | TEXTS
    | st.binary(max_size=4)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS, inner, max_size=3)
        | st.dictionaries(st.integers(-5, 5) | st.booleans() | st.tuples(TEXTS), inner, max_size=2)
    ),
    max_leaves=8,
)
OF_A_SPACE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
PARAMS = st.dictionaries(TEXTS, VALUES, max_size=4)


def shown(value: Any) -> str:
    """Return what tells values apart by type and value: -0.0 is not 0.0, True is not 1, and NaN is itself."""
    return repr(value)


@given(VALUES)
def test_json_and_msgpack_give_back_what_was_packed(value: Any) -> None:
    packed = pack_exactly(value)
    assert shown(unpack_exactly(msgspec.json.decode(msgspec.json.encode(packed)))) == shown(value)
    assert shown(unpack_exactly(msgspec.msgpack.decode(msgspec.msgpack.encode(packed)))) == shown(value)
    assert are_alike(value, value)


@given(PARAMS)
def test_a_journal_gives_back_suggestions_and_what_was_asked_for(params: dict[str, Any]) -> None:
    suggested = TrialSuggested(at=0.0, trial=0, params=params, info=params)
    assert shown(EXPERIMENT_FACTS.decode(encode_fact(suggested))) == shown(suggested)
    asked = Asked(search=Search(params=params, start_points=(params,)))
    started = ExperimentStarted(at=0.0, id="20270115-080000-test", asked=asked)
    assert shown(EXPERIMENT_FACTS.decode(encode_fact(started))) == shown(started)


@given(st.lists(OF_A_SPACE, min_size=1, max_size=4))
def test_a_space_and_a_list_of_parameters_come_back_from_their_descriptions(values: list[Any]) -> None:
    listed = Listed([{"x": value, "y": [value, {"deep": value}]} for value in values])
    told = describe_optimizer(listed)
    assert is_told_whole(listed, told)
    again = restore_optimizer(msgspec.json.decode(msgspec.json.encode(told), type=type(told)))
    assert isinstance(again, Listed)
    assert shown(again.params) == shown(listed.params)
    chosen = list({shown(value): value for value in values if not isinstance(value, float)}.values())
    if len(chosen) > 1:
        space = Searchspace(x=("CATEGORICAL", chosen))
        data = msgspec.json.decode(msgspec.json.encode(space.describe()))
        assert shown(Searchspace.from_description(data)["x"].values) == shown(space["x"].values)


@pytest.mark.parametrize(
    "strange", [{"$tuple": 5}, {"$float": "0.5"}, {"$float": 1}, {"$bytes": "é"}, {"$dict": [1]}, {"$dict": [[[], 1]]}]
)
def test_what_was_not_packed_is_left_alone(strange: dict[str, Any]) -> None:
    assert unpack_exactly(strange) == strange


def test_lists_of_earlier_journals_are_the_tuples_that_they_were() -> None:
    assert are_alike({"hidden": (64, (1, 2))}, {"hidden": [64, [1, 2]]})
    assert not are_alike({"hidden": (64, 64)}, {"hidden": [64, 65]})
