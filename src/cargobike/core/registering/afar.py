"""What a command may do when it is asked for from another machine: products declare it for each of their commands.

A command that is not declared does not run from afar. The declaration says which role a caller needs, which parameters
name files of the caller, and which may hold any text; every other value that looks like a path or an address is
refused, so that a caller reaches nothing of the server's machine that the command was not made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

RoleName = Literal["read", "run", "administer"]
ROLES: Final[tuple[RoleName, ...]] = ("read", "run", "administer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Afar:
    """How a command is run for a caller on another machine.

    Attributes:
        role: What the caller must at least be allowed to do.
        sends: Parameters that may name files of the caller, which are sent along, or something of the project.
        brings: Parameters that name a file or folder that the command writes, which is brought back to the caller.
        texts: Parameters that may hold any text, also what looks like a path or an address.
        raised: Roles that giving a parameter asks for, where it is more than the command itself does.
        keeps: Whether files that were sent stay in the project, since what was made of them needs them later.
        only_here: Why it runs only where it is called; empty if it also runs from afar.
    """

    role: RoleName = "read"
    sends: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    raised: Mapping[str, RoleName] = field(default_factory=dict)
    keeps: bool = False
    only_here: str = ""


def stronger(first: RoleName, second: RoleName) -> RoleName:
    """Return the role of two that may do more."""
    return max(first, second, key=ROLES.index)
