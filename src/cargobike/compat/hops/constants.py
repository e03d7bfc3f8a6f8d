"""`hops.constants`: names of the Hopsworks server's own; each use says that there is no such server here."""

from __future__ import annotations

from typing import Any

from cargobike.compat.hops.translating.gone import GoneError

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise GoneError(
        f"hops.constants.{name} cannot work here. It names parts of a Hopsworks server, and there is no such server; "
        "use our own calls, which the table in the documentation lists."
    )
