"""Starting workers, and noticing how they are gone, with a clock that is turned by hand."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from cargobike.core.errors import EngineError
from cargobike.core.records import Resources
from cargobike.core.running.descriptors import FREE_DESCRIPTORS_WITHIN_S
from cargobike.core.running.ending import Ending, EndKind, process_ending
from cargobike.core.running.member import Role
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.experiments.driving.request import Patience
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.scheduling.events import WorkerArrived, WorkerGone
from cargobike.workers.wire.messages import Hello
from cargobike.workers.wire.ways import Ticket

PATIENCE = Patience(join_s=10.0, reconnect_s=2.0, silence_s=30.0)


class Handle(WorkerHandle):
    """A worker that lives until the test says otherwise."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ending: Ending | None = None
        self.is_killed = False

    def poll(self) -> Ending | None:
        return self.ending

    def kill(self) -> None:
        self.is_killed = True


class Place(Engine):
    """An engine that remembers what it was asked for."""

    name = "place"

    def __init__(self) -> None:
        self.handles: dict[str, Handle] = {}
        self.roles: list[Role] = []
        self.refusal = ""
        self.has_descriptors = True

    def start_worker(self, spec: WorkerSpec) -> Handle:
        if not self.has_descriptors:
            raise OSError(errno.EMFILE, "Too many open files")
        if self.refusal:
            raise EngineError(self.refusal)
        self.roles.append(spec.role)
        return self.handles.setdefault(spec.name, Handle(spec.name))

    def capacity(self, resources: Resources) -> int:
        return 2

    def shutdown(self, timeout_s: float = 5.0) -> None:
        pass


class Doorman:
    """Lets workers in, as the server does."""

    def __init__(self) -> None:
        self.admitted: set[str] = set()

    def issue(self, worker: str) -> Ticket:
        self.admitted.add(worker)
        return Ticket("tcp://driver:1", b"server", b"public", b"secret")

    def forget(self, worker: str) -> None:
        self.admitted.discard(worker)


class Story:
    """A pool, and what surrounds it."""

    def __init__(self) -> None:
        self.engine = Place()
        self.door = Doorman()

        def spec(worker: str, role: Role, ticket: Ticket) -> WorkerSpec:
            return WorkerSpec(name=worker, module="m", config=ticket.secret_key, payload=b"", role=role)

        door: Any = self.door
        self.pool = WorkerPool(self.engine, door, spec, PATIENCE)

    def start(self, worker: str = "w0", *, joined: bool = True, at: float = 0.0) -> Handle:
        self.pool.start(worker, Role.WORKER, at)
        if joined:
            self.join(worker, at)
        return self.engine.handles[worker]

    def join(self, worker: str, at: float) -> Any:
        return self.pool.arrived(worker, Hello(worker, 1, "host", "3.11", "1"), at)

    def endings(self, at: float) -> dict[str, EndKind]:
        return {event.worker: event.ending.kind for event in self.pool.check(at)}


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_worker_is_started_in_its_role_and_let_in(story: Story) -> None:
    story.pool.start("s0", Role.SERVER, 0.0)
    assert story.engine.roles == [Role.SERVER]
    assert story.door.admitted == {"s0"}


def test_it_arrives_once(story: Story) -> None:
    story.start(joined=False)
    first = story.join("w0", 1.0)
    assert isinstance(first, WorkerArrived)
    assert (first.worker, first.host, first.at) == ("w0", "host", 1.0)
    assert story.join("w0", 2.0) is None, "it has only connected again"
    assert story.join("w9", 2.0) is None, "it is not ours"


def test_an_engine_that_refuses_is_heard_at_the_next_check(story: Story) -> None:
    story.engine.refusal = "no such machine"
    story.pool.start("w0", Role.WORKER, 5.0)
    assert story.pool.next_check == 0.0
    (gone,) = story.pool.check(5.0)
    assert isinstance(gone, WorkerGone)
    assert gone.ending == Ending(EndKind.NOT_STARTED, "no such machine")
    assert story.endings(6.0) == {}


def test_without_a_free_descriptor_the_start_is_tried_again(story: Story) -> None:
    story.engine.has_descriptors = False
    story.pool.start("w0", Role.WORKER, 5.0)
    assert story.endings(6.0) == {}
    assert story.pool.next_check < 7.0
    story.engine.has_descriptors = True
    assert story.endings(7.0) == {}
    assert set(story.engine.handles) == {"w0"}
    assert isinstance(story.join("w0", 8.0), WorkerArrived)


def test_a_start_without_a_free_descriptor_is_given_up_with_the_limit_named(story: Story) -> None:
    story.engine.has_descriptors = False
    story.pool.start("w0", Role.WORKER, 5.0)
    assert story.endings(6.0) == {}
    story.pool.check(5.0 + FREE_DESCRIPTORS_WITHIN_S)
    (gone,) = story.pool.check(5.1 + FREE_DESCRIPTORS_WITHIN_S)
    assert gone.ending.kind is EndKind.NOT_STARTED
    assert "RLIMIT_NOFILE" in str(gone.ending)
    assert "ulimit -n" in str(gone.ending)


def test_a_worker_that_waits_for_a_descriptor_can_be_released(story: Story) -> None:
    story.engine.has_descriptors = False
    story.pool.start("w0", Role.WORKER, 5.0)
    story.pool.released("w0")
    story.engine.has_descriptors = True
    assert story.endings(7.0) == {}
    assert story.engine.handles == {}
    assert story.door.admitted == set()


def test_a_dead_process_is_told_with_its_cause(story: Story) -> None:
    story.start().ending = process_ending(-9)
    story.pool.disconnected("w0", 3.0)
    (gone,) = story.pool.check(3.0)
    assert isinstance(gone, WorkerGone)
    assert gone.ending == Ending(EndKind.KILLED, "its process was ended by SIGKILL")
    assert story.door.admitted == set()


def test_one_that_never_connects_is_given_up_and_killed(story: Story) -> None:
    handle = story.start(joined=False)
    assert story.endings(9.0) == {}
    assert story.endings(11.0) == {"w0": EndKind.NEVER_CAME}
    assert handle.is_killed


def test_a_closed_connection_may_come_back_for_a_while(story: Story) -> None:
    story.start()
    story.start("w1")
    story.pool.disconnected("w0", 5.0)
    story.pool.disconnected("w1", 5.0)
    assert story.endings(6.0) == {}
    story.pool.heard("w1", 6.0)
    assert story.endings(7.5) == {"w0": EndKind.DISCONNECTED}


def test_silence_is_held_against_a_worker(story: Story) -> None:
    story.start()
    story.start("w1")
    for at in range(1, 32):
        story.pool.heard("w1", float(at))
        ended = story.endings(float(at))
    assert ended == {"w0": EndKind.SILENT}


def test_silence_is_not_held_against_workers_when_the_driver_was_away(story: Story) -> None:
    story.start()
    assert story.endings(1.0) == {}
    assert story.endings(100.0) == {}
    assert story.endings(101.0) == {}


def test_a_released_worker_may_leave_without_a_word(story: Story) -> None:
    handle = story.start()
    assert story.pool.leaving
    story.pool.released("w0")
    assert not handle.is_killed, "it delivers what it still has"
    handle.ending = process_ending(0)
    assert story.endings(2.0) == {}
    assert not story.pool.leaving


def test_one_that_is_released_before_it_came_is_killed(story: Story) -> None:
    handle = story.start(joined=False)
    story.pool.released("w0")
    assert handle.is_killed


def test_one_that_says_goodbye_is_forgotten(story: Story) -> None:
    story.start()
    story.pool.released("w0")
    assert story.pool.left("w0", 1.0) is None
    assert story.door.admitted == set()
    assert story.endings(100.0) == {}
    assert story.pool.left("w0", 1.0) is None


def test_one_that_leaves_unasked_is_lost(story: Story) -> None:
    handle = story.start()
    gone = story.pool.left("w0", 1.0)
    assert isinstance(gone, WorkerGone)
    assert gone.ending.kind is EndKind.LEFT
    assert handle.is_killed
    assert story.pool.left("w0", 2.0) is None, "it has said so before"
    assert story.endings(100.0) == {}


def test_one_that_does_not_end_its_trial_is_stuck(story: Story) -> None:
    handle = story.start()
    story.pool.told_to_end("w0", 7, 1, by=20.0)
    story.pool.told_to_end("w0", 7, 1, by=25.0)
    story.pool.trial_ended("w0", 7, 2, died=False)
    story.pool.trial_ended("w0", 8, 1, died=False)
    story.pool.told_to_end("w9", 7, 1, by=0.0)
    for second in range(20):
        story.pool.heard("w0", float(second))
        assert story.endings(float(second)) == {}
    story.pool.heard("w0", 21.0)
    assert story.endings(21.0) == {"w0": EndKind.STUCK}
    assert handle.is_killed


def test_one_that_ends_its_trial_in_time_is_not(story: Story) -> None:
    story.start()
    story.pool.told_to_end("w0", 7, 1, by=20.0)
    story.pool.trial_ended("w0", 7, 1, died=False)
    story.pool.told_to_end("w0", 8, 1, by=24.0)
    for second in range(24):
        story.pool.heard("w0", float(second))
        assert story.endings(float(second)) == {}


def test_a_driver_that_was_away_expects_nothing_of_that_time(story: Story) -> None:
    story.start()
    story.pool.told_to_end("w0", 7, 1, by=20.0)
    assert story.endings(0.0) == {}
    assert story.endings(1000.0) == {}
