"""What changed between two spaces, in words."""

from __future__ import annotations

from typing import Any

from cargobike import Searchspace
from cargobike.core.seen import SpaceChanged
from cargobike.experiments.space_changes import change_in_words, differences


def change(before: Searchspace, after: Searchspace, **defaults: Any) -> SpaceChanged:
    return SpaceChanged(0.0, 1, after.describe(), before.describe(), defaults)


def test_each_parameter_that_changed_is_named_with_what_it_was() -> None:
    before = Searchspace(lr=("DOUBLE", [1e-3, 0.1]), act=["relu", "gelu"], n=("INTEGER", [1, 5]))
    after = Searchspace(
        lr=("DOUBLE", [1e-4, 1], "log"),
        act=["relu", "gelu", "silu"],
        n=("INTEGER", [1, 5]),
        depth=("INTEGER", [1, 9], {"step": 2, "when": {"act": "relu"}}),
    )
    assert differences(change(before, after, depth=3)) == [
        "lr 0.001 … 0.1 → 0.0001 … 1 log",
        "act [relu, gelu] → [relu, gelu, silu]",
        "depth is new: 1 … 9 step 2 when act in ['relu'], 3 in the trials before",
    ]
    assert change_in_words(change(Searchspace(k=[1]), Searchspace(k=[1, 2]))) == "after 1 trial: k [1] → [1, 2]"
