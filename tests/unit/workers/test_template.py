"""Which runner gets an assignment, and when there is a spare."""

from __future__ import annotations

import signal
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cargobike.workers.template import (
    AskForStack,
    Drop,
    Ended,
    Fork,
    Give,
    Heard,
    ImportModules,
    KillRunner,
    Rested,
    TakeUnread,
    Tell,
    Template,
    Unread,
)
from cargobike.workers.wire.inner import CheckUnread, Exited, Import, Kill, ShowStack, Start


def start(packet: bytes = b"\x01") -> Heard:
    return Heard(Start(msgspec.Raw(packet)))


class World:
    """Keeps what a template asks for, and which of its runners live."""

    def __init__(self, *, reuse: bool = False) -> None:
        self.template = Template(reuse=reuse)
        self.living: dict[int, bool] = {}
        self.given: dict[int, bytes] = {}
        self.exits: list[Exited] = []
        self.imported: list[str] = []

    def happen(self, event: Any) -> list[Any]:
        commands = self.template.handle(event)
        for command in commands:
            if isinstance(command, Fork):
                self.living[command.runner] = command.is_spare
                if command.packet:
                    self.given[command.runner] = command.packet
            elif isinstance(command, Give):
                assert command.runner in self.living
                assert command.runner not in self.given, "a runner gets one first assignment"
                self.given[command.runner] = command.packet
            elif isinstance(command, Drop):
                assert command.runner not in self.given, "what has been given away is not dropped"
                del self.living[command.runner]
            elif isinstance(command, Tell):
                self.exits.append(command.exited)
            elif isinstance(command, ImportModules):
                self.imported += command.names
        return commands

    def end(self, runner: int, code: int = 0, *, has_begun: bool = True) -> list[Any]:
        del self.living[runner]
        return self.happen(Ended(runner, code, 1000, has_begun))


def test_the_first_assignment_gets_a_fresh_runner_and_no_spare() -> None:
    world = World()
    assert world.happen(start(b"\x07")) == [Fork(1, b"\x07")]
    assert not world.template.spare_is_due
    world.end(1)
    assert world.exits == [Exited(0, 1000)]


def test_from_the_second_on_a_spare_is_forked_when_there_is_time() -> None:
    world = World()
    world.happen(start())
    world.end(1)
    world.happen(start())
    assert world.template.spare_is_due
    assert world.happen(Rested()) == [Fork(3, is_spare=True)]
    world.end(2)
    assert world.happen(start(b"\x09")) == [Give(3, b"\x09")]


def test_a_reused_runner_needs_no_spare() -> None:
    world = World(reuse=True)
    for _ in range(3):
        world.happen(start())
        world.end(world.template._last_number, -signal.SIGKILL)
    assert not world.template.spare_is_due
    assert world.happen(Rested()) == []


def test_the_first_of_reused_runners_may_be_forked_before_it_is_needed() -> None:
    world = World(reuse=True)
    assert world.happen(Rested()) == [Fork(1)]
    assert world.happen(Rested()) == []
    assert world.happen(start(b"\x07")) == [Give(1, b"\x07")]
    world.end(1, -signal.SIGKILL)
    assert world.exits[-1].code == -signal.SIGKILL
    assert world.happen(start(b"\x08")) == [Fork(2, b"\x08")]


def test_a_first_runner_that_died_waiting_costs_the_assignment_nothing() -> None:
    world = World(reuse=True)
    world.happen(Rested())
    assert world.end(1, -signal.SIGKILL, has_begun=False) == []
    assert world.happen(start(b"\x07")) == [Fork(2, b"\x07")]
    assert world.exits == []


def with_a_spare() -> World:
    world = World()
    world.happen(start())
    world.end(1)
    world.happen(start())
    world.happen(Rested())
    world.end(2)
    return world


def test_a_spare_that_died_unread_costs_its_assignment_nothing() -> None:
    world = with_a_spare()
    world.happen(start(b"\x09"))
    exits = len(world.exits)
    assert world.end(3, -signal.SIGKILL, has_begun=False) == [Fork(4, b"\x09")]
    assert len(world.exits) == exits
    world.end(4, 1)
    assert world.exits[-1].code == 1


def test_a_spare_that_was_killed_by_order_before_it_read_counts_as_ended() -> None:
    world = with_a_spare()
    world.happen(start(b"\x09"))
    assert world.happen(Heard(Kill())) == [KillRunner(3)]
    world.end(3, -signal.SIGKILL, has_begun=False)
    assert world.exits[-1].code == -signal.SIGKILL
    assert len(world.given) == 3


def test_a_spare_that_dies_waiting_is_not_replaced_at_once() -> None:
    world = with_a_spare()
    assert world.end(3, -signal.SIGKILL, has_begun=False) == []
    assert not world.template.spare_is_due
    assert world.happen(start()) == [Fork(4, b"\x01")]


def test_what_a_runner_imported_is_learned_when_it_has_ended_and_the_spare_is_forked_anew() -> None:
    world = World()
    world.happen(start())
    world.happen(Heard(Import(["numpy"])))
    assert world.imported == []
    world.end(1)
    assert world.imported == ["numpy"]
    world.happen(start())
    world.happen(Rested())
    world.happen(Heard(Import(["torch"])))
    commands = world.end(2)
    assert [type(command) for command in commands] == [Tell, Drop, ImportModules], "the agent need not wait for imports"
    assert world.template.spare_is_due


def test_orders_about_a_runner_that_is_gone_are_ignored() -> None:
    world = World()
    assert world.happen(Heard(Kill())) == []
    assert world.happen(Heard(ShowStack())) == []
    assert world.happen(Heard(CheckUnread())) == []
    world.happen(start())
    assert world.happen(Heard(ShowStack())) == [AskForStack(1)]


def test_an_assignment_that_a_reused_runner_left_unread_goes_on_with_a_new_one() -> None:
    world = World(reuse=True)
    world.happen(start())
    world.end(1, -signal.SIGKILL)
    assert world.happen(Heard(CheckUnread())) == [TakeUnread()]
    commands = world.happen(Unread([b"\x08"]))
    assert commands == [Tell(Exited(-signal.SIGKILL, 1000, goes_on=True)), Fork(2, b"\x08")]
    world.end(2)
    world.happen(Heard(CheckUnread()))
    assert world.happen(Unread([])) == [Tell(Exited(0, 1000, goes_on=False))]


@given(st.lists(st.sampled_from(["start", "end", "end unread", "kill", "spare dies", "import", "rest"]), max_size=40))
def test_each_assignment_is_told_the_end_of_exactly_one_runner(moves: list[str]) -> None:
    world = World()
    started = 0
    for move in moves:
        working = [runner for runner in world.living if runner in world.given]
        spares = [runner for runner in world.living if runner not in world.given]
        assert len(working) <= 1
        assert len(spares) <= 1
        if move == "start":
            started += 1
            world.happen(start(msgspec.msgpack.encode(started)))
        elif move.startswith("end") and working:
            world.end(working[0], 1, has_begun=move == "end")
        elif move == "spare dies" and spares:
            world.end(spares[0], 1, has_begun=False)
        elif move == "kill":
            world.happen(Heard(Kill()))
        elif move == "import":
            world.happen(Heard(Import(["colorsys"])))
        elif move == "rest":
            world.happen(Rested())
    while working := [runner for runner in world.living if runner in world.given]:
        world.end(working[0])
    assert len(world.exits) == started
    assert sorted(set(world.given.values())) == sorted(msgspec.msgpack.encode(n + 1) for n in range(started))
