"""Messages between a driver and its workers.

Nothing here knows what a worker runs. A program on a worker is given *assignments*; each has a task and an attempt (two
numbers) and a body, which only the driver and the program understand. Agents pass bodies on as they are.

Everything is msgpack, decoded into these types or refused; nothing that arrives from a socket is ever unpickled.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from cargobike.core.values.undecodable import UNDECODABLE

PROTOCOL = 2

Body = TypeVar("Body")
"""What only the driver and the program understand; `msgspec.Raw` for everything between them."""

StreamName = Literal["stdout", "stderr"]


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages."""


# -- worker to driver ------------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """An agent introduces itself, after every (re)connect; one that `holds` assignments takes some ahead."""

    worker: str
    pid: int
    host: str
    python: str
    cargobike: str
    protocol: int = PROTOCOL
    gpus: tuple[str, ...] = ()
    holds: bool = False


class Beat(Message, frozen=True, tag="beat"):
    """The agent is alive."""


class Said(Message, Generic[Body], frozen=True, tag="said", gc=True):
    """The program has something to say about its assignment."""

    task: int
    attempt: int
    body: Body


class Ended(Message, Generic[Body], frozen=True, tag="ended", gc=True):
    """The program is done with its assignment.

    Attributes:
        failed: Whether it went wrong; then the end of what was printed comes with it.
        last_output: That end, added by the agent.
        stack: Where the threads stood when the driver asked for it, added by the agent.
    """

    task: int
    attempt: int
    body: Body
    failed: bool = False
    last_output: str = ""
    stack: str = ""


class Died(Message, frozen=True, tag="died"):
    """The process of an assignment has ended before the program was done with it.

    Attributes:
        code: Its exit code, negative for the signal that ended it.
        halted: Whether the driver had asked for the end of the assignment.
        killed: Whether the agent had begun to end the process by force.
        peak_memory_bytes: The most memory that it has used.
        last_output: The end of what it has printed.
        stack: Where its threads stood when the driver asked for it.
    """

    task: int
    attempt: int
    code: int
    halted: bool = False
    killed: bool = False
    peak_memory_bytes: int = 0
    last_output: str = ""
    stack: str = ""


class Quiet(Message, frozen=True, tag="quiet"):
    """The process of an assignment has neither computed nor said anything for so long."""

    task: int
    attempt: int
    idle_s: float


class Used(Message, frozen=True, tag="used"):
    """What the processes of an assignment use.

    Attributes:
        after_s: How long it has been running.
        processors: How many processors it has kept busy since the sample before; `None` if that is not known.
        memory_bytes: Memory that they hold now.
        gpu: The busiest of its GPUs, from 0 to 1; `None` without any.
        gpu_memory_bytes: Memory in use on its GPUs.
    """

    task: int
    attempt: int
    after_s: float
    processors: float | None
    memory_bytes: int
    gpu: float | None = None
    gpu_memory_bytes: int | None = None


class Output(Message, frozen=True, tag="output"):
    """Captured output of an assignment."""

    task: int
    stream: StreamName
    data: bytes


class Returned(Message, frozen=True, tag="returned"):
    """The agent returns assignments that were not begun, and never will be; what is not among them was begun."""

    tasks: tuple[int, ...]


class Bye(Message, frozen=True, tag="bye"):
    """The agent has delivered everything and leaves."""


WorkerMessage = Hello | Beat | Said[msgspec.Raw] | Ended[msgspec.Raw] | Died | Quiet | Used | Output | Returned | Bye


# -- driver to worker ------------------------------------------------------------------------------------------------


class Files(msgspec.Struct, frozen=True, array_like=True):
    """Folders to transfer with an assignment where the project's disk is not mounted; paths start at the project.

    Attributes:
        bring: Their subfolders are brought before the assignment starts.
        follow: What is written there is sent while it grows.
        deliver: What is there is sent before the end is reported.
        prune: Subfolders that were deleted here by then are deleted there, too; empty if others write there as well.
    """

    bring: tuple[str, ...] = ()
    follow: str = ""
    deliver: tuple[str, ...] = ()
    prune: str = ""


class Assign(Message, Generic[Body], frozen=True, tag="assign", gc=True):
    """Do something.

    Attributes:
        quiet_after_s: Report a process that stands still for half of this time; never if it is `None`.
        files: What to transfer with it where the project's disk is not mounted.
    """

    task: int
    attempt: int
    body: Body
    quiet_after_s: float | None = None
    files: Files | None = None


class Tell(Message, Generic[Body], frozen=True, tag="tell", gc=True):
    """Something that the program waits for; `droppable` if a program that does not read may miss it."""

    task: int
    attempt: int
    body: Body
    droppable: bool = False


class Halt(Message, frozen=True, tag="halt"):
    """End an assignment: by asking the program, and by force after `grace_s`; with `stack`, report where it stands."""

    task: int
    attempt: int
    grace_s: float = 0.0
    stack: bool = False


class Recall(Message, frozen=True, tag="recall"):
    """Return the assignments that were not begun; answered by `Returned`."""


class Release(Message, frozen=True, tag="release"):
    """Deliver everything and leave."""


DriverMessage = Assign[msgspec.Raw] | Tell[msgspec.Raw] | Halt | Recall | Release


NoMessage = UNDECODABLE
"""What decoding raises for bytes that are not a message."""

encode_message = msgspec.msgpack.Encoder().encode
decode_worker_message = msgspec.msgpack.Decoder(WorkerMessage).decode
decode_driver_message = msgspec.msgpack.Decoder(DriverMessage).decode
