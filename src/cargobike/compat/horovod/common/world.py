"""The job that this process has joined, while it has."""

from __future__ import annotations

from dataclasses import dataclass

from cargobike.compat.horovod.common.starting import Place
from cargobike.core.errors import InvalidInputError
from cargobike.training.named.engine import Engine


@dataclass(slots=True)
class World:
    """One rank between `init` and `shutdown`."""

    place: Place
    engine: Engine


_world: World | None = None


def here() -> World:
    """Return it.

    Raises:
        ValueError: Before `init`.
    """
    if _world is None:
        raise InvalidInputError("Horovod has not been initialized; use hvd.init().")
    return _world


def known() -> World | None:
    """Return it, `None` before `init`."""
    return _world


def enter(world: World | None) -> None:
    """Make it the current one; `None` to leave."""
    global _world
    _world = world
