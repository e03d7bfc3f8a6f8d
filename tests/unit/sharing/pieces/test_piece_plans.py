"""Pieces are numbered; equal files are there once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.shapes import File
from cargobike.sharing.wire.member import bits_of, flags_of


def file(path: str, size: int, root: str = "") -> File:
    return File(path=path, size=size, root=root or f"{len(path) * 1000 + size:064x}" if size else "")


def test_equal_files_are_fetched_once_and_empty_ones_never() -> None:
    plan = Plan([file("a", 100), file("empty", 0), file("b", 250, "b" * 64), file("c", 250, "b" * 64)], 100)
    assert plan.count == 4
    assert plan.twins == [["a"], ["b", "c"]]
    assert plan.empty == ["empty"]
    assert plan.index_of("c") == 1
    assert plan.index_of("empty") is None


@given(st.lists(st.integers(0, 1000), max_size=20), st.sampled_from([1, 7, 64, 100]))
def test_pieces_cover_every_byte_once(sizes: list[int], piece_size: int) -> None:
    plan = Plan([file(f"f{number}", size, f"{number:064x}") for number, size in enumerate(sizes)], piece_size)
    spots = list(plan.spots())
    assert sum(spot.length for spot in spots) == sum(sizes)
    for index, one in enumerate(plan.files):
        mine = [spots[piece] for piece in plan.pieces_of(index)]
        assert [spot.offset for spot in mine] == list(range(0, one.size, piece_size))
        assert {spot.root for spot in mine} == {one.root}
        whole = plan.covering(index, 0, one.size)
        assert whole == plan.pieces_of(index)
        if one.size > piece_size:
            assert list(plan.covering(index, piece_size - 1, 2)) == list(plan.pieces_of(index))[:2]


@given(st.lists(st.booleans(), max_size=70))
def test_bits_are_flags(flags: list[bool]) -> None:
    assert flags_of(bits_of(flags), len(flags)) == flags
    assert flags_of(bits_of(flags) + b"\xff\xff", len(flags))[: len(flags)] in (flags, [True] * len(flags))
