"""The events that an agent handles, and the commands that it answers with."""

from __future__ import annotations

import msgspec

from cargobike.workers.usage import Measured
from cargobike.workers.wire.inner import Exited, FromRunner, ToTemplate
from cargobike.workers.wire.messages import DriverMessage, Files, StreamName

# -- events ----------------------------------------------------------------------------------------------------------


class _Event(msgspec.Struct, gc=False):
    """Base of all events: when it happened."""

    at: float


class Ordered(_Event):
    """The driver has said something; `packet` is what it said, encoded."""

    message: DriverMessage
    packet: bytes


class DriverHeard(_Event):
    """Something has come from the driver, so it is alive."""


class RunnerSaid(_Event):
    """The runner has said something; what it had printed before has been handed in."""

    message: FromRunner
    packet: bytes


class RunnerStarted(_Event):
    """The template has given the assignment to a runner."""


class RunnerExited(_Event):
    """A runner has ended; what it said, printed and started before has been dealt with."""

    exited: Exited


class TakenBack(_Event):
    """So many assignments, the last ones that were sent to the runner, were taken back before it could begin them."""

    count: int


class CaughtUp(_Event):
    """After `TakenBack`: everything that the runner has said was handed in, so it is known what it works on."""


class TemplateGone(_Event):
    """The template has ended, and the runner with it."""


class Printed(_Event):
    """The runner, or something that it has started, has printed something."""

    stream: StreamName
    data: bytes


class RunnerMeasured(_Event):
    """Answers `MeasureRunner`: how much processor time everything below the template has used."""

    processor_s: float


class UseMeasured(_Event):
    """Answers `MeasureUse`."""

    measured: Measured


class StackRead(_Event):
    """Answers `ReadStack`: what the runner has written so far."""

    text: str


class ErrandDone(_Event):
    """The courier is back; `error` says why it failed, if it did."""

    errand: int
    error: str


class Ticked(_Event):
    """Time has passed; so many envelopes have not been acknowledged by the driver."""

    in_flight: int = 0


Event = (
    Ordered
    | DriverHeard
    | RunnerSaid
    | RunnerStarted
    | RunnerExited
    | TakenBack
    | CaughtUp
    | TemplateGone
    | Printed
    | RunnerMeasured
    | UseMeasured
    | StackRead
    | ErrandDone
    | Ticked
)


# -- commands --------------------------------------------------------------------------------------------------------


class SendDriver(msgspec.Struct, gc=False):
    """Send a message to the driver."""

    packet: bytes


class SendRunner(msgspec.Struct, gc=False):
    """Send a message to the runner; a droppable one only if it can take it at once."""

    packet: bytes
    droppable: bool = False


class SendInLine(msgspec.Struct, gc=False):
    """Send an assignment, or that there is none, to the runner, which reads it when it is done with those before."""

    packet: bytes


class CatchUp(msgspec.Struct, gc=False):
    """Take back what the runner has not begun, and hear all that it has said; answered by `TakenBack`, `CaughtUp`."""


class TellTemplate(msgspec.Struct, gc=False):
    """Send a message to the template."""

    message: ToTemplate


class SetStopFlag(msgspec.Struct, gc=False):
    """Tell the program, through shared memory, whether it is asked to stop."""

    value: bool


class ListenToRunner(msgspec.Struct, gc=False):
    """Read messages from the runner, or stop reading so that it has to wait."""

    on: bool


class MeasureUse(msgspec.Struct, gc=False):
    """Measure what the runner and everything below it use."""


class MeasureRunner(msgspec.Struct, gc=False):
    """Find out how much processor time the runner has used."""


class ReadStack(msgspec.Struct, gc=False):
    """Read what the runner has written about its threads."""


class BringFolders(msgspec.Struct, gc=False):
    """Have the courier bring the subfolders of some folders, and follow what is written during the assignment."""

    errand: int
    files: Files


class BringFile(msgspec.Struct, gc=False):
    """Have the courier bring a file."""

    errand: int
    path: str


class KeepFolder(msgspec.Struct, gc=False):
    """Have the courier send a folder that is complete."""

    errand: int
    path: str
    alone: bool


class DeliverFiles(msgspec.Struct, gc=False):
    """Have the courier send what an assignment has left behind."""

    errand: int
    files: Files


class Leave(msgspec.Struct, gc=False):
    """End this worker; nothing follows. `failure` says why, if it was not released."""

    failure: str = ""


Command = (
    SendDriver
    | SendRunner
    | SendInLine
    | CatchUp
    | TellTemplate
    | SetStopFlag
    | ListenToRunner
    | MeasureRunner
    | MeasureUse
    | ReadStack
    | BringFolders
    | BringFile
    | KeepFolder
    | DeliverFiles
    | Leave
)
