"""Layer 1: WHAT to try. Spaces, optimizers, stop rules.

Pure: no I/O on the way, no clock, no thread. An optimizer is a deterministic function of its seed and of what
it was shown, so that a search can be replayed from its journal. This room does not know how trials
are run.

Internal: public names are in `cargobike.optimizers`, `cargobike.stop_rules`, `cargobike.spaces`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.search.ask_tell import Search

__all__ = ["Search"]


if not TYPE_CHECKING:  # lazily: everything that imports a module of this room runs this file first
    __getattr__ = lazy_names(__name__, {"Search": "cargobike.search.ask_tell"})
