"""The facts of a table that a project keeps: that it was written, and that it was removed."""

from __future__ import annotations

from typing import Final

import msgspec

from cargobike.core.facts import Fact, Facts

VERSION: Final = 2
"""2: lines are numbered and chained."""


class TableWritten(Fact, frozen=True, tag="table-written"):
    """The first line of the journal of a table: what was written.

    Attributes:
        id: The name of its folder.
        source: What it was made from, such as `pandas`, `pyarrow` or `spark`.
        columns: Types of the columns by name, in order.
        files: Rows of each file by name, in order.
        size_bytes: What the files need on disk.
    """

    id: str
    version: int = VERSION
    cargobike: str = ""
    source: str = ""
    columns: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, int] = msgspec.field(default_factory=dict)
    size_bytes: int = 0
    user: str = ""
    host: str = ""


class TableRemoved(Fact, frozen=True, tag="table-removed"):
    """The files of the table were deleted; what was known of them stays."""

    user: str = ""


AnyDataFact = TableWritten | TableRemoved

DATA_FACTS: Final[Facts[AnyDataFact, TableWritten]] = Facts(AnyDataFact, first=TableWritten, version=VERSION)
