"""An inference log as a source of Structured Streaming: `spark.readStream.format("cargobike-log")`.

Pieces of the log are read by executors; which product keeps the log, and whether in files or in Kafka, is not known
here. Options: `deployment`, `project`, `position` (where to begin), `most` (about how many rows a batch has).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Splitter, log_keeper
from cargobike.monitoring.streaming.packing import packed

FORMAT: Final = "cargobike-log"
SCHEMA: Final = "number int, start string, end string, rows binary"


class LogSource(DataSource):  # type: ignore[misc]  # Spark has no types
    """The log of a deployment, a row for each piece: its number in the batch, where that begins and ends, its rows."""

    @classmethod
    def name(cls) -> str:
        """Return what it is called in `format`."""
        return FORMAT

    def schema(self) -> str:
        """Return its columns."""
        return SCHEMA

    def streamReader(self, schema: Any) -> LogStreamReader:  # noqa: N802 - Spark's own
        """Return what reads it."""
        return LogStreamReader(self.options)


class Piece(InputPartition):  # type: ignore[misc]  # Spark has no types
    """A piece of a batch."""

    def __init__(self, number: int, start: str, end: str, piece: bytes) -> None:
        self.number, self.start, self.end, self.piece = number, start, end, piece


class LogStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # Spark has no types
    """Plans batches in a process beside the driver, and reads pieces in executors."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._deployment = options["deployment"]
        self._project = options["project"]
        self._begin = self._planned = options.get("position", "")
        self._most = int(options.get("most", "200000"))
        self._follower: Splitter | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's own
        """Return where to begin."""
        return {"position": self._begin}

    def latestOffset(self, start: dict[str, str] | None = None, limit: Any = None) -> dict[str, str]:  # noqa: N802
        """Return where the next batch ends."""
        position = self._planned if start is None else start["position"]  # before Spark 4.2 there is no start
        self._planned = self._log().ahead(position, self._most)
        return {"position": self._planned}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return the pieces of a batch; at least one, so that who reads them learns where the batch ends."""
        first, last = start["position"], end["position"]
        pieces = self._log().pieces(first, last)
        return [Piece(number, first, last, piece) for number, piece in enumerate(pieces)] or [
            Piece(0, first, last, b"")
        ]

    def read(self, partition: Any) -> Iterator[tuple[int, str, str, bytes]]:
        """Return the rows of a piece."""
        rows = packed(log_keeper().read_piece(partition.piece)) if partition.piece else b""
        yield partition.number, partition.start, partition.end, rows

    def _log(self) -> Splitter:
        if self._follower is None:
            self._follower = splitter_of(self._deployment, ProjectFolder(Path(self._project)))
        return self._follower


def splitter_of(deployment: str, project: ProjectFolder) -> Splitter:
    """Return what cuts the log of a deployment into pieces.

    Raises:
        InvalidInputError: If its log cannot be cut.
    """
    follower = log_keeper().follow(deployment, project)
    if not isinstance(follower, Splitter):
        raise InvalidInputError(f"The log of {deployment} cannot be read by several processes at once.")
    return follower
