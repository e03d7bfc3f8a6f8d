"""Storage in HDFS, through hdfs-native: a client in Rust, which needs no Java and no library of Hadoop's."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from urllib.parse import urlsplit

from cargobike.core.errors import InvalidInputError
from cargobike.store.files.access.access import (
    PIECE_BYTES,
    STALE_S,
    Access,
    Claim,
    Judgement,
    is_temporary,
    temporary_name,
)
from cargobike.store.files.access.hdfs_client import connect, in_time, library
from cargobike.store.files.storage import Entry

_LISTING_S: Final = 120.0
_PASSING: Final = (
    "SafeModeException",
    "StandbyException",
    "RetriableException",
    "NotReplicatedYetException",
    "AlreadyBeingCreatedException",
    "LeaseExpiredException",
    "could only be replicated to 0 nodes",
    "could only be written to 0",
)
"""What a NameNode says that is true only for a while."""

_ADVICE: Final = {
    "AccessControlException": "Ask for the right to read and write there, or set HADOOP_USER_NAME.",
    "QuotaExceededException": "The quota of the folder is used up: make room, or ask for more.",
    "NotDirectoryException": "A file lies where a folder is needed: move it away, or choose another place.",
    "not a directory": "A file lies where a folder is needed: move it away, or choose another place.",
    "must both be directories": "A folder lies where a file is needed: move it away, or choose another place.",
    "SafeModeException": "The NameNode is in safe mode: wait for its DataNodes, or look at its log.",
    "replicated to 0 nodes": "No DataNode takes the file: look whether one runs, and has room.",
}
_AWAY: Final = "Check that its NameNode and DataNodes run and can be reached."
_SAID: Final = re.compile(r"(?:RPCError\(\"(?:\w+\.)*(?P<kind>\w+)\", \")?(?P<words>.*?)(?:\\n|\n|\"\)$|$)")


class HdfsAccess(Access):
    """Files below a folder of HDFS: written beside their place, then renamed, which the NameNode does at once."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._root = "/" + parts.path.strip("/")
        try:
            self._client = connect(f"{parts.scheme}://{host}")
        except (ValueError, RuntimeError) as error:
            raise InvalidInputError(
                f"{parts.scheme}://{host} is no address of HDFS that can be used: {error}. "
                "Write hdfs://host:port/path, or the name of a service that is defined in HADOOP_CONF_DIR."
            ) from error

    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        """Return bytes of a file."""
        full = self._full(path)
        try:
            reader = in_time(lambda: self._client.read(full))
        except (FileNotFoundError, NotADirectoryError):
            return None
        end = reader.file_length() if length is None else min(start + length, reader.file_length())
        pieces = []
        for offset in range(start, end, PIECE_BYTES):
            size = min(PIECE_BYTES, end - offset)
            pieces.append(in_time(lambda offset=offset, size=size: reader.read_range(offset, size)))  # type: ignore[misc]
        return b"".join(pieces)

    def write(self, path: str, data: bytes | Path) -> None:
        """Write beside the place, then rename over it."""
        temporary = self._full(temporary_name(path, token_hex(8)))
        with self._swept(temporary):
            self._write(temporary, data)
            self._rename(temporary, self._full(path), overwrite=True)

    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        """Write beside the place, then rename, which the NameNode refuses if there is a file."""
        temporary, target = self._full(temporary_name(path, claim.token)), self._full(path)
        if claim.was_asked and self._status(temporary) is None:
            return True  # an earlier attempt did rename it, and its answer was lost
        with self._swept(temporary, claim):
            if not claim.was_asked:
                if self._status(target) is not None:
                    return False
                self._write(temporary, data)
            claim.was_asked = True
            try:
                self._rename(temporary, target, overwrite=False)
            except FileExistsError:
                claim.was_asked = False  # it was heard, and refused: the rest may go
                return self._status(temporary) is None  # the client itself may have asked twice, and renamed it before
            claim.was_asked = False
            return True

    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        """Return the files in a folder."""
        full = self._full(folder)
        try:
            found = in_time(lambda: [one for one in self._client.list_status(full, deep) if not one.isdir], _LISTING_S)
        except (FileNotFoundError, NotADirectoryError):
            return []
        entries = []
        for status in found:
            if is_temporary(status.path):
                self._sweep(status)
            elif status.path != full:
                entries.append(self._entry(status))
        return entries

    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file."""
        status = self._status(self._full(path))
        return None if status is None or status.isdir else self._entry(status)

    def delete(self, path: str) -> None:
        """Delete a file or a folder."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            in_time(lambda: self._client.delete(self._full(path), True))

    def judge(self, error: Exception) -> Judgement:
        """Try again what is said about a connection, and what the NameNode says while it starts or moves."""
        text = str(error)
        said = _SAID.match(text)
        words = ": ".join(filter(None, said.group("kind", "words"))) if said else text
        advice = next((advice for name, advice in _ADVICE.items() if name in text), "")
        if isinstance(error, PermissionError):
            return Judgement(False, _ADVICE["AccessControlException"], text=words)
        if any(name in text for name in _PASSING):
            return Judgement(True, advice or _AWAY, text=words)
        is_refusal = "RPCError" in text or isinstance(
            error, ValueError | TypeError | FileExistsError | FileNotFoundError
        )
        return Judgement(not is_refusal, advice or ("" if is_refusal else _AWAY), reopen=not is_refusal, text=words)

    def _rename(self, source: str, target: str, *, overwrite: bool) -> None:
        in_time(lambda: self._client.rename(source, target, overwrite))

    def _write(self, full: str, data: bytes | Path) -> None:
        # Others may write too, unless the cluster's umask says no.
        options = library().WriteOptions(overwrite=True, create_parent=True, permission=0o666)
        with data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as source:
            writer = in_time(lambda: self._client.create(full, options))
            while piece := source.read(PIECE_BYTES):
                in_time(lambda piece=piece: writer.write(piece))  # type: ignore[misc]
            in_time(writer.close)

    @contextlib.contextmanager
    def _swept(self, temporary: str, claim: Claim | None = None) -> Iterator[None]:
        """Remove a file that was being written, unless a later attempt looks for it."""
        try:
            yield
        finally:
            if claim is None or not claim.was_asked:
                with contextlib.suppress(Exception):
                    in_time(lambda: self._client.delete(temporary, False))

    def _sweep(self, status: Any) -> None:
        """Remove what a process was writing when it was killed, long ago."""
        if time.time() - status.modification_time / 1000 > STALE_S:
            with contextlib.suppress(Exception):
                in_time(lambda: self._client.delete(status.path, False))

    def _status(self, full: str) -> Any | None:
        try:
            return in_time(lambda: self._client.get_file_info(full))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _entry(self, status: Any) -> Entry:
        path = status.path[len(self._root.rstrip("/")) + 1 :]
        return Entry(path, status.length, f"{status.modification_time}-{status.length}")

    def _full(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}" if path else self._root
