"""What callers on other machines may have done: the declarations of all products, and how they are enforced."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from cargobike.core.errors import ForbiddenError, InvalidInputError
from cargobike.core.registering.afar import ROLES, Afar, RoleName, stronger
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.remote.commands.parsing import Parsed, parse

SENT: Final = "in"
"""The folder beside the command with the files that the caller sent."""
MADE: Final = "out"
"""The folder beside the command with what it writes for the caller."""


class Allowed(NamedTuple):
    """A command that may be run for a caller."""

    parsed: Parsed
    afar: Afar
    role: RoleName

    @property
    def arguments(self) -> list[str]:
        """The command line, as it is run."""
        return self.parsed.rewritten(lambda _, text: text)


@functools.cache
def declared() -> dict[str, Afar]:
    """Return what products declare for their commands, by the words of the command."""
    known: dict[str, Afar] = {}
    for product in products():
        if product.afar:
            known.update(load(product.afar))
    return known


def declaration(parsed: Parsed) -> Afar:
    """Return what is declared for a command.

    Raises:
        InvalidInputError: If it runs only where it is called.
    """
    afar = declared().get(parsed.name)
    if afar is None:
        raise InvalidInputError(f"`cargobike {parsed.name}` was not declared to run from afar; run it on the server.")
    if afar.only_here:
        raise InvalidInputError(f"`cargobike {parsed.name}` runs only where it is called: {afar.only_here}")
    return afar


def allowed(arguments: Sequence[str], caller: RoleName, known: Collection[str] = ()) -> Allowed:
    """Check a command line that a caller asks for.

    Args:
        arguments: The command line.
        caller: The caller's role.
        known: Parameters whose values do not come from the caller, but from what the project itself keeps.

    Raises:
        NotFoundError: If there is no such command.
        InvalidInputError: If it does not run from afar, or a value could reach what is the server's own.
        ForbiddenError: If the caller's role is too weak.
    """
    parsed = parse(arguments)
    afar = declaration(parsed)
    role = needed(parsed, afar)
    if ROLES.index(caller) < ROLES.index(role):
        raise ForbiddenError(
            f"`cargobike {parsed.name}` needs the role {role!r}; yours is {caller!r}. "
            f"A person who administers the project makes a token with: cargobike tokens create NAME --role {role}"
        )
    mistakes = [
        f"{parameter}: {text!r} {why}"
        for parameter, texts in parsed.values.items()
        for text in texts
        if parameter not in known and (why := _problem(afar, parameter, text))
    ]
    if mistakes:
        raise InvalidInputError(f"`cargobike {parsed.name}` cannot be run from afar like this:", mistakes)
    return Allowed(parsed, afar, role)


def needed(parsed: Parsed, afar: Afar) -> RoleName:
    """Return the role that a command needs with the parameters that it was given."""
    role = afar.role
    for parameter, more in afar.raised.items():
        if parameter in parsed.values:
            role = stronger(role, more)
    return role


def is_inside(text: str, folder: str) -> bool:
    """Tell whether a text is a plain path inside one of the two folders beside a command; `:name` may follow it."""
    parts = PurePosixPath(text).parts
    return len(parts) > 1 and parts[0] == folder and ".." not in parts and "\0" not in text


def _problem(afar: Afar, parameter: str, text: str) -> str:
    if parameter in afar.texts:
        return ""
    if parameter in afar.sends and (is_inside(text, SENT) or ("://" in text and not text.startswith("file:"))):
        return ""
    if parameter in afar.brings:
        if is_inside(text, MADE) or text == "-":
            return ""
        return "is a path; the caller is sent what is written"
    if _looks_like_path(text):
        return "looks like a path or an address; only names of what the project has can be given here"
    return ""


def _looks_like_path(text: str) -> bool:
    parts = PurePosixPath(text).parts
    starts = text.startswith(("/", "~", "./", "../", f"{SENT}/", f"{MADE}/"))
    return starts or text in {".", ".."} or ".." in parts or "://" in text or "\0" in text or text.startswith("file:")
