"""What callers may do: three roles, of which each includes those before it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a caller may do; each role may also do what the ones before it may."""

    READ = "read"
    """Look at everything."""
    RUN = "run"
    """Start, stop, resume, release, promote, acknowledge, tag and annotate."""
    ADMINISTER = "administer"
    """Remove things, make and revoke tokens, change limits."""

    def includes(self, other: Role) -> bool:
        """Tell whether a caller with this role may do what another role may."""
        return self.rank >= other.rank

    def at_most(self, other: Role) -> Role:
        """Return the weaker of two roles."""
        return other if self.includes(other) else self

    @property
    def rank(self) -> int:
        """Its place among the roles, the weakest first."""
        return _ORDER.index(self)

    @property
    def may_run(self) -> bool:
        """Whether a caller may start and stop things."""
        return self.includes(Role.RUN)

    @property
    def may_administer(self) -> bool:
        """Whether a caller may remove things and make tokens."""
        return self.includes(Role.ADMINISTER)


_ORDER: Final = (Role.READ, Role.RUN, Role.ADMINISTER)


def lacking(needed: Role, caller: Role, most: Role = Role.ADMINISTER) -> str:
    """Return why a caller may not do something, and what to do about it."""
    if not most.includes(needed):
        return f"This needs the role {needed.value!r}, but this server was started with --read-only."
    return (
        f"This needs the role {needed.value!r}; your token has the role {caller.value!r}. "
        f"A person who administers the project makes another with: cargobike tokens create NAME --role {needed.value}"
    )
