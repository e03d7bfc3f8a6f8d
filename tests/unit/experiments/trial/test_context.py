"""A context that is made when it is first asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from cargobike.core.running import member
from cargobike.experiments.trial import context
from cargobike.experiments.trial.context import Context

Made = list[Context]


@pytest.fixture
def made() -> Iterator[Made]:
    """Contexts that were made; the first one that is asked for is the trial's."""
    contexts: Made = []

    def make() -> Context:
        contexts.append(Context({"lr": 0.1}))
        return contexts[-1]

    context.enter_later(make)
    yield contexts
    context.enter(None)


def test_a_trial_that_never_asks_has_none_but_is_inside(made: Made) -> None:
    assert context.is_inside()
    assert member.is_inside()
    assert made == []


@pytest.mark.parametrize("ask", [context.current, member.current])
def test_it_is_made_once_whoever_asks_first(made: Made, ask: Callable[[], object]) -> None:
    assert ask() is context.current() is member.current() is made[0]
    assert len(made) == 1


def test_threads_that_ask_at_once_get_the_same(made: Made) -> None:
    start = threading.Barrier(8)
    answers: list[Context] = []

    def ask() -> None:
        start.wait(timeout=30)
        answers.append(context.current())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(answers) == 8
    assert set(map(id, answers)) == {id(made[0])}


def test_it_is_made_before_a_process_is_forked_so_that_both_count_together(made: Made) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(len(made))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert len(made) == 1


def test_what_was_entered_is_left(made: Made) -> None:
    context.enter(None)
    assert not context.is_inside()
    assert not member.is_inside()
    assert made == []
