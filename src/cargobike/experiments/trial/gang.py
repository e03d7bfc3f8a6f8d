"""The members of a gang exchange small values: addresses, metrics, that they are there.

What they say travels over the experiment's own encrypted connections, through the driver: no port is opened for it, it
works wherever workers do, and a member that is missing can be named. It is meant for rendezvous, not for tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cargobike.core.errors import InvalidInputError, TrialStopped, WaitError
from cargobike.core.running.member import Of, Role
from cargobike.experiments.trial.messages import ForRunner, FromTrial, Gathered, Membership, Published, Wanted
from cargobike.workers.whereabouts import address_towards
from cargobike.workers.wire.mailbox import Mailbox
from cargobike.workers.wire.messages import Tell

PATIENCE_S = 600.0
_LAST_QUESTION_S = 10.0
_LARGEST_VALUE = 64 << 10
_LARGEST_ANSWER = 768 << 10


class Together:
    """A real gang, reached through the agent.

    Args:
        trial: Number of the trial.
        attempt: Which attempt it is.
        membership: Our place in it.
        say: Tells the driver something about this attempt.
        mailbox: Where answers arrive.
        is_asked_to_end: Returns whether the trial was asked to stop, so that waiting makes no sense any more.
        driver_host: Where the driver is: peers reach us as it does.
    """

    def __init__(
        self,
        trial: int,
        attempt: int,
        membership: Membership,
        *,
        say: Callable[[FromTrial], None],
        mailbox: Mailbox[ForRunner],
        is_asked_to_end: Callable[[], bool],
        driver_host: str,
    ) -> None:
        self._trial = trial
        self._attempt = attempt
        self._membership = membership
        self._say = say
        self._mailbox = mailbox
        self._is_asked_to_end = is_asked_to_end
        self._repeats: dict[str, int] = {}
        self._largest = min(_LARGEST_VALUE, _LARGEST_ANSWER // len(membership.roles))
        self.address = address_towards(driver_host)

    def publish(self, name: str, value: bytes) -> None:
        """Send the other members a value, without waiting for any of them."""
        if len(value) > self._largest:
            raise InvalidInputError(
                f"{name!r} has {len(value)} bytes; a member of this gang can publish {self._largest} at once. "
                "Larger things travel between members directly: publish the address to fetch them from."
            )
        self._say(Published(name, bytes(value)))

    def gather(self, name: str, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Wait until all of them have published a name."""
        return self._gather(name, of, timeout_s, last=False)

    def exchange(self, name: str, value: bytes, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Publish and gather."""
        self.publish(name, value)
        return self._gather(name, of, timeout_s, last=True)

    def barrier(self, name: str = "barrier", *, timeout_s: float | None = None) -> None:
        """Wait until all workers are here."""
        self.exchange(self.numbered(name), b"", of="workers", timeout_s=timeout_s)

    def numbered(self, name: str) -> str:
        """Return a name for the next of several exchanges."""
        number = self._repeats[name] = self._repeats.get(name, 0) + 1
        return f"{name}#{number}"

    def _gather(self, name: str, of: Of, timeout_s: float | None, *, last: bool) -> list[bytes]:
        patience_s = timeout_s or self._membership.stall_timeout_s or PATIENCE_S
        self._say(Wanted(name, of, last=last))
        answer = self._wait(name, patience_s)
        if answer is None:
            if self._is_asked_to_end():
                raise TrialStopped(f"trial {self._trial:04d} was asked to stop")
            self._say(Wanted(name, of, at_once=True))
            answer = self._wait(name, _LAST_QUESTION_S)
            if answer is None:
                raise WaitError(f"the driver has not said for {patience_s:g} s which members published {name!r}")
        missing = [position for position, value in enumerate(answer.values) if value is None]
        if missing:
            names = self._names(missing, of)
            raise WaitError(f"waited {patience_s:g} s for {name!r} of {', '.join(names)}", missing=names)
        return [value for value in answer.values if value is not None]

    def _wait(self, name: str, timeout_s: float) -> Gathered | None:
        mine = (self._trial, self._attempt)

        def is_meant(message: ForRunner) -> bool:
            if not isinstance(message, Tell) or (message.task, message.attempt) != mine:
                return False
            return isinstance(message.body, Gathered) and message.body.name == name

        message = self._mailbox.wait(is_meant, timeout_s, self._is_asked_to_end)
        return message.body if isinstance(message, Tell) and isinstance(message.body, Gathered) else None

    def _names(self, missing: Sequence[int], of: Of) -> list[str]:
        members = chosen_members(self._membership.roles, of)
        names = []
        for position in missing:
            member = members[position]
            is_server = self._membership.roles[member] == Role.SERVER
            rank = member - self._membership.roles.index(Role.SERVER) if is_server else member
            names.append(f"{'server' if is_server else 'rank'} {rank} on {self._membership.hosts[member]}")
        return names


def chosen_members(roles: Sequence[str], of: str) -> list[int]:
    """Return the indices of the chosen members."""
    if of == "all":
        return list(range(len(roles)))
    return [index for index, role in enumerate(roles) if (role == Role.SERVER) == (of == "servers")]
