"""Assignments that an agent is given ahead: each is begun once at most, and ends once or is returned."""

from __future__ import annotations

import signal
from collections import Counter, deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.workers import agent_events as ev
from cargobike.workers.agent import ALONE_S, LATE_S
from cargobike.workers.line import MOST_SENT_BYTES, Line
from cargobike.workers.wire import inner
from cargobike.workers.wire import messages as wire
from support.agent_world import World, raw


class Bench(World):
    """A world with a runner that reads its line when it is done, and an agent that hears of it later."""

    def __init__(self) -> None:
        super().__init__(reuse=True, holds=True)
        self.line: deque[Any] = deque()
        self.unheard: list[wire.Ended[Any]] = []
        self.printed: deque[tuple[int, bytes]] = deque()
        self.at_work: int | None = None
        self.is_alive = False
        self.begun: Counter[int] = Counter()
        self.halted: set[int] = set()

    # -- the runner ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin the next assignment, if the runner is free and all that was printed has been read."""
        if self.is_alive and self.at_work is None and self.line and not self.printed:
            message = self.line.popleft()
            if isinstance(message, inner.Leave):
                self.exit_now(0)
            else:
                self._begin(message.task)

    def _begin(self, task: int) -> None:
        self.at_work = task
        self.begun[task] += 1
        assert not self.flag or task in self.halted, "it is asked to stop for what another one has done"

    def end_work(self) -> None:
        if self.at_work is not None:
            self.unheard.append(wire.Ended(self.at_work, 1, raw("done")))
            self.at_work = None

    def print_something(self) -> None:
        if self.at_work is not None:
            self.printed.append((self.at_work, b"<%d>" % self.at_work))

    def exit_now(self, code: int = -signal.SIGKILL) -> None:
        if self.is_alive:
            self.is_alive, self.at_work = False, None
            self._catch_up(is_dead=True)
            self.exit(code)

    # -- the loop ----------------------------------------------------------------------------------------------------

    def hear(self) -> None:
        if self.printed:
            self._catch_up()
        while self.unheard:
            self._hear_runner(self.unheard.pop(0))

    def _catch_up(self, *, is_dead: bool = False) -> None:
        count = len(self.line)
        self.line.clear()
        self._happen(ev.TakenBack(self.at, count))
        messages, self.unheard = self.unheard, []
        is_between = 0 < len(messages) >= self.agent.sent
        for message in messages:
            if is_between and message is messages[-1]:
                self._read()
            self._hear_runner(message)
        if not is_between:
            self._read()
        if not is_dead:
            self._happen(ev.CaughtUp(self.at))

    def _read(self) -> None:
        while self.printed:
            self.print(self.printed.popleft()[1].decode())

    def _do(self, command: ev.Command) -> None:
        if isinstance(command, ev.SendInLine):
            self.line.append(inner.decode_for_runner(command.packet))
        elif isinstance(command, ev.CatchUp):
            self._catch_up()
        elif isinstance(command, ev.TellTemplate) and isinstance(command.message, inner.Start):
            assert not self.is_alive, "one runner at a time"
            self.is_alive = True
            message = wire.decode_driver_message(command.message.assign)
            assert isinstance(message, wire.Assign)
            self._begin(message.task)
            super()._do(command)
        elif isinstance(command, ev.TellTemplate) and isinstance(command.message, inner.Kill):
            super()._do(command)
            self.exit_now()
        else:
            super()._do(command)

    # -- the driver --------------------------------------------------------------------------------------------------

    @property
    def ended(self) -> list[int]:
        return [message.task for message in self.heard(wire.Ended, wire.Died)]

    @property
    def returned(self) -> list[int]:
        return [task for message in self.heard(wire.Returned) for task in message.tasks]

    def working_on(self) -> int | None:
        return self.at_work

    def is_flagged(self) -> bool:
        return self.flag

    def recall(self) -> None:
        self._order(wire.Recall())


def busy(count: int) -> Bench:
    bench = Bench()
    for task in range(1, count + 1):
        bench.assign(task)
    return bench


class TestAheadOfTime:
    def test_a_runner_goes_on_by_itself_and_is_heard_later(self) -> None:
        bench = busy(4)
        for _ in range(4):
            bench.end_work()
            bench.begin()
        assert bench.ended == []
        bench.hear()
        assert bench.ended == [1, 2, 3, 4]

    def test_what_waits_behind_one_that_takes_long_is_returned(self) -> None:
        bench = busy(4)
        bench.end_work()
        bench.begin()
        bench.hear()
        bench.pass_time(2 * LATE_S)
        assert bench.returned == [3, 4]
        bench.end_work()
        bench.hear()
        assert bench.ended == [1, 2]

    def test_one_that_made_progress_unheard_keeps_what_it_has(self) -> None:
        bench = busy(4)
        bench.end_work()
        bench.begin()
        bench.pass_time(1.5 * LATE_S)
        assert bench.returned == []
        assert (bench.ended, [message.task for message in bench.line]) == ([1], [3, 4])

    def test_a_stop_reaches_the_one_it_is_meant_for_and_no_other(self) -> None:
        bench = busy(3)
        bench.end_work()
        bench.begin()
        bench.halt(1, grace_s=1.0)
        assert not bench.is_flagged(), "it had ended, and the next one has begun"
        bench.halted.add(2)
        bench.halt(2, grace_s=1.0)
        assert bench.is_flagged()
        bench.end_work()
        bench.begin()
        assert bench.working_on() is None, "the next one waits until the flag is its own"
        bench.hear()
        bench.begin()
        assert (bench.working_on(), bench.is_flagged()) == (3, False)

    def test_output_is_that_of_the_one_that_printed(self) -> None:
        bench = busy(4)
        bench.end_work()
        bench.begin()
        bench.print_something()
        bench.end_work()
        bench.begin()
        assert bench.working_on() is None
        bench.hear()
        assert bench.output() == {2: b"<2>"}
        assert isinstance(bench.heard()[-1], wire.Ended), "what was printed before arrives before"
        bench.begin()
        assert (bench.working_on(), len(bench.line)) == (3, 0), "who has just printed gets one at a time"
        bench.pass_time(ALONE_S + 1.0)

    def test_a_runner_that_dies_takes_only_its_own_along(self) -> None:
        bench = busy(4)
        bench.end_work()
        bench.begin()
        bench.exit_now()
        assert [type(message) for message in bench.heard(wire.Ended, wire.Died)] == [wire.Ended, wire.Died]
        assert (bench.working_on(), bench.is_alive) == (3, True), "another one goes on"

    def test_one_that_dies_between_two_costs_nothing(self) -> None:
        bench = busy(3)
        bench.end_work()
        bench.exit_now()
        assert not bench.heard(wire.Died)
        assert bench.working_on() == 2

    def test_one_that_dies_after_the_last_is_replaced(self) -> None:
        bench = busy(1)
        bench.end_work()
        bench.exit_now()
        bench.assign(2)
        bench.assign(3)
        bench.end_work()
        bench.begin()
        assert bench.working_on() == 3

    def test_a_recall_is_always_answered(self) -> None:
        bench = busy(1)
        bench.recall()
        assert bench.heard() == [wire.Returned(())]
        bench.assign(2)
        bench.recall()
        assert bench.returned == [2]


def test_what_is_sent_ahead_fits_into_the_socket() -> None:
    line = Line()
    packet = bytes(MOST_SENT_BYTES // 3)
    assign = wire.Assign(1, 1, raw())
    line.was_sent(b"the current one")
    for _ in range(5):
        line.waiting.append((assign, packet))
    while (following := line.next_packet()) is not None:
        line.was_sent(following)
    assert line.sent == 3


MOVES = st.lists(
    st.sampled_from(
        [
            "assign",
            "assign",
            "assign",
            "begin",
            "begin",
            "end",
            "end",
            "print",
            "hear",
            "die",
            "halt",
            "recall",
            "tick",
            "wait",
        ]
    ),
    max_size=80,
)


@settings(max_examples=300)
@given(moves=MOVES)
def test_each_assignment_ends_once_or_is_returned(moves: list[str]) -> None:
    bench, assigned = Bench(), 0
    for move in moves:
        if move == "assign" and assigned - len(bench.ended) - len(bench.returned) < 6:
            assigned += 1
            bench.assign(assigned)
        elif move == "begin":
            bench.begin()
        elif move == "end":
            bench.end_work()
        elif move == "print":
            bench.print_something()
        elif move == "hear":
            bench.hear()
        elif move == "die":
            bench.exit_now()
        elif move == "halt":
            task = _next_task(bench, assigned)
            if task is not None:
                bench.halted.add(task)
                bench.halt(task, grace_s=0.5)
        elif move == "recall":
            bench.recall()
        elif move in ("tick", "wait"):
            bench.pass_time(0.005 if move == "tick" else 0.7)
    for _ in range(3 * assigned + 3):
        bench.end_work()
        bench.hear()
        bench.begin()
    assert sorted(bench.ended + bench.returned) == list(range(1, assigned + 1))
    assert bench.ended == sorted(bench.ended), "in the order in which they were given"
    for task in range(1, assigned + 1):
        assert bench.begun[task] == (task in bench.ended)
    for task, printed in bench.output().items():
        assert set(printed.replace(b">", b"").split(b"<")) <= {b"", b"%d" % task}
    bench.release()
    bench.begin()
    assert bench.driver[-1] == wire.Bye()


def _next_task(bench: Bench, assigned: int) -> int | None:
    """The one that the driver takes for the current one."""
    gone = {*bench.ended, *bench.returned}
    return next((task for task in range(1, assigned + 1) if task not in gone), None)
