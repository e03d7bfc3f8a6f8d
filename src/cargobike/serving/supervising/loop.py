"""The loop around the policy: polls sockets, processes and the clock, and carries out what was decided."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.serving import wire
from cargobike.serving.facts import AnyServingFact
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.supervising import hosting
from cargobike.serving.supervising.config import Started
from cargobike.serving.supervising.crew import Crew, Host
from cargobike.serving.supervising.desk import Desk
from cargobike.serving.supervising.finding import Version
from cargobike.serving.supervising.links import Link
from cargobike.serving.supervising.logs import forget_old_logs
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.policy.supervisor import Supervisor
from cargobike.serving.supervising.traffic import TrafficCount
from cargobike.store.journal.journal import JournalWriter

_log: Final = logging.getLogger(__name__)
_TICK_S: Final = 0.25
_SOON_S: Final = 0.02
_MOST_UNWRITTEN: Final = 10_000

Act = Callable[[], None]


class Clock:
    """Seconds since the epoch that never run backwards, and do not jump when the clock is set."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the time."""
        return self._offset + time.monotonic()


class Loop:
    """Runs one deployment until nothing is left to do.

    Args:
        record: What the journal says.
        crew: The processes.
        journal: Where facts go.
        server: The socket for users' processes.
        say_started: Called once, when the first version serves or cannot.
    """

    def __init__(
        self,
        record: DeploymentRecord,
        crew: Crew,
        journal: JournalWriter,
        server: socket.socket,
        say_started: Callable[[Started], None],
    ) -> None:
        self.clock = Clock()
        self.record = record
        self.crew = crew
        self.policy = Supervisor(record, self.clock.now())
        self.traffic = TrafficCount()
        self.versions: dict[int, Version] = {}
        self.trouble = ""
        self.error = ""
        self.is_finished = False
        self._journal = journal
        self._unwritten: list[AnyServingFact] = []
        self._server = server
        self._say_started: Callable[[Started], None] | None = say_started
        self._poll = selectors.DefaultSelector()
        self._wake_fd, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)
        os.set_blocking(self._wake_fd, False)
        self.desk = Desk(self, self.wake)
        self._owner_fd = -1

    def wake(self) -> None:
        """Make the loop turn; may be called in any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_end, b"w")

    def own(self, owner: int) -> None:
        """End with another process."""
        try:
            self._owner_fd = os.pidfd_open(owner)
        except OSError:
            self._owner_is_gone()
            return
        self._poll.register(self._owner_fd, selectors.EVENT_READ, self._owner_is_gone)

    def run(self) -> str:
        """Run until `Finish`; returns why it failed, or nothing."""
        previous = {number: signal.signal(number, self._asked_to_end) for number in (signal.SIGTERM, signal.SIGINT)}
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        self._poll.register(self._wake_fd, selectors.EVENT_READ, self._woken)
        self._poll.register(self._server, selectors.EVENT_READ, self._accept)
        try:
            while not self.is_finished:
                self._turn()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self.desk.close()
            self._poll.close()
            os.close(self._wake_fd)
            os.close(self._wake_end)
            if self._owner_fd >= 0:
                os.close(self._owner_fd)
        return self.error

    def handle(self, event: events.Event) -> None:
        """Have the policy decide about an event, and do what it says."""
        for command in self.policy.handle(event):
            self._do(command)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        is_waiting = self.crew.connect_new()
        self._watch()
        now = self.clock.now()
        due = [at - now for at in self.policy.next_due(now)]
        pause_s = min([_SOON_S if is_waiting else _TICK_S, *(max(0.001, each) for each in due)])
        for key, _ in self._poll.select(pause_s):
            if key.fd in self._poll.get_map():  # what was heard before may have ended it
                key.data()
            if self.is_finished:
                return
        for about, found in self.desk.finder.take():
            self.desk.found(about, found)
        self.crew.end_silent()
        self.handle(events.Ticked(at=self.clock.now()))
        with contextlib.suppress(StoreError):
            self._journal.sync_if_due(time.monotonic())
        self._check_started()

    def _watch(self) -> None:
        """Register what is new to poll."""
        wanted: dict[Any, Act] = {}
        front = self.crew.front
        if front is not None:
            wanted[front.process] = self._front_ended
            if front.link is not None:
                wanted[front.link] = self._hear_front
        for host in self.crew.hosts:
            wanted[host.process] = functools.partial(self._host_ended, host)
            if host.link is not None:
                wanted[host.link] = functools.partial(self._hear_host, host)
        known = {key.fileobj for key in list(self._poll.get_map().values())}
        for what, act in wanted.items():
            if what not in known and what.fileno() >= 0:
                self._poll.register(what, selectors.EVENT_READ, act)

    def watch(self, link: Link[Any], act: Act) -> None:
        """Call something when a user's connection has something to say."""
        self._poll.register(link, selectors.EVENT_READ, act)

    def unwatch(self, what: Any) -> None:
        """Poll something no more."""
        with contextlib.suppress(KeyError, ValueError):
            self._poll.unregister(what)

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_fd, 4096)

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        self.desk.welcome(connection)

    def _owner_is_gone(self) -> None:
        if self._owner_fd >= 0:
            self.unwatch(self._owner_fd)
        self.handle(events.StopAsked(at=self.clock.now(), reason="the process that deployed it has ended"))

    def _asked_to_end(self, number: int, _: object) -> None:
        self.handle(events.StopAsked(at=self.clock.now(), reason=f"it got {signal.Signals(number).name}"))

    def _hear_front(self) -> None:
        front = self.crew.front
        assert front is not None
        assert front.link is not None
        messages = front.link.hear()
        if messages is None:
            # It is about to end, or hangs: its process says which.
            self.unwatch(front.link)
            if not front.process.wait(1.0):
                front.process.kill()
            return
        for message in messages:
            self._from_front(message)

    def _from_front(self, message: wire.FromFront) -> None:
        at = self.clock.now()
        match message:
            case wire.FrontIs():
                self.crew.heard_front_is(message)
                self.handle(events.FrontUp(at=at, replicas=message.replicas))
            case wire.ReplicaReady():
                self.handle(events.ReplicaUp(at=at, replica=message.replica, version=message.version))
            case wire.ReplicaGone():
                self.handle(events.ReplicaLost(at=at, replica=message.replica, why=message.why))
            case wire.Drained():
                self.handle(events.ReplicaDrained(at=at, replica=message.replica))
            case wire.Load():
                self.traffic.add(at, message)
                self.handle(events.LoadSeen(at=at, load=message))
            case wire.AdminRequest():
                self.desk.administer(message)

    def _front_ended(self) -> None:
        front = self.crew.front
        assert front is not None
        self.unwatch(front.process)
        if front.link is not None:
            self.unwatch(front.link)
        self.handle(events.FrontDown(at=self.clock.now(), reason=self.crew.front_ended()))

    def _hear_host(self, host: Host) -> None:
        assert host.link is not None
        messages = host.link.hear()
        if messages is None:
            self.unwatch(host.link)
            if not host.process.wait(1.0):
                host.process.kill()
            return
        for fd in host.link.descriptors:
            os.close(fd)  # the listening socket, which we have
        host.link.descriptors.clear()
        for message in messages:
            at = self.clock.now()
            if isinstance(message, hosting.Gone):
                host.replicas.pop(message.replica, None)
                self.handle(
                    events.ReplicaDown(at=at, replica=message.replica, reason=message.reason, error=message.error)
                )
            elif isinstance(message, hosting.Using):
                for replica, size in message.memory.items():
                    self.handle(events.ReplicaGrew(at=at, replica=replica, memory_bytes=size))

    def _host_ended(self, host: Host) -> None:
        self.unwatch(host.process)
        if host.link is not None:
            self._last_words(host)
            self.unwatch(host.link)
        how = self.crew.host_ended(host)
        for replica in list(host.replicas):
            self.handle(
                events.ReplicaDown(at=self.clock.now(), replica=replica, reason=f"ended with its host, which {how}")
            )

    def _last_words(self, host: Host) -> None:
        """Hear what a host said before it ended."""
        while host.link is not None and (messages := host.link.hear()):
            for message in messages:
                if isinstance(message, hosting.Gone):
                    host.replicas.pop(message.replica, None)
                    self.handle(
                        events.ReplicaDown(
                            at=self.clock.now(), replica=message.replica, reason=message.reason, error=message.error
                        )
                    )

    # --- doing --------------------------------------------------------------------------------------------------------

    def _do(self, command: events.Command) -> None:
        match command:
            case events.Record():
                self.write(command.fact)
            case events.StartFront():
                self._start_front()
            case events.EndFront():
                self.crew.end_front(command.within_s, kill=command.kill)
            case events.Route():
                routes = [wire.Route(share.version, share.weight) for share in command.routes]
                self.crew.tell_front(wire.Routes(routes, command.shadow, command.by))
            case events.Expect():
                self.crew.tell_front(wire.Expect(command.starting, command.refuse))
            case events.StartReplica():
                forget_old_logs(self.crew.folder)
                known = self.versions.get(command.version)
                self.crew.start_replica(command.replica, command.version, known.libraries if known else ())
            case events.DrainReplica():
                self.crew.tell_front(wire.Drain(command.replica))
            case events.EndReplica():
                self.crew.end_replica(command.replica, kill=command.kill)
            case events.Tell():
                self.desk.tell(command.ask, command.error, command.body)
            case events.Finish():
                self.is_finished, self.error = True, command.error

    def _start_front(self) -> None:
        try:
            self.crew.start_front()
        except OSError as error:
            self.trouble = f"The front cannot be started: {error}"
            self.handle(events.FrontDown(at=self.clock.now(), reason=str(error)))

    def write(self, fact: AnyServingFact) -> None:
        """Write a fact down; where that is not possible, serving goes on, and the fact is written later."""
        self.record.apply(fact)
        self._unwritten.append(fact)
        try:
            self._journal.append(self._unwritten)
        except StoreError as error:
            if str(error) != self.trouble:
                _log.error("%s", error)
            self.trouble = str(error)
            del self._unwritten[:-_MOST_UNWRITTEN]
        else:
            self.trouble = ""
            self._unwritten.clear()

    def _check_started(self) -> None:
        """Say once that the first version serves, or that it cannot."""
        if self._say_started is None or self.policy.is_stopping:
            return
        release, fleet = self.policy.release, self.policy.fleet
        url = self.url
        is_coming = release.candidate and release.phase in {"starting", "promoted"}
        is_up = self.policy.front_is_up and release.current and not is_coming
        if is_up and (fleet.ready(release.current) or self.policy.scaler.replicas == 0):
            say, self._say_started = self._say_started, None
            say(Started(url=url, error=release.last_error))
        elif release.current and fleet.is_hopeless(release.current):
            say, self._say_started = self._say_started, None
            say(Started(url=url, error=fleet.deaths[release.current].last_error))

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.record.url


def say_on_stdout(started: Started) -> None:
    """Tell the process that started us, and close the pipe."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.buffer.write(msgspec.json.encode(started) + b"\n")
        sys.stdout.flush()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
