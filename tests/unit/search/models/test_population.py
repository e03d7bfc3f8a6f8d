"""Places in a population are found as by sorting all of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.search.models.population import Ranking, Score, Slot, Waiting

SIZE = 8
NOTES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 3), st.booleans()), max_size=40)
MOVES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 4), st.booleans()), max_size=60)


@settings(deadline=None)
@given(NOTES, st.integers(0, SIZE))
def test_a_ranking_is_what_sorting_gives(notes: list[tuple[int, int, bool]], count: int) -> None:
    ranking, scores = Ranking(), dict[int, Score]()
    for number, (index, loss, is_number) in enumerate(notes):
        scores[index] = (0, float(loss), number) if is_number else (1, 0.0, number)
        ranking.note(index, scores[index])
    order = sorted(scores, key=lambda index: scores[index])
    assert (len(ranking), list(ranking.best())) == (len(order), order)
    assert list(ranking.best(count)) == order[:count]
    last = set(order[max(0, len(order) - count) :])
    assert [ranking.is_among_last(index, count) for index in range(SIZE)] == [index in last for index in range(SIZE)]


@settings(deadline=None)
@given(MOVES)
def test_the_youngest_that_waits_comes_first(moves: list[tuple[int, int, bool]]) -> None:
    slots = [Slot(index) for index in range(SIZE)]
    waiting = Waiting(slots)
    for index, age, waits in moves:
        slots[index].age = age
        if waits:
            waiting.add(slots[index])
        else:
            slots[index].is_waiting = False
        those = [slot for slot in slots if slot.is_waiting]
        wanted = min(those, key=lambda slot: (slot.age, slot.index), default=None)
        assert waiting.youngest() is wanted
