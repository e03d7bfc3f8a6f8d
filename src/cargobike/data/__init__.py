"""Tables in, tensors out: data for train functions, and predictions for tables. The names below are public.

`data.write` and `data.pack` make tables, `data.open` finds them, `data.Loader` reads anything that holds rows. The
modules of this room are internal.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.data.arrivals import arrived
    from cargobike.data.formats import csv, delta, json_lines, tfrecord, webdataset
    from cargobike.data.loading.loader import Loader
    from cargobike.data.sources.tfrecords.writing import write_tfrecord
    from cargobike.data.tables.listing import list
    from cargobike.data.tables.opening import open
    from cargobike.data.tables.packing import pack
    from cargobike.data.tables.table import Table
    from cargobike.data.tables.writer import Progress
    from cargobike.data.tables.writing import write

__all__ = [
    "Loader",
    "Progress",
    "Table",
    "arrived",
    "csv",
    "delta",
    "json_lines",
    "list",
    "open",
    "pack",
    "tfrecord",
    "webdataset",
    "write",
    "write_tfrecord",
]

_SOURCES = {
    "Loader": "cargobike.data.loading.loader",
    "Progress": "cargobike.data.tables.writer",
    "Table": "cargobike.data.tables.table",
    "arrived": "cargobike.data.arrivals",
    **dict.fromkeys(("csv", "delta", "json_lines", "tfrecord", "webdataset"), "cargobike.data.formats"),
    "write_tfrecord": "cargobike.data.sources.tfrecords.writing",
    "list": "cargobike.data.tables.listing",
    "open": "cargobike.data.tables.opening",
    "pack": "cargobike.data.tables.packing",
    "write": "cargobike.data.tables.writing",
    # Not for users, who have `Loader`: other products read rows through it (`core/registering/keeping.py`).
    "open_source": "cargobike.data.sources.opening",
    "open_parquet_files": "cargobike.data.sources.parquet",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="data")


def __dir__() -> builtins.list[str]:
    return __all__
