"""The agent of a worker: stories, played without a process, a socket or a second of waiting."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.workers.agent import BEAT_S, EXIT_GRACE_S, MOST_IN_FLIGHT
from cargobike.workers.agent_events import BringFile, BringFolders, DeliverFiles, KeepFolder
from cargobike.workers.current import Runner
from cargobike.workers.output import HEAD_BYTES
from cargobike.workers.quiet import KILL_PATIENCE_S, START_PATIENCE_S
from cargobike.workers.wire import inner
from cargobike.workers.wire import messages as wire
from support.agent_world import World, raw

FILES = wire.Files(bring=("trials/7/checkpoints",), follow="trials/7/logs", deliver=("files/7",), prune="")


class TestAnAssignment:
    def test_a_new_runner_gets_it_and_what_it_says_is_passed_on_as_it_is(self) -> None:
        world = World()
        world.assign(7)
        assert [type(message) for message in world.template] == [inner.Start]
        assign = wire.decode_driver_message(world.template[0].assign)
        assert isinstance(assign, wire.Assign)
        assert (assign.task, bytes(assign.body)) == (7, bytes(raw({"task": 7})))
        world.say(7, {"step": 1})
        world.end(7)
        said, ended = world.heard()
        assert (said.task, said.attempt, bytes(said.body)) == (7, 1, bytes(raw({"step": 1})))
        assert (ended.task, bytes(ended.body), ended.last_output) == (7, bytes(raw("done")), "")

    def test_what_the_driver_tells_goes_to_the_runner_it_is_meant_for(self) -> None:
        world = World()
        world.tell(7, "before it has begun")
        world.assign(7, attempt=2)
        world.tell(7, "for an earlier attempt", attempt=1)
        world.tell(7, "verdict", attempt=2)
        assert [bytes(message.body) for message in world.runner] == [bytes(raw("verdict"))]

    def test_what_an_earlier_runner_still_says_is_not_passed_on(self) -> None:
        world = World()
        world.assign(7)
        world.end(7)
        world.say(7, "a late word")
        world.exit()
        world.assign(8)
        world.say(7, "a very late word")
        world.end(7)
        assert [type(message) for message in world.heard()] == [wire.Ended]

    def test_a_failure_comes_with_the_end_of_what_was_printed(self) -> None:
        world = World()
        world.assign(7)
        world.print("all is well\n")
        world.print("no it is not\n", "stderr")
        world.end(7, failed=True)
        assert [type(message) for message in world.heard()] == [wire.Output, wire.Output, wire.Ended]
        ended = world.heard(wire.Ended)[0]
        assert ended.last_output == "all is well\nno it is not\n"
        assert bytes(ended.body) == bytes(raw("done"))

    def test_libraries_that_a_runner_imported_are_named_to_the_template(self) -> None:
        world = World()
        world.assign(7)
        world.want(inner.Imported(["numpy"]))
        assert world.template[1:] == [inner.Import(["numpy"])]


class TestOneAfterTheOther:
    def test_the_next_one_waits_until_the_last_process_has_ended(self) -> None:
        world = World()
        world.assign(7)
        world.end(7)
        world.assign(8)
        assert len(world.template) == 1, "what the last one still prints is its own"
        world.print("from the exit handlers of 7\n")
        world.exit()
        assert len(world.template) == 2
        world.print("from 8\n")
        world.end(8)
        assert world.output() == {7: b"from the exit handlers of 7\n", 8: b"from 8\n"}

    def test_what_the_next_one_is_told_waits_with_it(self) -> None:
        world = World()
        world.assign(7)
        world.end(7)
        world.assign(8)
        world.tell(8, "a question")
        assert world.runner == [], "the process that is leaving could take it for its own"
        world.exit()
        assert [(message.task, bytes(message.body)) for message in world.runner] == [(8, bytes(raw("a question")))]

    def test_a_process_that_does_not_end_after_its_assignment_is_killed(self) -> None:
        world = World()
        world.assign(7)
        world.end(7)
        world.pass_time(EXIT_GRACE_S - 0.5)
        assert world.kills == 0
        world.pass_time(1.0)
        assert world.kills == 1
        world.exit(-signal.SIGKILL)
        assert len(world.heard(wire.Ended, wire.Died)) == 1, "its assignment had ended well"

    def test_a_reused_runner_gets_the_next_one_directly(self) -> None:
        world = World(reuse=True)
        world.assign(7)
        world.print("from 7\n")
        world.end(7)
        world.assign(8)
        world.print("from 8\n")
        world.end(8)
        assert [type(message) for message in world.template] == [inner.Start]
        assert [message.task for message in world.runner] == [8]
        assert world.output() == {7: b"from 7\n", 8: b"from 8\n"}

    def test_a_reused_runner_that_died_before_it_took_the_next_one_costs_nothing(self) -> None:
        world = World(reuse=True)
        world.assign(7)
        world.end(7)
        world.assign(8)
        world.exit(-signal.SIGKILL)
        assert world.template[-1] == inner.CheckUnread()
        world.exit(-signal.SIGKILL, goes_on=True)
        world.end(8)
        assert [message.task for message in world.heard(wire.Ended)] == [7, 8]
        assert not world.heard(wire.Died)

    def test_a_reused_runner_that_died_at_work_is_reported(self) -> None:
        world = World(reuse=True)
        world.assign(7)
        world.exit(3)
        world.exit(3, goes_on=False)
        assert [(message.task, message.code) for message in world.heard(wire.Died)] == [(7, 3)]
        world.assign(8)
        assert isinstance(world.template[-1], inner.Start)

    def test_a_reused_runner_that_died_idle_is_replaced(self) -> None:
        world = World(reuse=True)
        world.assign(7)
        world.end(7)
        world.exit(-signal.SIGSEGV)
        assert world.agent.runner is Runner.ABSENT
        world.assign(8)
        assert [type(message) for message in world.template] == [inner.Start, inner.Start]


class TestTheEndOfARunner:
    def test_one_that_dies_by_itself_is_reported_with_its_cause(self) -> None:
        world = World()
        world.assign(7, attempt=2)
        world.print("last words\n")
        world.exit(-signal.SIGSEGV)
        assert world.heard(wire.Died) == [
            wire.Died(7, 2, -signal.SIGSEGV, peak_memory_bytes=1 << 20, last_output="last words\n")
        ]
        assert isinstance(world.heard()[0], wire.Output), "what it printed arrives before"

    def test_a_halt_is_asked_for_and_forced_after_its_grace(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=1.0)
        assert world.flag
        world.pass_time(0.9)
        assert world.kills == 0
        world.pass_time(0.35)
        assert world.kills >= 2, "it may be about to begin: until it has ended, this is repeated"
        world.exit(-signal.SIGKILL)
        died = world.heard(wire.Died)[0]
        assert (died.halted, died.killed) == (True, True)
        world.pass_time(1.0)
        assert world.kills <= 4, "nothing is killed any more"

    def test_a_program_may_end_in_time(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=1.0)
        world.pass_time(0.5)
        world.end(7)
        world.exit()
        world.pass_time(5.0)
        assert world.kills == 0
        world.assign(8)
        assert not world.flag, "the next one is not asked to stop"

    def test_one_that_dies_within_its_grace_was_not_killed_by_us(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=10.0)
        world.exit(1)
        died = world.heard(wire.Died)[0]
        assert (died.halted, died.killed) == (True, False)

    def test_a_halt_for_another_assignment_is_ignored(self) -> None:
        world = World()
        world.halt(7)
        world.assign(7, attempt=2)
        world.halt(7, attempt=1)
        world.pass_time(5.0)
        assert (world.flag, world.kills) == (False, 0)

    def test_without_a_template_there_is_no_worker(self) -> None:
        world = World()
        world.assign(7)
        world.print("half a line")
        world.lose_template()
        assert world.output() == {7: b"half a line"}
        assert world.left is not None
        assert "template" in world.left.failure
        assert not world.heard(wire.Ended, wire.Died), "the driver learns that the worker is lost, not that it failed"


class TestAStackThatIsWanted:
    def test_it_is_read_when_it_no_longer_grows_and_ends_the_wait(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=5.0, stack=True)
        assert inner.ShowStack() in world.template
        world.pass_time(0.5)
        assert world.kills == 0, "it has not answered"
        world.stack = "in wait_for_others"
        world.pass_time(0.3)
        assert world.kills >= 1
        world.exit(-signal.SIGKILL)
        assert world.heard(wire.Died)[0].stack == "in wait_for_others"

    def test_it_is_asked_for_once(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=5.0, stack=True)
        world.halt(7, grace_s=5.0, stack=True)
        assert world.template.count(inner.ShowStack()) == 1

    def test_an_end_that_comes_first_has_what_was_written_by_then(self) -> None:
        world = World()
        world.assign(7)
        world.halt(7, grace_s=5.0, stack=True)
        world.stack = "in the middle"
        world.end(7)
        assert world.heard(wire.Ended)[0].stack == "in the middle"
        world.exit()
        world.assign(8)
        world.end(8)
        assert world.heard(wire.Ended)[1].stack == ""


class TestAQuietRunner:
    def test_it_is_reported_while_it_stands_still(self) -> None:
        world = World()
        world.assign(7, quiet_after_s=4.0)
        world.pass_time(1.9)
        assert not world.heard(wire.Quiet)
        world.pass_time(1.0)
        quiet = world.heard(wire.Quiet)[0]
        assert (quiet.task, quiet.attempt) == (7, 1)
        assert 2.0 <= quiet.idle_s <= 3.0

    @pytest.mark.parametrize("sign", ["computes", "prints", "speaks"])
    def test_any_sign_of_life_counts(self, sign: str) -> None:
        world = World()
        world.assign(7, quiet_after_s=4.0)
        for _ in range(10):
            world.pass_time(1.0)
            if sign == "computes":
                world.processor_s += 0.9
            elif sign == "prints":
                world.print(".")
            else:
                world.say(7)
        assert not world.heard(wire.Quiet)

    def test_only_those_who_are_watched_are_measured(self) -> None:
        world = World()
        world.assign(7)
        world.pass_time(100.0)
        assert not world.heard(wire.Quiet)


class TestOutput:
    def test_it_is_passed_on_in_pieces_a_few_times_a_second(self) -> None:
        world = World()
        world.assign(7)
        for number in range(10):
            world.print(f"{number}\n")
        assert not world.heard(wire.Output)
        world.pass_time(0.3)
        assert [message.data for message in world.heard(wire.Output)] == [b"".join(b"%d\n" % n for n in range(10))]

    def test_what_never_ends_is_cut_in_the_middle(self) -> None:
        world = World()
        world.assign(7)
        world.print("x" * (HEAD_BYTES + 100))
        world.end(7)
        for _ in range(30):
            world.print("y" * (1 << 17))
        world.exit()
        world.assign(8)
        printed = world.output()[7]
        assert b"bytes left out" in printed
        assert printed.endswith(b"y" * 1000)
        assert len(printed) < HEAD_BYTES + (4 << 20)


class TestTheDriver:
    def test_it_hears_a_beat_when_there_is_nothing_else_to_say(self) -> None:
        world = World()
        world.pass_time(5 * BEAT_S)
        assert 4 <= world.driver.count(wire.Beat()) <= 6

    def test_a_worker_that_is_released_leaves_when_it_has_delivered_everything(self) -> None:
        world = World()
        world.release()
        assert world.left is not None
        assert not world.left.failure
        assert world.heard() == [wire.Bye()]

    def test_a_worker_that_is_busy_leaves_later(self) -> None:
        world = World()
        world.assign(7)
        world.release()
        world.end(7)
        assert not world.has_left
        world.print("bye\n")
        world.exit()
        assert world.left is not None
        assert [type(message) for message in world.heard()] == [wire.Ended, wire.Output, wire.Bye]

    @pytest.mark.parametrize("first", ["end", "release"])
    def test_a_reused_runner_is_told_to_leave(self, first: str) -> None:
        world = World(reuse=True)
        world.assign(7)
        for step in ("end", "release") if first == "end" else ("release", "end"):
            if step == "end":
                world.end(7)
            else:
                world.release()
        assert world.runner == [inner.Leave()]
        assert not world.has_left
        world.exit()
        assert world.left is not None

    def test_its_silence_is_taken_for_its_end(self) -> None:
        world = World(driver_silence_s=10.0)
        world.pass_time(9.0)
        world.hear_driver()
        world.pass_time(9.0)
        assert not world.has_left
        world.pass_time(3.0)
        assert world.left is not None
        assert "silent for 10 s" in world.left.failure

    def test_a_runner_waits_while_the_driver_does_not_keep_up(self) -> None:
        world = World()
        world.in_flight = MOST_IN_FLIGHT + 1
        world.pass_time(0.1)
        assert not world.listens
        world.in_flight = 3
        world.pass_time(0.1)
        assert world.listens


class TestFilesThatTravel:
    def test_an_assignment_starts_when_they_are_here_and_ends_when_they_are_there(self) -> None:
        world = World(carries_files=True)
        world.assign(7, files=FILES)
        assert isinstance(world.errands[0], BringFolders)
        assert not world.template
        world.finish_errand()
        assert isinstance(world.template[0], inner.Start)
        world.end(7)
        assert isinstance(world.errands[0], DeliverFiles)
        assert not world.heard()
        world.exit()
        world.release()
        assert not world.has_left
        world.finish_errand()
        assert [type(message) for message in world.heard()] == [wire.Ended, wire.Bye]

    def test_what_went_wrong_is_found_with_what_it_printed(self) -> None:
        world = World(carries_files=True)
        world.assign(7, files=FILES)
        world.finish_errand("no route to host")
        world.end(7)
        world.finish_errand("the disk is full")
        assert b"no route to host" in world.output()[7]
        assert b"the disk is full" in world.output()[7]
        assert len(world.heard(wire.Ended)) == 1

    def test_a_runner_hears_when_its_folder_is_kept_and_its_file_is_here(self) -> None:
        world = World(carries_files=True)
        world.assign(7)
        world.want(inner.Keep("trials/7/checkpoints/000001", alone=True))
        world.want(inner.Bring("data/rows.parquet"))
        assert [type(errand) for errand in world.errands] == [KeepFolder, BringFile]
        world.finish_errand()
        world.finish_errand("there is no such file")
        assert world.runner == [
            inner.Kept("trials/7/checkpoints/000001"),
            inner.Brought("data/rows.parquet", "there is no such file"),
        ]

    def test_nothing_travels_where_the_disk_is_seen(self) -> None:
        world = World()
        world.assign(7, files=FILES)
        world.end(7)
        assert not world.errands


class TestATemplateThatDoesNotAnswer:
    def test_is_given_up_when_no_runner_starts(self) -> None:
        world = World()
        world.template_is_stopped = True
        world.assign(7)
        world.pass_time(START_PATIENCE_S - 1.0)
        assert not world.has_left
        world.pass_time(2.0)
        assert world.left is not None
        assert "does not answer" in world.left.failure

    def test_is_given_up_when_a_killed_runner_does_not_end(self) -> None:
        world = World()
        world.assign(7)
        world.pass_time(1000.0)
        world.halt(7)
        world.pass_time(KILL_PATIENCE_S - 1.0)
        assert not world.has_left
        assert world.kills > 100
        world.pass_time(2.0)
        assert world.has_left

    def test_is_given_up_when_the_runner_never_leaves(self) -> None:
        world = World()
        world.assign(7)
        world.end(7)
        world.assign(8)
        world.pass_time(EXIT_GRACE_S + KILL_PATIENCE_S + 1.0)
        assert world.has_left

    @pytest.mark.parametrize("reuse", [False, True])
    def test_is_not_given_up_once_it_has_answered(self, reuse: bool) -> None:
        world = World(reuse=reuse)
        world.assign(7)
        world.halt(7, grace_s=1.0)
        world.pass_time(2.0)
        world.exit(-signal.SIGKILL)
        if reuse:
            world.exit(-signal.SIGKILL, goes_on=False)
        world.pass_time(2 * START_PATIENCE_S)
        assert not world.has_left

    def test_has_all_its_time_after_the_whole_machine_was_stopped(self) -> None:
        world = World()
        world.template_is_stopped = True
        world.assign(7)
        world.pass_time(START_PATIENCE_S - 10.0)
        world.sleep(3600.0)
        world.pass_time(5.0)
        assert not world.has_left
        world.pass_time(10.0)
        assert world.has_left


MOVES = st.lists(
    st.sampled_from(
        ["assign", "say", "print", "end", "fail", "die", "exit", "halt", "halt soon", "tick", "wait", "errand", "stale"]
    ),
    max_size=60,
)


@given(moves=MOVES, reuse=st.booleans(), carries_files=st.booleans())
def test_each_assignment_ends_exactly_once_whatever_happens(moves: list[str], reuse: bool, carries_files: bool) -> None:
    story = Story(reuse=reuse, carries_files=carries_files)
    for move in moves:
        story.play(move)
    story.finish()


class Story:
    """Plays what a driver, a template and a runner can do, in any order that they can do it in."""

    def __init__(self, *, reuse: bool, carries_files: bool) -> None:
        self.world = World(reuse=reuse, carries_files=carries_files)
        self.reuse = reuse
        self.assigned = 0
        self.alive = False
        self.at_work: int | None = None
        self.leaves = False

    @property
    def open(self) -> int | None:
        """The assignment whose end the driver waits for."""
        ended = len(self.world.heard(wire.Ended, wire.Died))
        assert ended in (self.assigned, self.assigned - 1)
        return self.assigned if ended < self.assigned else None

    def play(self, move: str) -> None:
        world, task = self.world, self.at_work
        if move == "assign" and self.open is None:
            self.assigned += 1
            world.assign(self.assigned, files=FILES if self.assigned % 2 else None)
        elif move == "say" and task is not None:
            world.say(task)
        elif move == "print" and self.alive and self._printer is not None:
            world.print(f"<{self._printer}>")
        elif move in ("end", "fail") and task is not None:
            self.at_work, self.leaves = None, not self.reuse
            self.last = task
            world.end(task, failed=move == "fail")
        elif (move == "die" and self.alive) or (move == "exit" and self.alive and self.leaves):
            self._exit(-signal.SIGKILL if move == "die" else 0)
        elif move.startswith("halt") and self.assigned:
            world.halt(self.assigned, 0.0 if move == "halt" else 0.5)
        elif move in ("tick", "wait"):
            world.pass_time(0.1 if move == "tick" else 1.5)
        elif move == "errand" and world.errands:
            world.finish_errand()
        elif move == "stale":
            world.say(self.assigned + 1)
            world.end(self.assigned + 1)
        self._obey()

    @property
    def _printer(self) -> int | None:
        return self.at_work if self.at_work is not None else getattr(self, "last", None)

    def _obey(self) -> None:
        """Do what the template and the runner are told."""
        world = self.world
        messages, world.template = world.template, []
        for message in messages:
            if isinstance(message, inner.Start):
                assert not self.alive, "one runner at a time"
                self._begin(wire.decode_driver_message(message.assign))
            elif isinstance(message, inner.Kill) and self.alive:
                self._exit(-signal.SIGKILL)
            elif isinstance(message, inner.CheckUnread):
                world.exit(-signal.SIGKILL, goes_on=False)
                self._obey()
        messages, world.runner = world.runner, []
        for message in messages:
            if isinstance(message, wire.Assign):
                self._begin(message)
            elif isinstance(message, inner.Leave):
                self.leaves = True

    def _begin(self, message: Any) -> None:
        assert isinstance(message, wire.Assign)
        assert self.at_work is None
        self.alive, self.leaves, self.at_work = True, False, message.task

    def _exit(self, code: int) -> None:
        self.alive, self.leaves, self.at_work = False, False, None
        self.world.exit(code)
        self._obey()

    def finish(self) -> None:
        """Let everything come to its end, and look at what the driver has heard."""
        world = self.world
        for _ in range(10):
            self.play("errand")
            self.play("end")
            self.play("exit")
        assert self.open is None, "the driver waits for an end that never comes"
        world.release()
        for _ in range(10):
            self._obey()
            self.play("exit")
            self.play("errand")
        assert world.left is not None
        assert world.driver[-1] == wire.Bye()
        ends = [message.task for message in world.heard(wire.Ended, wire.Died)]
        assert ends == list(range(1, self.assigned + 1))
        for task, printed in world.output().items():
            assert set(printed.replace(b">", b"").split(b"<")) <= {b"", b"%d" % task}
        open_task = 0
        for message in world.heard(wire.Said, wire.Ended, wire.Died):
            if isinstance(message, wire.Said):
                assert message.task == open_task + 1
            else:
                open_task = message.task
