"""Share datasets and models with others, in private networks. The names below are public.

`publish` signs what others may have, `search` finds what they have published, `get` brings it here. Every record is
signed, every piece is verified, and transfers give way to everything else on the link. The modules of this room are
internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.sharing.catalogue.entry import Entry

__all__ = ["Entry"]

_SOURCES = {"Entry": "cargobike.sharing.catalogue.entry"}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="sharing")


def __dir__() -> list[str]:
    return __all__
