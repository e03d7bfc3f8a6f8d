from __future__ import annotations

import json
import math

import pytest
from rich.console import Console

from cargobike.cli import printing
from cargobike.cli.grid import Grid
from cargobike.cli.printing import cell, parameters, print_json, print_table, table

ID, OTHER = "20261116-194357-73d3", "20261116-194357-aaaa"


def test_parameters_are_short() -> None:
    assert parameters({"lr": 1 / 3, "act": "relu", "n": 3}) == "lr=0.333333 act=relu n=3"


def test_json_has_no_words_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, math.inf, -math.inf, 1.5], "b": {1: None}})
    assert json.loads(capsys.readouterr().out) == {"a": ["nan", "inf", "-inf", 1.5], "b": {"1": None}}


@pytest.fixture
def show_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> object:
    def show(grid: Grid, width: int) -> list[str]:
        monkeypatch.setattr(printing, "console", lambda: Console(width=width, force_terminal=True, color_system=None))
        print_table(grid)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return show


def experiments() -> Grid:
    grid = table(
        *("ID", "STATE", "NAME", "TRIALS", "BEST", "DURATION", "STARTED"),
        right=("TRIALS", "BEST"),
        shortened=("NAME",),
        optional=("STARTED", "DURATION"),
    )
    long = "a rather long name " * 5
    for words in (
        (ID, "interrupted", long, "1000/1000", "0.000460999", "2 min 05 s", "59 min ago"),
        (OTHER, "failed", "short", "1/1", "–", "1.0 s", "just now"),
    ):
        grid.add_row(*map(cell, words))
    return grid


@pytest.mark.parametrize("width", [66, 80, 100, 120, 200])
def test_ids_and_numbers_stay_whole_and_names_give_way(width: int, show_at: object) -> None:
    lines = show_at(experiments(), width)  # type: ignore[operator]
    words = " ".join(lines).split()
    for whole in (ID, "interrupted", "1000/1000", "0.000460999", "short", OTHER, "1/1"):
        assert whole in words
    assert ("…" in " ".join(lines)) == (width < 200)
    assert max(map(len, lines)) <= width
    left_out = [line for line in lines if line.startswith("No room for")]
    assert len(lines) == 3 + len(left_out)
    assert ("DURATION" in words) == (width >= 80)
    assert ("STARTED" in words) == (width >= 100)
    assert bool(left_out) == (width < 100)


def test_a_terminal_that_is_too_narrow_for_everything_still_gets_every_character(show_at: object) -> None:
    lines = show_at(experiments(), 40)  # type: ignore[operator]
    words = " ".join(lines).split()
    for whole in (ID, "interrupted", "1000/1000", "0.000460999", OTHER):
        assert whole in words


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_long_texts_are_folded_and_lose_nothing(width: int, show_at: object) -> None:
    grid = table("SETTINGS", ID, OTHER, folded=(ID, OTHER))
    left, right = "abcdefghij" * 7, "klmnopqrst" * 5
    grid.add_row(cell("constraints"), cell(left), cell(right))
    lines = show_at(grid, width)  # type: ignore[operator]
    assert lines[0].split() == ["SETTINGS", ID, OTHER]
    text = "".join(lines[1:])
    assert text.count("j") == 7
    assert text.count("t") - "constraints".count("t") == 5
    if width >= 60:
        assert max(map(len, lines)) <= width


def test_numbers_in_the_last_column_are_not_folded(show_at: object) -> None:
    grid = table("model", "images/s", "loss", right=("images/s", "loss"))
    grid.add_row(cell("a model of some length"), cell("123,456,789"), cell("0.123456789"))
    assert show_at(grid, 30)[1].split()[-2:] == ["123,456,789", "0.123456789"]  # type: ignore[operator]


def test_a_program_gets_one_line_for_each_row_and_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(experiments())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert ("a rather long name " * 5).strip() in lines[1]
    assert lines[1].endswith("59 min ago")
