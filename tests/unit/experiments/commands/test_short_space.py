"""Spaces in a word or two on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from cargobike.core.errors import SpaceError
from cargobike.experiments.commands.short_space import read_short, read_spaces
from cargobike.spaces import Searchspace


def test_ranges_choices_and_fixed_values_are_read() -> None:
    texts = ["lr=1e-4..1e-1 log", "dropout=0..0.5 step 0.1", "layers=1..5", "bias=-1..1", "act=relu,gelu", "n=10"]
    assert read_short(texts) == Searchspace(
        lr=("DOUBLE", [1e-4, 1e-1], "log"),
        dropout=("DOUBLE", [0, 0.5], {"step": 0.1}),
        layers=("INTEGER", [1, 5]),
        bias=("INTEGER", [-1, 1]),
        act=["relu", "gelu"],
        n=[10],
    )


def test_choices_alone_are_a_grid() -> None:
    assert read_short(["lr=0.1,1e-2", "amp=true,false", "name=a b"]) == {
        "lr": [0.1, 0.01],
        "amp": [True, False],
        "name": ["a b"],
    }


def test_names_may_lead_into_a_configuration() -> None:
    texts = ["model.lr=1,2", "+model.depth=3", "db/engine=lite,large", "++x=1"]
    assert read_short(texts) == {
        "model.lr": [1, 2],
        "+model.depth": [3],
        "db/engine": ["lite", "large"],
        "++x": [1],
    }


@pytest.mark.parametrize(
    "text", ["model.=1", ".lr=1", "a b=1", "--lr=1", "lr", "lr=", "=1..2", "1x=1..2", "lr=a..b", "lr=1..2 step x"]
)
def test_what_is_no_parameter_is_refused(text: str) -> None:
    with pytest.raises((typer.BadParameter, SpaceError)):
        read_short([text])


def test_a_name_is_given_once_and_a_space_in_one_way() -> None:
    with pytest.raises(typer.BadParameter, match="'lr' is given twice"):
        read_short(["lr=1..2", "lr=3"])
    with pytest.raises(typer.BadParameter, match="either --space FILE, or --param"):
        read_spaces(None, [])
    with pytest.raises(typer.BadParameter, match="either --space FILE, or --param"):
        read_spaces("space.yaml", ["lr=1..2"])
    assert read_spaces("space.yaml", []) == Path("space.yaml")
    assert read_spaces("lr: {double: [0, 1]}", []) == Searchspace(lr=("DOUBLE", [0, 1]))
