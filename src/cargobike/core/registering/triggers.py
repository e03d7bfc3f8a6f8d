"""What sets off a pipeline besides the clock: products say what happened, the scheduler asks them.

A trigger is plain data, made by a door (`monitoring.drifted("digits")`) and kept with a schedule. The product that has
its kind registers what looks whether it happened (`Product.triggers`). Looking is cheap, has a deadline of its own, and
changes nothing: what was seen is a mark that the scheduler keeps, so that nothing sets off a pipeline twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products


class Trigger(msgspec.Struct, frozen=True):
    """Something that may happen.

    Attributes:
        kind: What it is: `drifted`, `changed`, `arrived`.
        subject: What it happens to: a deployment, a feature group, an address.
        options: More about it, as plain data.
    """

    kind: str
    subject: str
    options: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.subject} {self.kind}"


class Seen(NamedTuple):
    """What was seen of a trigger.

    Attributes:
        mark: Plain text that stands for everything that has happened until now; given again next time.
        cause: What happened since the last mark, as plain data for the pipeline and for people (an alarm with its
            window and the version of its data, a commit, files); `None` if nothing did.
    """

    mark: str
    cause: dict[str, Any] | None = None


class Look(Protocol):
    """Looks whether a trigger happened."""

    def __call__(self, trigger: Trigger, mark: str, project: ProjectFolder) -> Seen:
        """Return what was seen since a mark; with an empty mark, only the mark of now.

        Raises:
            CargobikeError: If it cannot be looked at now; the scheduler says so and tries again later.
        """
        ...


def look_of(trigger: Trigger) -> Look:
    """Return what looks whether a trigger happened.

    Raises:
        NotFoundError: If no product knows its kind.
    """
    known = {kind: path for product in products() for kind, path in product.triggers.items()}
    if trigger.kind not in known:
        raise NotFoundError(
            f"{trigger.kind!r} is no kind of trigger that is known here; known are {', '.join(sorted(known))}.",
            wanted=trigger.kind,
        )
    look: Look = load(known[trigger.kind])
    return look
