"""The shapes that the API of commands answers with."""

from __future__ import annotations

from typing import Annotated, Literal

from cargobike.ui.answers import Answer, Field


class CommandRule(Answer):
    """What a command may do for callers on other machines."""

    command: Annotated[str, Field(description="Its words: `models promote`.")]
    role: Annotated[Literal["read", "run", "administer"], Field(description="What a caller must be allowed to do.")]
    sends: Annotated[list[str], Field(description="Parameters that may name files which the caller sends.")]
    brings: Annotated[list[str], Field(description="Parameters that name what is brought back to the caller.")]
    only_here: Annotated[str, Field(description="Why it does not run from afar; empty if it does.")]


class CommandRules(Answer):
    """All commands, in alphabetical order."""

    commands: list[CommandRule]


class CallOpened(Answer):
    """A call that files can be sent to."""

    id: Annotated[str, Field(description="Names the call; only its caller knows it.")]


class FileReceived(Answer):
    """A piece of a file was written."""

    path: str
    size_bytes: Annotated[int, Field(ge=0, description="How long the file is now: where the next piece begins.")]


class FrameAnswer(Answer):
    """A piece of what a command printed."""

    stream: Literal["out", "err"]
    text: str


class FileMade(Answer):
    """A file that a command wrote for its caller."""

    path: str
    size_bytes: Annotated[int, Field(ge=0)]


class CommandState(Answer):
    """A command: what it printed since the last question, and whether it has ended."""

    id: str
    frames: list[FrameAnswer]
    next: Annotated[int, Field(ge=0, description="What to ask for next: `after`.")]
    exit_code: Annotated[int | None, Field(description="`null` while it runs.")]
    is_cancelled: bool
    files: Annotated[list[FileMade], Field(description="What it wrote for its caller, once it has ended.")]
