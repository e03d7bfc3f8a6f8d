"""The desk in virtual time: whatever happens in whatever order, no answer is lost, doubled or mixed up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from cargobike.serving.front.desk.desk import PATIENCE_S, Desk
from cargobike.serving.front.desk.routing import choose, share_of
from cargobike.serving.front.desk.seats import Order
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.specification import Limits
from cargobike.serving.wire import Failed, Route, Routes

LIMITS = Limits(batch=4, queue=24, deadline_s=30.0, predict_s=10.0)


def answer_to(row: Any, version: int) -> tuple[str, Any, int]:
    return ("answer", row, version)


class World:
    """A desk, replicas that hold what they were given, and a record of all that happened."""

    def __init__(self, limits: Limits = LIMITS, *, retry: bool = True) -> None:
        self.limits = limits
        self.desk = Desk(limits, retry=retry)
        self.now_s = 100.0
        self.held: dict[int, Order] = {}
        self.versions: dict[int, int] = {}
        self.given: Counter[Any] = Counter()
        self.tickets: list[Ticket] = []
        self.ended: Counter[int] = Counter()
        self.rows = 0

    def admit(self, rows: int = 1, client: str = "a", deadline_s: float = 30.0, **more: Any) -> Ticket:
        ids = list(range(self.rows, self.rows + rows))
        self.rows += rows
        ticket = Ticket(
            ids,
            client=client,
            arrived_s=self.now_s,
            deadline_s=self.now_s + deadline_s,
            on_end=lambda ended: self.ended.update([id(ended)]),
            **more,
        )
        ticket.request_id = b"r"
        problem = self.desk.admit(ticket)
        if problem is None:
            self.tickets.append(ticket)
        else:
            ticket.problem = problem
        self.dispatch()
        return ticket

    def join(self, replica: int, version: int = 1) -> None:
        self.held.pop(replica, None)
        self.versions[replica] = version
        self.desk.join(replica, version, self.now_s)
        self.dispatch()

    def leave(self, replica: int) -> None:
        self.held.pop(replica, None)
        self.versions.pop(replica, None)
        self.desk.leave(replica, "closed", self.now_s)
        self.dispatch()

    def answer(self, replica: int) -> None:
        order = self.held.pop(replica)
        answers = [answer_to(row, self.versions[replica]) for row in order.rows]
        together = self.desk.single_rows(replica, order.batch, len(answers))
        assert not together or [ticket.rows for ticket in together] == [[row] for row in order.rows]
        assert self.desk.answered(replica, order.batch, answers, self.now_s)
        for ticket, answer in zip(together, answers, strict=bool(together)):
            assert (ticket.status, ticket.version) == (200, self.versions[replica])
            assert (ticket.answers, ticket.ended_s) == ([answer], self.now_s)
        self.dispatch()

    def fail(self, replica: int, places: list[int]) -> None:
        order = self.held.pop(replica)
        wrong = [place for place in places if place < len(order.rows)] or [0]
        answers = [
            None if place in wrong else answer_to(row, self.versions[replica]) for place, row in enumerate(order.rows)
        ]
        assert self.desk.failed(replica, Failed(order.batch, "ValueError", "no", wrong, answers), self.now_s)
        self.dispatch()

    def pass_time(self, seconds: float) -> list[int]:
        self.now_s += seconds
        hung = self.desk.tick(self.now_s)
        for replica in hung:
            self.held.pop(replica)
            self.versions.pop(replica)
            self.desk.leave(replica, "hung", self.now_s)
        self.dispatch()
        return hung

    def dispatch(self) -> None:
        for order in self.desk.dispatch(self.now_s):
            assert order.replica not in self.held
            assert 0 < len(order.rows) <= self.limits.batch
            self.held[order.replica] = order
            self.given.update(order.rows)

    def check(self) -> None:
        assert self.desk.waiting <= self.limits.queue + sum(len(order.rows) for order in self.held.values())
        assert self.desk.waiting == sum(ticket.waiting for ticket in self.tickets)
        assert all(count == 1 for count in self.ended.values())
        assert max(self.given.values(), default=0) <= 2
        for ticket in self.tickets:
            assert (ticket.status != 0) == (self.ended[id(ticket)] == 1)
            if ticket.status == 200:
                assert [(word, row) for word, row, _ in ticket.answers] == [("answer", row) for row in ticket.rows]


OPERATION = st.one_of(
    st.tuples(st.just("admit"), st.integers(1, 10), st.sampled_from("abc"), st.sampled_from([0.3, 5.0, 30.0])),
    st.tuples(st.just("join"), st.integers(1, 4), st.integers(1, 2)),
    st.tuples(st.just("leave"), st.integers(1, 4)),
    st.tuples(st.just("answer"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2)),
    st.tuples(st.just("time"), st.sampled_from([0.1, 1.0, 12.0])),
    st.tuples(st.just("route"), st.sampled_from([(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)])),
    st.tuples(st.just("drain"), st.integers(1, 4)),
)


@hypothesis.given(st.lists(OPERATION, max_size=60), st.booleans())
@hypothesis.settings(max_examples=300)
def test_every_request_ends_once_with_its_own_answers(operations: list[Any], retry: bool) -> None:
    world = World(retry=retry)
    world.desk.route(Routes([Route(1)]))
    drained: dict[int, int] = {}
    for operation in operations:
        match operation:
            case ("admit", rows, client, deadline_s):
                world.admit(rows, client, deadline_s, share=(world.rows % 10) / 10)
            case ("join", replica, version):
                drained.pop(replica, None)
                world.join(replica, version)
            case ("leave", replica):
                world.leave(replica)
            case ("answer", place) if world.held:
                world.answer(sorted(world.held)[place % len(world.held)])
            case ("fail", place, wrong) if world.held:
                world.fail(sorted(world.held)[place % len(world.held)], wrong)
            case ("time", seconds):
                world.pass_time(seconds)
            case ("route", (left, right)):
                world.desk.route(Routes([Route(1, left), Route(2, right)]))
                world.dispatch()
            case ("drain", replica):
                world.desk.drain(replica)
                if replica in world.versions:
                    drained[replica] = world.held[replica].batch if replica in world.held else 0
        world.check()
        assert all(world.held[replica].batch == batch for replica, batch in drained.items() if replica in world.held)
    drained.clear()
    for _ in range(100):
        for replica, version in ((11, 1), (12, 2)):
            if replica not in world.versions:
                world.join(replica, version)
        for replica in sorted(world.held):
            world.answer(replica)
    world.pass_time(40.0)
    world.check()
    assert all(ticket.status for ticket in world.tickets)
    assert (world.desk.waiting, world.desk.at_work) == (0, 0)


def routed(limits: Limits = LIMITS, **options: Any) -> World:
    world = World(limits, **options)
    world.desk.route(Routes([Route(1)]))
    return world


def test_what_came_while_a_batch_ran_is_the_next_batch() -> None:
    world = routed()
    world.join(1)
    world.admit()
    for _ in range(6):
        world.admit()
    assert world.held[1].rows == [0]
    world.answer(1)
    assert world.held[1].rows == [1, 2, 3, 4]


def test_rows_are_spread_over_replicas_that_are_free() -> None:
    world = routed()
    world.admit(4)
    world.desk.join(1, 1, 0.0)
    world.desk.join(2, 1, 0.0)
    world.dispatch()
    assert sorted(len(order.rows) for order in world.held.values()) == [2, 2]


def test_a_long_request_is_cut_into_batches_and_put_together() -> None:
    world = routed()
    world.join(1)
    ticket = world.admit(10)
    for size in (4, 4, 2):
        assert len(world.held[1].rows) == size
        world.answer(1)
    world.check()
    assert ticket.status == 200


def test_clients_take_turns() -> None:
    world = routed()
    world.join(1)
    world.admit()
    for _ in range(8):
        world.admit(client="busy")
    late = world.admit(client="quiet")
    world.answer(1)
    assert late.rows[0] in world.held[1].rows


def test_a_busy_client_cannot_fill_the_queue() -> None:
    world = routed()
    refused = [world.admit(client="busy").problem for _ in range(40)]
    assert [problem.status for problem in refused if problem is not None] == [429] * 22
    assert world.admit(client="quiet").problem is None
    assert refused[-1] is not None
    assert refused[-1].retry_after_s >= 1


def test_more_rows_than_the_queue_holds_can_never_be_answered_and_say_so() -> None:
    world = routed()
    problem = world.admit(25).problem
    assert problem is not None
    assert (problem.status, "at most 24" in problem.message) == (413, True)
    assert world.admit(24).problem is None


def test_a_row_that_ends_replicas_takes_no_other_request_with_it() -> None:
    world = routed()
    world.join(1)
    world.admit()
    poison, *good = [world.admit() for _ in range(4)]
    world.answer(1)
    assert len(world.held[1].rows) == 4
    world.leave(1)
    world.join(2)
    while world.held:
        [(replica, order)] = world.held.items()
        assert len(order.rows) == 1
        if order.rows == poison.rows:
            world.leave(replica)
            world.join(replica + 1)
        else:
            world.answer(replica)
    assert poison.problem is not None
    assert (poison.status, poison.problem.kind) == (502, "replica-lost")
    assert [ticket.status for ticket in good] == [200, 200, 200]
    world.check()


def test_without_retry_a_lost_request_ends_at_once() -> None:
    world = routed(retry=False)
    world.join(1)
    ticket = world.admit()
    world.leave(1)
    assert ticket.status == 502


def test_a_row_at_fault_fails_its_own_request_only() -> None:
    world = routed()
    world.join(1)
    world.admit()
    first, second = world.admit(2), world.admit(2)
    world.answer(1)
    world.fail(1, [3])
    assert first.status == 200
    assert second.problem is not None
    assert (second.status, second.problem.message) == (500, "row 1: The model raised ValueError: no")


def test_deadlines_end_requests_in_the_queue_and_at_work() -> None:
    world = routed()
    world.join(1)
    at_work, waiting = world.admit(4, deadline_s=1.0), world.admit(deadline_s=1.0)
    world.pass_time(0.9)
    assert (at_work.status, waiting.status) == (0, 0)
    world.pass_time(0.2)
    assert (at_work.status, waiting.status) == (504, 504)
    assert at_work.problem is not None
    assert "at a replica" in at_work.problem.message
    world.answer(1)
    assert not world.held


def test_a_replica_that_hangs_is_given_up() -> None:
    world = routed()
    world.join(1)
    ticket = world.admit()
    assert world.pass_time(9.0) == []
    assert world.pass_time(1.5) == [1]
    world.join(2)
    world.answer(2)
    assert ticket.status == 200


def test_requests_wait_while_replicas_start_and_are_refused_when_none_comes() -> None:
    world = routed()
    world.desk.expect(1, refuse=False, now_s=world.now_s)
    patient = world.admit()
    world.pass_time(PATIENCE_S + 1)
    assert patient.status == 0
    world.desk.expect(0, refuse=False, now_s=world.now_s)
    late = world.admit()
    world.pass_time(0.1)
    assert (patient.status, late.status) == (503, 0)
    world.desk.expect(0, refuse=True, now_s=world.now_s)
    assert late.status == 503
    problem = world.admit().problem
    assert problem is not None
    assert problem.status == 503


def test_a_draining_replica_finishes_its_batch_and_gets_no_other() -> None:
    world = routed()
    world.join(1)
    first, second = world.admit(4), world.admit()
    world.desk.drain(1)
    assert world.desk.drained == []
    world.answer(1)
    assert world.desk.drained == [1]
    assert (first.status, second.status, world.held) == (200, 0, {})
    world.join(2)
    world.answer(2)
    assert second.status == 200


def test_a_roll_takes_waiting_requests_to_the_new_version() -> None:
    world = routed()
    world.join(1, version=1)
    world.admit(4)
    ticket = world.admit()
    world.join(2, version=2)
    world.desk.route(Routes([Route(2)]))
    world.dispatch()
    world.answer(2)
    assert ticket.version == 2
    world.answer(1)
    world.check()


def test_a_version_may_be_asked_for_by_number() -> None:
    world = routed()
    world.join(1, version=1)
    world.join(2, version=2)
    ticket = world.admit(pinned=2)
    world.answer(2)
    assert ticket.version == 2
    problem = world.admit(pinned=3).problem
    assert problem is not None
    assert (problem.status, "1, 2" in problem.message) == (404, True)


def test_a_shadow_gets_copies_and_differences_are_counted() -> None:
    world = World()
    world.desk.route(Routes([Route(1)], shadow=2))
    world.join(1, version=1)
    world.join(2, version=2)
    tickets = []
    for _ in range(3):
        tickets.append(world.admit())
        world.answer(2)
        world.answer(1)
    assert [ticket.version for ticket in tickets] == [1, 1, 1]
    assert world.desk.tallies[2].differed == 3  # the answers of this world name their version
    assert world.desk.tallies[2].answered == 3


@pytest.mark.parametrize(("share", "there", "version"), [(0.0, {1, 2}, 1), (0.95, {1, 2}, 2), (0.95, {1}, 1)])
def test_shares_choose_among_versions_that_are_there(share: float, there: set[int], version: int) -> None:
    assert choose([Route(1, 0.9), Route(2, 0.1)], share, there) == version


@hypothesis.given(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.none()))
def test_equal_keys_have_equal_shares(key: Any) -> None:
    assert share_of(key) == share_of(key)
    assert 0.0 <= share_of(key) < 1.0


def test_shares_of_keys_are_spread_evenly() -> None:
    low = sum(share_of(f"customer {number}") < 0.1 for number in range(5000))
    assert 400 < low < 600


def test_requests_of_one_row_are_known_together() -> None:
    world = World()
    world.desk.route(Routes([Route(1)]))
    tickets = [world.admit() for _ in range(3)]
    world.join(1)
    batch = world.held[1].batch
    assert world.desk.single_rows(1, batch, 3) == tickets
    assert world.desk.single_rows(1, batch, 2) == [], "the answers do not fit"
    assert world.desk.single_rows(1, batch + 1, 3) == [], "another batch"
    assert world.desk.single_rows(2, batch, 3) == [], "another replica"
    tickets[1].request_id = b""
    assert world.desk.single_rows(1, batch, 3) == [], "one is a copy"


@pytest.mark.parametrize("rows", [[1, 2], [4]])
def test_requests_of_several_rows_are_not_known_together(rows: list[int]) -> None:
    world = World()
    world.desk.route(Routes([Route(1)]))
    for count in rows:
        world.admit(count)
    world.join(1)
    assert world.desk.single_rows(1, world.held[1].batch, len(world.held[1].rows)) == []


def test_a_batch_with_a_request_that_was_given_up_is_not_known_together() -> None:
    world = World()
    world.desk.route(Routes([Route(1)]))
    tickets = [world.admit() for _ in range(2)]
    world.join(1)
    world.desk.forget(tickets[0], world.now_s)
    assert world.desk.single_rows(1, world.held[1].batch, 2) == []
