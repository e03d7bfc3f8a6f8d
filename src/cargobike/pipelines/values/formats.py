"""Arrays, tables and data frames as bytes of open formats; where there is such a value, its library is loaded."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any, Final

from cargobike.pipelines.values.value import Form


def _numpy(value: Any) -> bytes | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray or value.dtype.hasobject:
        return None
    with io.BytesIO() as file:
        numpy.lib.format.write_array(file, value, allow_pickle=False)
        return file.getvalue()


def _arrow(value: Any) -> bytes | None:
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not isinstance(value, arrow.Table):
        return None
    return _ipc(value)


def _frame(value: Any) -> bytes | None:
    """Return a data frame as Arrow if it comes back from there as it was."""
    pandas = sys.modules.get("pandas")
    if pandas is None or type(value) is not pandas.DataFrame:
        return None
    import pyarrow  # noqa: PLC0415 - only for data frames

    try:
        table = pyarrow.Table.from_pandas(value)
        again = table.to_pandas()
    except (pyarrow.ArrowException, TypeError, ValueError):
        return None
    is_same = again.equals(value) and list(again.dtypes) == list(value.dtypes) and again.columns.equals(value.columns)
    return _ipc(table) if is_same and type(again.index) is type(value.index) else None


def _ipc(table: Any) -> bytes:
    import pyarrow  # noqa: PLC0415 - only for tables

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_numpy(data: bytes) -> Any:
    """Return an array."""
    import numpy  # noqa: PLC0415 - only for arrays

    return numpy.load(io.BytesIO(data), allow_pickle=False)


def read_arrow(data: bytes) -> Any:
    """Return a table."""
    import pyarrow  # noqa: PLC0415 - only for tables

    return pyarrow.ipc.open_file(data).read_all()


ENCODERS: Final[tuple[tuple[Form, Callable[[Any], bytes | None]], ...]] = (
    ("numpy", _numpy),
    ("arrow", _arrow),
    ("frame", _frame),
)
"""Each returns a value of its kind as bytes, and `None` for any other."""
