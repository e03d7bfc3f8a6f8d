"""Pieces from a web server or from S3 that has the files, too: ranges of them, verified like those of members.

Only what its user has allowed is contacted: an address comes from a publisher, and could name anything.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import ssl
import time
from typing import Final
from urllib.parse import quote, urlsplit

from cargobike.core.errors import CargobikeError, StoreError
from cargobike.sharing.getting.fetch import Fetch
from cargobike.sharing.hashing import layer_root, piece_hash
from cargobike.store.files.storages import open_storage

_log = logging.getLogger(__name__)
_TIMEOUT_S: Final = 30.0
_AT_ONCE: Final = 4
_MEMBERS_FIRST_S: Final = 5.0
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_TURN_S: Final = 0.1


class WebSource:
    """Gets pieces from one address until the fetch is over; `run` is called in a thread of its own.

    Args:
        address: `https://host/folder/` with the files below it, the address of the file if there is only one, or
            `s3://bucket/folder`.
        fetch: What is missing.
    """

    def __init__(self, address: str, fetch: Fetch) -> None:
        self.address = address
        self._fetch = fetch
        self._server: _S3 | _Http = _S3(address) if address.startswith("s3://") else _Http(address, fetch)

    def run(self) -> None:
        """Deliver until the fetch is over, or the server gives something wrong."""
        with contextlib.closing(self._server):
            self._deliver()

    def _deliver(self) -> None:
        fetch, pause_s = self._fetch, _PAUSE_S
        began = time.monotonic()
        while not fetch.is_over and not fetch.tally(self.address).blame:
            try:
                # Members tell the hashes of pieces, by which each piece can be judged alone; servers cannot.
                if not fetch.files_without_layer() or time.monotonic() - began < _MEMBERS_FIRST_S:
                    fetch.join(self.address, None)
                    self._get_pieces()
                else:
                    self._get_whole_files()
                    self._rest(_TURN_S)  # it may be no file's turn now
                pause_s = _PAUSE_S
            except (CargobikeError, OSError, http.client.HTTPException) as error:
                fetch.leave(self.address, f"gone: {error}")
                self._rest(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def shut(self) -> None:
        """Do nothing: a request ends by itself, within its time."""

    def _get_pieces(self) -> None:
        fetch = self._fetch
        fetch.note_state(self.address, "connected")
        while not fetch.is_over and not fetch.tally(self.address).blame:
            pieces = fetch.take(self.address, _AT_ONCE)
            for piece in pieces:
                spot = fetch.plan.spot(piece)
                if not fetch.can_verify(spot.file):
                    fetch.give_back(self.address, piece)
                    continue
                try:
                    data = self._server.read(fetch.plan.files[spot.file].path, spot.offset, spot.length)
                except BaseException:
                    for one in pieces:
                        fetch.give_back(self.address, one)
                    raise
                fetch.deliver(self.address, piece, data)
            if not any(fetch.can_verify(fetch.plan.spot(piece).file) for piece in pieces):
                self._rest(0.5)
                if fetch.files_without_layer():
                    return

    def _get_whole_files(self) -> None:
        """Get files of which no member has told the hashes of the pieces: only the whole can be judged."""
        fetch, plan = self._fetch, self._fetch.plan
        for index in fetch.files_without_layer():
            if not fetch.is_begun(index):
                continue
            file, hashes = plan.files[index], []
            for piece in plan.pieces_of(index):
                if fetch.is_over or fetch.can_verify(index):
                    return
                spot = plan.spot(piece)
                data = self._server.read(file.path, spot.offset, spot.length)
                hashes.append(piece_hash(data, plan.piece_size, file.size))
                fetch.arriving.write_unverified(piece, data)
            if layer_root(hashes, plan.piece_size, file.size) != file.root:
                fetch.blame(self.address, f"{file.path} is not what was published")
                return
            fetch.use_layer(index, b"".join(hashes))

    def _rest(self, pause_s: float) -> None:
        until = time.monotonic() + pause_s
        with self._fetch.changed:
            while not self._fetch.is_over and (left := until - time.monotonic()) > 0:
                self._fetch.changed.wait(left)


class _S3:
    def __init__(self, address: str) -> None:
        self._storage = open_storage(address, timeout_s=_TIMEOUT_S)

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return a range of a file; raises `StoreError` if it is not there."""
        data = self._storage.read(path, start, length)
        if data is None:
            raise StoreError(f"{path} is not at {self._storage}.")
        return data

    def close(self) -> None:
        """Do nothing: a storage has nothing open between two calls."""


class _Http:
    """Ranges over one connection that is kept; redirections are not followed: they could lead anywhere."""

    def __init__(self, address: str, fetch: Fetch) -> None:
        parts = urlsplit(address)
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._is_file = not address.endswith("/") and len(fetch.manifest.files) == 1
        self._base = parts.path if self._is_file else parts.path.rstrip("/") + "/"
        self._query = f"?{parts.query}" if parts.query else ""
        self._name = fetch.manifest.name
        self._is_nested: bool | None = None
        self._connection: http.client.HTTPConnection | None = None

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return a range of a file.

        Raises:
            StoreError: If the server does not give it.
        """
        for nested in (False, True) if self._is_nested is None else (self._is_nested,):
            try:
                data = self._range(self._target(path, nested=nested), start, length)
            except FileNotFoundError:
                continue
            self._is_nested = nested
            return data
        raise StoreError(f"{path} is not at {self._host}.")

    def _target(self, path: str, *, nested: bool) -> str:
        """Return what to ask for; clients of BitTorrent look below a folder with the publication's name."""
        if self._is_file:
            return self._base + self._query
        return self._base + (f"{quote(self._name)}/" if nested else "") + quote(path) + self._query

    def _range(self, target: str, start: int, length: int) -> bytes:
        answer = self._ask(target, {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"})
        if answer.status == http.client.NOT_FOUND:
            answer.read(1 << 20)
            raise FileNotFoundError(target)
        if answer.status not in {http.client.PARTIAL_CONTENT, http.client.OK}:
            self.close()
            raise StoreError(f"{self._host} answers {answer.status} {answer.reason}")
        if answer.status == http.client.OK and (start or answer.length != length):
            self.close()
            raise StoreError(f"{self._host} gives no ranges of files")
        data = answer.read(length)
        if len(data) != length or answer.read(1):
            self.close()
            raise StoreError(f"{self._host} gives another range than was asked for")
        return data

    def _ask(self, target: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        for attempt in (1, 2):
            connection = self._connection or self._connect()
            try:
                connection.request("GET", target, headers=headers)
                return connection.getresponse()
            except (OSError, http.client.HTTPException):
                self.close()  # a connection that was kept may have been closed by the server meanwhile
                if attempt == 2:
                    raise
        raise AssertionError

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_secure:
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_S, context=context)
        else:
            self._connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        return self._connection

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        with contextlib.suppress(OSError):
            if self._connection is not None:
                self._connection.close()
        self._connection = None
