"""What a source of rows is: groups of rows that are read one by one, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from cargobike.core.origins import Origin
from cargobike.data.sources.mistakes import Skips


class Group(NamedTuple):
    """Rows that are read together: a row group of a Parquet file, a stretch of another file or of a table in memory."""

    place: str
    """Where they are, for people and errors, such as `higgs/part-0003.parquet, row group 2`."""
    rows: int
    size_bytes: int
    """Roughly what they need in memory."""


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What opens a source again, in another process or on another host: plain data.

    Attributes:
        opener: `module:name` of a function from `options` to a `Source`.
        options: Its arguments: strings, numbers, lists and dicts of them.
        fingerprint: What the source's content was; one that has changed since is refused.
    """

    opener: str
    options: dict[str, object]
    fingerprint: str = ""


class Source(ABC):
    """Rows in groups.

    Guarantees: `groups` and the rows of each group never change while the source is open, in content and order, and
    are the same in every process that opens the same `spec`; `read` may be called from several threads at once; a group
    that cannot be read is an error that names its place and says what to do.
    """

    name: str
    """What people call it: a path, an address, `a table in memory`."""
    schema: pa.Schema
    """Names and types of the columns; tensors as `data/tensors.py` describes."""
    groups: Sequence[Group]
    fingerprint: str
    """Differs whenever the content does, as far as names, sizes and times of change of files tell."""

    origin: Origin | None = None
    """What it reads, if that has more than a name: a version of a table, a part of a training dataset."""

    columns_at_once: int | None = None
    """How many columns are best read at once, where reading some is as quick as reading all and needs less memory."""

    skips: Skips | None = None
    """Records that were left out when it was opened, because `on_error="skip"` was asked for."""

    @abstractmethod
    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group; only some columns, in the order given, if asked."""

    @abstractmethod
    def spec(self) -> SourceSpec:
        """Return what opens this source again elsewhere.

        Raises:
            InvalidInputError: If it is only in the memory of this process.
        """

    @property
    def num_rows(self) -> int:
        """How many rows there are in all."""
        return sum(group.rows for group in self.groups)

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Release files and memory; may be called twice."""
