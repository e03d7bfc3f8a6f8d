"""Which files may be on this disk at once: pure, so tried with many sizes that are made up."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cargobike.sharing.pieces.window import Window


def test_a_file_that_is_waited_for_is_begun_at_once_and_only_once() -> None:
    window = Window([5, 5, 5], most=5)
    assert window.advance() == [0]
    assert window.begin_now(2)
    assert not window.begin_now(2)
    window.close(0)
    assert window.advance() == [], "the one that was waited for takes the room"
    window.close(2)
    assert window.advance() == [1]


def test_files_of_which_parts_are_here_come_first_and_those_in_their_places_not_at_all() -> None:
    window = Window([1, 1, 1, 1], most=2)
    window.skip([0])
    window.prefer([3])
    assert window.room == 2
    assert window.advance() == [3, 1]


@given(sizes=st.lists(st.integers(1, 100), max_size=12), most=st.integers(1, 120), seed=st.integers(0, 2**32))
def test_every_file_has_its_turn_and_the_bound_is_kept(sizes: list[int], most: int, seed: int) -> None:
    draw, window = random.Random(seed), Window(sizes, most)
    room = window.room
    begun: list[int] = []
    order: list[int] = []
    while new := window.advance() or begun:
        if new is not begun:
            begun += new
            order += new
        assert sum(sizes[index] for index in begun) <= max(most, *(sizes[index] for index in begun))
        assert sum(sizes[index] for index in begun) <= room
        window.close(begun.pop(draw.randrange(len(begun))))
    assert order == list(range(len(sizes)))
