"""What the driver and a runner say to each other about a trial: the bodies of the wire's messages.

On the wire a trial is a task, and its attempts are the task's.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from cargobike.core import facts
from cargobike.core.values.numbers import FIRST_STEP, LAST_STEP
from cargobike.workers.wire.inner import Brought, Kept, Leave
from cargobike.workers.wire.messages import (
    Assign,
    Beat,
    Bye,
    Died,
    Ended,
    Hello,
    Output,
    Quiet,
    Returned,
    Said,
    Tell,
    Used,
)

Outcome = Literal["completed", "stopped", "paused", "failed", "lost"]


Step = Annotated[int, msgspec.Meta(ge=FIRST_STEP, le=LAST_STEP)]
"""A step; journals and curves have 64 bits for one."""


class TrialMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all bodies that are told apart by a tag."""


# -- runner to driver ------------------------------------------------------------------------------------------------


class Point(TrialMessage, frozen=True, tag="point", gc=True):
    """A report; with `waits`, the train function stands still until a `Verdict` comes.

    Attributes:
        number: Which report of the trial it is, from 1; 0 for a rank whose reports are not recorded.
        made_in: The attempt that made it, if that was an earlier one: it may or may not have arrived.
        asks: Whether the driver is to send a `Confirmed` once it is in the journal.
    """

    step: Step
    metrics: dict[str, float]
    waits: bool = False
    number: facts.ReportNumber = 0
    made_in: int = 0
    asks: bool = False


class Saved(TrialMessage, frozen=True, tag="saved"):
    """A checkpoint is durable; its path is relative to the project."""

    step: Step
    path: str
    size_bytes: int = 0


class KeptModel(TrialMessage, frozen=True, tag="kept-model"):
    """A model lies packed among the trial's files, under its name."""

    name: str


class Drawn(TrialMessage, frozen=True, tag="drawn"):
    """How much a rank has drawn from its data since its attempt began, and how long it had to wait for that."""

    after_s: float
    rows: int
    waited_s: float


class Published(TrialMessage, frozen=True, tag="published"):
    """A member of a gang tells the others something."""

    name: str
    value: bytes


class Wanted(TrialMessage, frozen=True, tag="wanted"):
    """A member of a gang waits for what others publish under a name.

    With `at_once` it waits no longer, and wants to know which members are missing. With `last` it will not ask again:
    what all of them have asked for in this way can be forgotten.
    """

    name: str
    of: str = "all"
    at_once: bool = False
    last: bool = False


class AttemptEnd(msgspec.Struct, frozen=True, array_like=True):
    """How an attempt went on one worker, as its runner says.

    `alike` is equal for failures with the same cause. A symptom is one that another member of the gang has caused.
    `extras` is what was returned besides numbers, as plain data. `took_s` is how long the runner was busy with it.
    """

    outcome: Outcome
    value: float | None = None
    metrics: dict[str, float] = {}
    error: str | None = None
    alike: str = ""
    peak_memory_bytes: int | None = None
    is_symptom: bool = False
    extras: dict[str, Any] = {}
    took_s: float | None = None


FromTrial = Point | Saved | KeptModel | Drawn | Published | Wanted


# -- driver to runner ------------------------------------------------------------------------------------------------


class Membership(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A worker's place in a gang; lists of members have those that train first, then servers.

    Attributes:
        index: Which member this worker is.
        roles: What each member does: `worker`, `server`, or what TensorFlow calls it.
        hosts: Where each member is.
        local_rank: Which of the workers on its host it is.
        local_world_size: How many they are.
        secret: Known to the members of this attempt only.
        stall_timeout_s: How long a member may keep the others waiting.
    """

    index: int
    roles: tuple[str, ...]
    hosts: tuple[str, ...]
    local_rank: int = 0
    local_world_size: int = 1
    secret: bytes = b""
    stall_timeout_s: float | None = None

    @property
    def role(self) -> str:
        """What this worker does."""
        return self.roles[self.index]


class Assignment(msgspec.Struct, frozen=True, array_like=True):
    """A trial to run; `start_from` is a folder of checkpoints, relative to the project.

    `reports` is how many reports of the trial there are: a checkpoint of an earlier version does not say after how many
    it was saved, and an attempt that goes on from it counts on from these.
    """

    params: dict[str, Any]
    seed: int
    rank: int = 0
    world_size: int = 1
    milestones: tuple[int, ...] | Literal["every"] = ()
    start_from: str | None = None
    membership: Membership | None = None
    reports: int = 0


class Verdict(TrialMessage, frozen=True, tag="verdict"):
    """Go on, stop or pause at this step."""

    step: int
    decision: Literal["continue", "stop", "pause"]


class Confirmed(TrialMessage, frozen=True, tag="confirmed"):
    """All reports up to this number are in the journal."""

    number: int


class Gathered(TrialMessage, frozen=True, tag="gathered", gc=True):
    """What the members of a gang have published under a name, in their order; `None` for those that have not."""

    name: str
    values: list[bytes | None]


ToTrial = Verdict | Confirmed | Gathered

FromWorker = Hello | Beat | Said[FromTrial] | Ended[AttemptEnd] | Died | Quiet | Used | Output | Returned | Bye
"""Everything that the driver of an experiment hears from a worker."""
ForRunner = Assign[Assignment] | Tell[ToTrial] | Kept | Brought | Leave
"""Everything that the runner of a trial hears from its agent."""

decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode
decode_for_runner = msgspec.msgpack.Decoder(ForRunner).decode
decode_assign = msgspec.msgpack.Decoder(Assign[Assignment]).decode
