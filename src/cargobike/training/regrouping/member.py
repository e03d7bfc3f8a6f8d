"""One rank of a job whose ranks come and go: meets the others, again and again, and learns when to."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Final

from cargobike.core import settings
from cargobike.core.errors import WaitError
from cargobike.core.running import member
from cargobike.core.running.member import LOOPBACK, Launched
from cargobike.training.regrouping.line import Line, open_inherited
from cargobike.training.regrouping.messages import Broken, Changed, Dismissed, Progress, Ready, ToRank, World
from cargobike.workers.whereabouts import interface_of

MEET_S: Final = 3600.0
"""How long a rank waits for the driver to name a world; the driver gives up long before."""
_LOOK_EVERY_S: Final = 0.5


class Regrouping(Launched):
    """A rank that may meet others more than once.

    Args:
        line: To the driver.
        address: The address of this host that the others can reach.
        mark: What tells this job from others.

    Attributes:
        generation: Which world this rank is in, -1 before the first one.
        hosts: The host of each rank.
        on_broken: Called, in a thread of its own, when a rank of the present world is lost.
    """

    def __init__(self, line: Line, address: str = LOOPBACK, mark: str = "") -> None:
        super().__init__()
        self._line = line
        self._address = address
        self._mark = mark
        self._holder: socket.socket | None = None
        self._watch: threading.Thread | None = None
        self._broken = -1
        self.generation = -1
        self.hosts: tuple[str, ...] = ()
        self.on_broken: Callable[[str], None] | None = None

    def meet(self, timeout_s: float = MEET_S) -> World:
        """Wait for the next world, and be a rank of it.

        Raises:
            SystemExit: If there is no place for this rank any more.
            WaitError: If the driver does not answer in time.
        """
        if self._holder is not None:
            self._holder.close()
        self._holder = _hold_port()
        self._line.say(Ready(f"{self._address}:{self._holder.getsockname()[1]}"))
        answer = self._line.wait(self._is_new, timeout_s)
        if isinstance(answer, Dismissed):
            raise SystemExit(0)
        if not isinstance(answer, World):
            raise WaitError(f"the driver has not said within {timeout_s:g} s which ranks are there")
        self.generation, self.hosts = answer.generation, answer.hosts
        self.rank, self.world_size = answer.rank, len(answer.hosts)
        same_host = [rank for rank, host in enumerate(answer.hosts) if host == answer.hosts[answer.rank]]
        self.local_rank = same_host.index(answer.rank)
        self.local_world_size = len(same_host)
        self.meeting = f"{self._mark}-{answer.generation}"
        self.meeting_place = answer.place
        self.gang = member.Alone() if self.world_size == 1 else None
        interface = interface_of(self._address)
        if interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        self._begin_to_watch()
        return answer

    def _is_new(self, message: ToRank) -> bool:
        if isinstance(message, Dismissed):
            return True
        return isinstance(message, World) and message.generation > self.generation

    def for_programs(self, descriptor: int) -> dict[str, str]:
        """Return the variables by which a program that this rank starts takes its place, with a line to the driver."""
        return {settings.REGROUPING: f"{descriptor} {self._address} {self._mark}"}

    @property
    def line(self) -> Line:
        """To the driver."""
        return self._line

    @property
    def is_broken(self) -> bool:
        """Whether a rank of the present world is lost."""
        return self._broken >= self.generation

    def changes(self) -> Changed | None:
        """Return what has changed since this world began, `None` if nothing has: then go on."""
        told = self._line.take(lambda message: isinstance(message, Changed) and message.generation <= self.generation)
        now = [each for each in told if isinstance(each, Changed) and each.generation == self.generation]
        return now[-1] if now else None

    def progressed(self) -> None:
        """Tell the driver that this world got further."""
        self._line.say(Progress())

    def _begin_to_watch(self) -> None:
        if self._watch is None:
            self._watch = threading.Thread(target=self._look_out, name="cargobike-lost-ranks", daemon=True)
            self._watch.start()

    def _look_out(self) -> None:
        while True:
            told = self._line.wait(lambda message: isinstance(message, Broken), _LOOK_EVERY_S)
            if isinstance(told, Broken) and told.generation > self._broken:
                self._broken = told.generation
                if told.generation == self.generation and self.on_broken is not None:
                    self.on_broken(told.why)


def _hold_port() -> socket.socket:
    """Bind a port that a store of this process can listen on, and no other program."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    return holder


def regrouping_member() -> Regrouping | None:
    """Return what this process is in a job whose ranks come and go; `None` in any other."""
    here = member.current() if member.is_inside() else None
    if here is not None:
        return here if isinstance(here, Regrouping) else None
    words = os.environ.pop(settings.REGROUPING, "").split()  # for this program alone, not for what it starts
    if not words:
        return None
    descriptor, address, mark = words
    mine = Regrouping(open_inherited(int(descriptor)), address, mark)
    member.enter(mine)
    return mine


def here_regrouping() -> Regrouping:
    """Return what this process is in a job whose ranks come and go, where it surely is in one."""
    here = regrouping_member()
    assert here is not None
    return here
