"""The order of an epoch: complete, repeatable, mixed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cargobike.data.loading.order import Order, number_of_windows, usual_mix
from cargobike.data.loading.visits import rows_of, visits

group_rows = st.lists(st.integers(1, 40), min_size=1, max_size=30)


def whole(order: Order) -> list[tuple[int, int]]:
    """Group and row at every position of an epoch."""
    rows: list[tuple[int, int]] = []
    for window in range(order.windows):
        pieces = order.pieces(window)
        flat = [(piece.group, row) for piece in pieces for row in range(piece.start, piece.stop)]
        within = order.within(window)
        rows += flat if within is None else [flat[at] for at in within]
    return rows


@given(group_rows, st.booleans(), st.integers(0, 2**40), st.integers(0, 5), st.integers(1, 9))
def test_an_epoch_has_every_row_once(rows: list[int], shuffle: bool, seed: int, epoch: int, mix: int) -> None:
    order = Order(rows, shuffle=shuffle, seed=seed, epoch=epoch, mix=mix)
    every = [(group, row) for group, count in enumerate(rows) for row in range(count)]
    came = whole(order)
    assert sorted(came) == every
    assert shuffle or came == every
    assert order.most_groups == max(len(order.pieces(window)) for window in range(order.windows))


@given(group_rows, st.integers(0, 9), st.integers(1, 9), st.data())
def test_any_stretch_is_visited_as_it_stands_in_the_order(
    rows: list[int], seed: int, mix: int, data: st.DataObject
) -> None:
    order = Order(rows, shuffle=data.draw(st.booleans()), seed=seed, epoch=1, mix=mix)
    begin = data.draw(st.integers(0, order.rows - 1))
    end = data.draw(st.integers(begin + 1, order.rows))
    bases = dict(enumerate(np.cumsum([0, *rows[:-1]]).tolist()))
    came: list[int] = []
    for visit in visits(order, [(begin, end)]):
        needed = {piece.group: bases[piece.group] for piece in visit.pieces}
        places = rows_of(order, visit, needed)
        came += list(range(places.start, places.stop)) if isinstance(places, slice) else places.tolist()
    assert came == [bases[group] + row for group, row in whole(order)[begin:end]]


def test_seed_and_epoch_make_the_order_and_nothing_else_does() -> None:
    rows = [10] * 12
    first = whole(Order(rows, shuffle=True, seed=1, epoch=0, mix=3))
    assert first == whole(Order(rows, shuffle=True, seed=1, epoch=0, mix=3))
    assert first != whole(Order(rows, shuffle=True, seed=1, epoch=1, mix=3))
    assert first != whole(Order(rows, shuffle=True, seed=2, epoch=0, mix=3))


def test_the_order_of_a_seed_is_the_same_in_every_version() -> None:
    """Pinned: a state that was saved by an earlier version must lead to the same rows."""
    order = Order([3, 2, 4], shuffle=True, seed=7, epoch=2, mix=2)
    assert whole(order) == PINNED


PINNED = [(0, 2), (0, 1), (0, 0), (2, 0), (1, 1), (1, 0), (2, 1), (2, 2), (2, 3)]


def test_for_2_4_and_8_ranks_a_share_begins_where_a_window_does() -> None:
    rows = [50_000] * 40
    order = Order(rows, shuffle=True, seed=0, epoch=0, mix=2)
    for ranks in (2, 4, 8):
        read = []
        for rank in range(ranks):
            share = (order.rows * rank // ranks, order.rows * (rank + 1) // ranks)
            read += sorted({piece.group for visit in visits(order, [share]) for piece in visit.pieces})
        assert sorted(read) == list(range(40)), "no group is read by two ranks"


def test_sorted_labels_come_mixed() -> None:
    """Groups that lie side by side in a file are not read side by side."""
    groups, mix = 40, 2
    for seed in range(20):
        order = Order([100] * groups, shuffle=True, seed=seed, epoch=0, mix=mix)
        labels = np.array([group >= groups // 2 for group, _ in whole(order)])
        share = labels[: order.rows // 50 * 50].reshape(-1, 50).mean(axis=1)
        assert ((share > 0.1) & (share < 0.9)).mean() > 0.95


def test_small_groups_are_all_mixed_and_large_ones_in_pairs() -> None:
    assert usual_mix([1000] * 20) == 64
    assert usual_mix([100 << 20] * 20) == 2
    assert usual_mix([]) >= 2
    assert number_of_windows(20, 64) == 1
