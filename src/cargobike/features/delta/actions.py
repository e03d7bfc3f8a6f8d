"""The actions of a Delta log, as the protocol writes them: one JSON object in each line of a commit.

Logs may come from strangers: what is read is checked, and no path of one leads out of its table.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from cargobike.core.errors import StoreError

READER_VERSION: Final = 1
WRITER_VERSION: Final = 2


class Add(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """A file that belongs to the table from this commit on."""

    path: str
    partition_values: dict[str, str | None] = {}
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None

    @property
    def statistics(self) -> FileStatistics:
        """What the log says about the rows of the file."""
        try:
            return msgspec.json.decode(self.stats or "{}", type=FileStatistics)
        except msgspec.DecodeError:
            return FileStatistics()


class FileStatistics(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a file without opening it; values of features are left out, since a log outlives its rows."""

    num_records: int = 0
    min_values: dict[str, Any] = {}
    max_values: dict[str, Any] = {}
    null_count: dict[str, Any] = {}


class Remove(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that no longer belongs to the table."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool = True
    partition_values: dict[str, str | None] = {}
    size: int = 0


class MetaData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The name and the columns of the table."""

    id: str
    name: str | None = None
    description: str | None = None
    format: dict[str, Any] = msgspec.field(default_factory=lambda: {"provider": "parquet", "options": {}})
    schema_string: str
    partition_columns: list[str] = []
    configuration: dict[str, str] = {}
    created_time: int | None = None


class Protocol(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a program must understand to read and write the table."""

    min_reader_version: int = READER_VERSION
    min_writer_version: int = WRITER_VERSION


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who made a commit, when, and what for; what belongs to Cargobike alone is in `cargobike`."""

    timestamp: int = 0
    operation: str = ""
    operation_parameters: dict[str, Any] = {}
    engine_info: str = ""
    cargobike: dict[str, Any] = {}


Action = Add | Remove | MetaData | Protocol | CommitInfo

_NAMES: Final[dict[str, type[Action]]] = {
    "add": Add,
    "remove": Remove,
    "metaData": MetaData,
    "protocol": Protocol,
    "commitInfo": CommitInfo,
}
_WORDS: Final = {kind: name for name, kind in _NAMES.items()}


def encode_actions(actions: list[Action]) -> bytes:
    """Return the bytes of one commit."""
    return b"".join(msgspec.json.encode({_WORDS[type(action)]: _quoted(action)}) + b"\n" for action in actions)


def _quoted(action: Action) -> Action:
    if isinstance(action, Add | Remove):
        return msgspec.structs.replace(action, path=log_path(action.path))
    return action


def decode_actions(data: bytes, where: str) -> list[Action]:
    """Return the actions of one commit; kinds that are not known here change nothing about the rows.

    Raises:
        StoreError: If it cannot be understood, or needs what only newer versions of Delta have.
    """
    actions: list[Action] = []
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            for name, raw in msgspec.json.decode(line, type=dict[str, msgspec.Raw]).items():
                if name in _NAMES:
                    actions.append(checked(msgspec.json.decode(raw, type=_NAMES[name]), where))
        except msgspec.DecodeError as error:
            raise StoreError(f"{where} is no commit of a Delta table: {error}.") from error
    return actions


def checked(action: Action, where: str) -> Action:
    """Return an action that can be followed.

    Raises:
        StoreError: If its path leads out of the table, or if it needs a newer version of Delta.
    """
    if isinstance(action, Add | Remove):
        path = unquote(action.path)
        if "://" in path or any(name in {"", ".", ".."} for name in path.split("/")) or not path.isprintable():
            raise StoreError(f"{where} names the file {action.path!r}, which does not lie in the table.")
        return msgspec.structs.replace(action, path=path)
    if isinstance(action, Protocol) and action.min_reader_version > READER_VERSION:
        raise StoreError(
            f"{where} needs version {action.min_reader_version} of Delta's reading protocol, and Cargobike reads "
            f"{READER_VERSION}: another program has switched on deletion vectors or column mapping. Write the rows "
            "into a new version of the group."
        )
    return action


def log_path(path: str) -> str:
    """Return a path as a log writes it."""
    return quote(path)
