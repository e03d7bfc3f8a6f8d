from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.cli.terminal import neutralized

nasty = st.text(st.sampled_from("ab\n\t\r\x1b[]0;31mm\x07\x08\x9b\x9d\u202e\u2066\u200f\x7f\x00é"), max_size=60)


@given(st.one_of(st.text(), nasty))
def test_no_control_character_survives(text: str) -> None:
    left = neutralized(text).replace("\n", "").replace("\t", "")
    assert not [one for one in left if unicodedata.category(one) == "Cc"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", left)


@given(st.one_of(st.text(), nasty))
def test_with_colours_only_colours_survive(text: str) -> None:
    shown = neutralized(text, keep_colours=True)
    left = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\n", "").replace("\t", "")
    assert not [one for one in left if unicodedata.category(one) == "Cc"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain ü\n", "plain ü\n"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("\x1b]0;owned\x07", "␛]0;owned␇"),
        ("\x1b[2J\x1b[31mred", "␛[2J␛[31mred"),
    ],
)
def test_text_stays_readable(given: str, expected: str) -> None:
    assert neutralized(given) == expected


def test_a_colour_ends_with_its_text() -> None:
    assert neutralized("\x1b[31mred\x1b[2J", keep_colours=True) == "\x1b[31mred␛[2J\x1b[0m"
