"""Layer 1: WHAT to try. Spaces, optimizers, stop rules.

Pure: no I/O on the way, no clock, no thread. An optimizer is a deterministic function of its seed and of what
it was shown, so that a search can be replayed from its journal. This room does not know how trials
are run.

Internal: public names are in `cargobike.optimizers`, `cargobike.stop_rules`, `cargobike.spaces`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cargobike.search.ask_tell import Search

__all__ = ["Search"]


def __getattr__(name: str) -> Any:
    # Lazily, because everything that imports a module of this room runs this file first.
    if name == "Search":
        return importlib.import_module("cargobike.search.ask_tell").Search
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
