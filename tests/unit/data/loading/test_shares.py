"""Who gets which rows: every row once, the same number of steps for all, whatever changes in between."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cargobike.data.loading.shares import Last, Sharing, Stage, joined, left_after, length, part_of
from cargobike.data.loading.steps import Portion

lasts = st.sampled_from(["keep", "drop", "pad"])
sharings = st.builds(Sharing, st.integers(1, 9), st.integers(1, 17), st.just("keep"))


def positions(portion: Portion) -> list[int]:
    return [at for begin, end in portion.stretches() for at in range(begin, end)]


def batches(portion: Portion) -> list[tuple[list[int], int]]:
    """The positions of each batch of a portion, and how many of them are repeated."""
    rows = iter(positions(portion))
    made = [(list(itertools.islice(rows, size)), repeated) for size, repeated in portion.sizes()]
    assert not list(rows)
    return made


@given(st.integers(1, 400), st.lists(st.tuples(sharings, st.integers(0, 30)), max_size=4), sharings)
def test_ranks_see_every_row_once_through_all_changes(
    rows: int, changes: list[tuple[Sharing, int]], final: Sharing
) -> None:
    seen: list[int] = []
    stages: list[Stage] = []
    for sharing, wish in [*changes, (final, 1_000_000)]:
        left = left_after(rows, stages)
        portions = [Portion(left, sharing, rank) for rank in range(sharing.world_size)]
        assert len({portion.steps for portion in portions}) == 1
        steps = min(wish, portions[0].steps)
        for portion in portions:
            made = batches(portion)
            assert len(made) == portion.steps
            for batch, repeated in made[:steps]:
                assert batch, "no rank may have a batch without rows"
                assert len(batch) <= max(sharing.batch_size, 2)
                assert repeated == 0 or length(left) < sharing.world_size
                seen += batch[: len(batch) - repeated]
        stages.append(Stage(sharing, steps))
    assert sorted(seen) == list(range(rows))


@given(st.integers(1, 400), st.integers(1, 9), st.integers(1, 17), lasts, st.data())
def test_the_rest_after_some_steps_is_what_the_steps_leave(
    rows: int, ranks: int, size: int, last: Last, data: st.DataObject
) -> None:
    sharing = Sharing(ranks, size, last)
    left = left_after(rows, [])
    steps = data.draw(st.integers(0, sharing.steps(rows)))
    for rank in range(ranks):
        whole = batches(Portion(left, sharing, rank))
        assert batches(Portion(left, sharing, rank, steps)) == whole[steps:]
        assert batches(Portion(left, sharing, rank).after(steps)) == whole[steps:]


@given(st.integers(1, 400), st.integers(1, 9), st.integers(1, 17))
def test_padding_fills_every_batch_and_loses_no_row(rows: int, ranks: int, size: int) -> None:
    sharing = Sharing(ranks, size, "pad")
    seen: list[int] = []
    for rank in range(ranks):
        for batch, repeated in batches(Portion([(0, rows)], sharing, rank)):
            assert len(batch) == size
            seen += batch[: size - repeated]
    assert sorted(seen) == list(range(rows))


@given(st.integers(1, 400), st.integers(1, 9), st.integers(1, 17))
def test_dropping_leaves_out_less_than_a_batch_for_each_rank(rows: int, ranks: int, size: int) -> None:
    sharing = Sharing(ranks, size, "drop")
    seen: list[int] = []
    for rank in range(ranks):
        for batch, repeated in batches(Portion([(0, rows)], sharing, rank)):
            assert (len(batch), repeated) == (size, 0)
            seen += batch
    assert seen == list(range(len(seen)))
    assert rows - len(seen) < ranks * size


def test_a_rank_that_would_have_no_row_for_the_last_step_gets_one_of_the_step_before() -> None:
    sizes = [[size for size, _ in Portion([(0, 9)], Sharing(2, 4), rank).sizes()] for rank in range(2)]
    assert sizes == [[3, 1], [4, 1]]


def test_batches_of_one_row_take_in_the_row_that_is_too_many() -> None:
    sizes = [[size for size, _ in Portion([(0, 5)], Sharing(2, 1), rank).sizes()] for rank in range(2)]
    assert sizes == [[1, 1], [1, 2]]


def test_what_is_dropped_in_the_end_is_still_there_in_the_middle() -> None:
    assert left_after(11, [Stage(Sharing(2, 2, "drop"), 1)]) == [(2, 4), (6, 11)]
    assert left_after(11, [Stage(Sharing(2, 2, "drop"), 2)]) == []


@given(st.lists(st.integers(1, 20), max_size=6), st.integers(0, 100), st.integers(0, 100))
def test_a_part_of_stretches_is_a_slice_of_their_positions(lengths: list[int], begin: int, end: int) -> None:
    stretches, at = [], 0
    for number in lengths:
        stretches.append((at, at + number))
        at += number + 3
    flat = [place for low, high in stretches for place in range(low, high)]
    part = part_of(stretches, begin, end)
    assert [place for low, high in part for place in range(low, high)] == flat[begin:end]
    assert length(joined(part)) == len(flat[begin:end])
