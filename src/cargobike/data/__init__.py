"""Tables in, tensors out: data for train functions, and predictions for tables. The names below are public.

`data.write` and `data.pack` make tables, `data.open` finds them, `data.Loader` reads anything that holds rows. The
modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.data.tables.opening import open
    from cargobike.data.tables.table import Table
    from cargobike.data.tables.writing import Progress, write

__all__ = ["Progress", "Table", "open", "write"]

_SOURCES = {
    "Progress": "cargobike.data.tables.writing",
    "Table": "cargobike.data.tables.table",
    "open": "cargobike.data.tables.opening",
    "write": "cargobike.data.tables.writing",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
