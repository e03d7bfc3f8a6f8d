"""Which piece is asked of which source: pure, so tried with many swarms that are made up."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cargobike.sharing.swarm.picking import Picker


def test_rare_pieces_come_first() -> None:
    picker = Picker(4, seed=1)
    picker.join("a", [True, True, True, True])
    picker.join("b", [True, True, False, True])
    picker.join("c", [True, False, False, True])
    assert picker.take("a", 2) == [2, 1]


def test_in_order_the_beginning_comes_first_and_what_is_waited_for_before_it() -> None:
    picker = Picker(6, in_order=True)
    picker.join("a", None)
    picker.want([5])
    assert picker.take("a", 3) == [5, 0, 1]


def test_a_piece_is_asked_of_one_source_until_all_were_asked_for() -> None:
    picker = Picker(4, in_order=True)
    picker.join("a", None)
    picker.join("b", None)
    assert picker.take("a", 3) == [0, 1, 2]
    assert picker.take("b", 1) == [3]
    assert picker.take("b", 10) == [], "it has something to do"
    picker.got(3)
    assert picker.take("b", 10) == [2, 1], "few at a time, those first that the other comes to last"
    assert picker.take("b", 10) == [], "never twice of the same source"
    assert picker.got(2) == {"a", "b"}


def test_only_pieces_that_are_open_are_asked_for() -> None:
    picker = Picker(4, in_order=True, is_open=False)
    picker.join("a", None)
    picker.join("b", None)
    picker.want([3])
    assert picker.take("a", 4) == []
    picker.open([1, 2])
    picker.got(1)
    assert picker.take("a", 4) == [2]
    assert picker.take("b", 4) == [2], "all that may be asked for has been"
    picker.open([0, 3])
    assert picker.take("b", 4) == [3, 0]
    assert picker.missing == 3


def test_what_a_source_that_leaves_was_asked_for_is_asked_of_others() -> None:
    picker = Picker(3, in_order=True)
    picker.join("a", None)
    assert picker.take("a", 3) == [0, 1, 2]
    picker.leave("a")
    picker.join("b", [True, False, True])
    assert picker.take("b", 3) == [0, 2]


def test_a_source_that_lost_a_piece_is_not_asked_for_it_again() -> None:
    picker = Picker(2, in_order=True)
    picker.join("a", None)
    assert picker.take("a", 2) == [0, 1]
    picker.lacks("a", 0)
    assert picker.take("a", 2) == []
    picker.join("a", [True, True])
    assert picker.take("a", 2) == [0]


@given(
    count=st.integers(1, 40),
    holes=st.lists(st.integers(0, 255), min_size=1, max_size=6),
    in_order=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_swarm_delivers_all_that_any_source_has(count: int, holes: list[int], in_order: bool, seed: int) -> None:
    """Sources answer in any order, lose pieces, leave and return: what someone has comes, and nothing comes twice."""
    draw = random.Random(seed)
    picker = Picker(count, in_order=in_order, seed=seed, is_open=False)
    closed = set(range(count))
    has = {f"s{index}": [draw.randrange(256) >= hole for _ in range(count)] for index, hole in enumerate(holes)}
    asked: dict[str, set[int]] = {name: set() for name in has}
    here = set(has)
    for name, flags in has.items():
        picker.join(name, flags)
    for step in range(100 * count):
        reachable = {piece for name in has for piece in range(count) if has[name][piece]}
        if all(picker.has(piece) for piece in reachable):
            break
        name = draw.choice(sorted(has))
        move = draw.randrange(10)
        if name not in here:
            here.add(name)
            picker.join(name, has[name])
        elif move == 0 and step < 50 * count:
            here.discard(name)
            picker.leave(name)
            asked[name].clear()
        elif closed and draw.randrange(2):
            picker.open([closed.pop()])
        elif move == 1:
            picker.want([draw.randrange(count)])
        elif move < 6:
            taken = picker.take(name, draw.randint(1, 4))
            assert len(set(taken)) == len(taken)
            assert not asked[name] & set(taken), "never twice of the same source at once"
            assert all(has[name][piece] and not picker.has(piece) and piece not in closed for piece in taken)
            asked[name] |= set(taken)
        elif asked[name]:
            piece = draw.choice(sorted(asked[name]))
            asked[name].discard(piece)
            if draw.randrange(8) == 0:
                picker.give_back(name, piece)
            else:
                for other in picker.got(piece):
                    asked[other].discard(piece)
    else:
        raise AssertionError("it did not end")
    assert picker.missing == count - len(reachable)
