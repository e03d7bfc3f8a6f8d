"""The names of Maggy over our own calls: `from cargobike.compat.maggy import experiment, Searchspace`.

Modules are called as Maggy called theirs, in every version from 0.1 to 1.1. What stands behind them is in `running`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.compat.maggy.searchspace import Searchspace
    from cargobike.compat.maggy.trial import Trial

__all__ = ["Searchspace", "Trial"]

_SOURCES = {
    "Searchspace": "cargobike.compat.maggy.searchspace",
    "Trial": "cargobike.compat.maggy.trial",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
