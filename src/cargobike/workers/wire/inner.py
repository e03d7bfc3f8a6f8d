"""Messages between the processes of one worker: agent and template, agent and runner.

An agent passes on as they are: `Assign` and `Tell` from the driver to the runner, `Said` and, mostly, `Ended` from the
runner to the driver. What is here stays inside the worker.
"""

from __future__ import annotations

import msgspec

from cargobike.workers.wire.messages import Assign, Ended, Message, Said, Tell

# -- agent to template -----------------------------------------------------------------------------------------------


class Start(Message, frozen=True, tag="start"):
    """Give an assignment to a fresh runner."""

    assign: msgspec.Raw


class Kill(Message, frozen=True, tag="kill"):
    """Kill the runner, if there is one."""


class ShowStack(Message, frozen=True, tag="show-stack"):
    """Make the runner write the stacks of its threads."""


class Import(Message, frozen=True, tag="import"):
    """Import these modules, so that the next runner finds them there."""

    names: list[str]


class CheckUnread(Message, frozen=True, tag="check-unread"):
    """Start anew if the runner that has just ended left an assignment unread; answered by `Exited.goes_on`."""


ToTemplate = Start | Kill | ShowStack | Import | CheckUnread


# -- template to agent -----------------------------------------------------------------------------------------------


class Started(Message, frozen=True, tag="started"):
    """A runner has been given the assignment; not said of one that has ended before there was time to say it."""

    pid: int = 0


class Exited(Message, frozen=True, tag="exited"):
    """How a runner ended: its exit code, negative for a signal, and the most memory it used.

    `goes_on`, known only after the agent has asked: an assignment was on its way to the runner, and gets a new one.
    """

    code: int
    peak_memory_bytes: int
    goes_on: bool | None = None


FromTemplate = Started | Exited


# -- runner to agent -------------------------------------------------------------------------------------------------


class Imported(Message, frozen=True, tag="imported"):
    """Libraries that were imported in this runner, for the next ones to have at once."""

    names: list[str]


class Keep(Message, frozen=True, tag="keep"):
    """A folder of the project is complete here, and is to be kept there; answered by `Kept`.

    With `alone` only this runner writes folders there: older ones that were deleted here are deleted there, too.
    """

    path: str
    alone: bool


class Bring(Message, frozen=True, tag="bring"):
    """A file of the project is needed here; answered by `Brought`."""

    path: str


FromRunner = Said[msgspec.Raw] | Ended[msgspec.Raw] | Imported | Keep | Bring


# -- agent to runner -------------------------------------------------------------------------------------------------


class Kept(Message, frozen=True, tag="kept"):
    """A folder has arrived where it is kept, or why not."""

    path: str
    error: str = ""


class Brought(Message, frozen=True, tag="brought"):
    """A file is here, or why not."""

    path: str
    error: str = ""


class Leave(Message, frozen=True, tag="leave"):
    """There is no further assignment."""


ToRunner = Assign[msgspec.Raw] | Tell[msgspec.Raw] | Kept | Brought | Leave

decode_for_template = msgspec.msgpack.Decoder(ToTemplate).decode
decode_from_template = msgspec.msgpack.Decoder(FromTemplate).decode
decode_from_runner = msgspec.msgpack.Decoder(FromRunner).decode
decode_for_runner = msgspec.msgpack.Decoder(ToRunner).decode
