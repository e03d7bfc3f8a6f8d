"""Names that have no meaning here: each says what stands in its place when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from cargobike.core.errors import CargobikeError


class GoneError(CargobikeError, NotImplementedError, AttributeError):
    """A call of an older library that cannot work here; the message says what stands in its place."""


def no_longer(old: str, instead: str) -> Callable[..., Any]:
    """Return a function that says why there is no such call."""

    def call(*args: object, **kwargs: object) -> NoReturn:
        raise GoneError(f"{old} cannot work here. {instead}")

    call.__name__ = call.__qualname__ = old.rpartition(".")[2]
    call.__doc__ = f"Say what stands in its place: {instead}"
    return call
