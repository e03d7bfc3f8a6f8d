"""Share datasets and models with others, in private networks. The names below are public.

`publish` signs what others may have, `search` finds what they have published, `get` brings it here. Every record is
signed, every piece is verified, and transfers give way to everything else on the link. The modules of this room are
internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.sharing.catalogue.entry import Entry, Opinion
    from cargobike.sharing.front import block, mute, opinions, publish, rate, search, trust, withdraw
    from cargobike.sharing.getting.front import get
    from cargobike.sharing.getting.handle import Arrival
    from cargobike.sharing.getting.holders import holders

__all__ = [
    "Arrival",
    "Entry",
    "Holder",
    "Opinion",
    "block",
    "get",
    "holders",
    "mute",
    "opinions",
    "publish",
    "rate",
    "search",
    "trust",
    "withdraw",
]

_FRONT = "cargobike.sharing.front"
_SOURCES = {
    "Arrival": "cargobike.sharing.getting.handle",
    "Entry": "cargobike.sharing.catalogue.entry",
    "Holder": "cargobike.sharing.shapes",
    "Opinion": "cargobike.sharing.catalogue.entry",
    "block": _FRONT,
    "get": "cargobike.sharing.getting.front",
    "holders": "cargobike.sharing.getting.holders",
    "mute": _FRONT,
    "opinions": _FRONT,
    "publish": _FRONT,
    "rate": _FRONT,
    "search": _FRONT,
    "trust": _FRONT,
    "withdraw": _FRONT,
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="sharing")


def __dir__() -> list[str]:
    return __all__
