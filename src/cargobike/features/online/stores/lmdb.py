"""Newest rows in an LMDB file on this host: the quickest look-ups, for hosts that serve many.

LMDB shows each reader the state after a whole transaction, and a writer that dies leaves none. A process opens a file
once, for all that read or write it. A forked copy of the process may neither use nor close a file that was open: both
would free what protects the original's readers. So files are closed before a fork, and opened again when needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import lmdb

from cargobike.core.errors import StoreError
from cargobike.features.online.packing import time_of
from cargobike.features.online.stores.keys import is_number, is_text
from cargobike.features.online.stores.store import TIMEOUT_S, State, decode_state, encode_state

_STATE: Final = b"state"
_MAPPED_BYTES: Final = 1 << 40
"""How far a file may grow: addresses are reserved for it, no memory and no disk."""
_READERS: Final = 4096
_LONGEST_KEY: Final = 500
_PAUSE_S: Final = 0.02

Encode = Callable[[Any], bytes]


class LmdbStore:
    """Keeps the newest rows of a group in one file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def reader(self) -> LmdbReader:
        """Open the file for look-ups."""
        if not self.path.exists():
            raise StoreError(
                f"{self.path} is not there: the group was never materialized. Call group.materialize() first."
            )
        return LmdbReader(self.path)

    @contextmanager
    def writing(self, key: Sequence[str]) -> Iterator[LmdbWriter]:
        """Change the file; made if it is not there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _turn(self.path.with_name(f"{self.path.name}-turn")):
            file = _files.take(self.path)
            try:
                environment = file.begin_writing()
                try:
                    environment.reader_check()  # places of readers that were killed
                    everything = environment.open_db()
                    with environment.begin(write=True) as transaction:
                        yield LmdbWriter(transaction, everything, encoder_of(key))
                finally:
                    file.end_writing()
            except lmdb.Error as error:
                raise StoreError(f"{self.path} cannot be written: {error}.") from error
            finally:
                _files.give_back(file)

    def drop(self) -> None:
        """Forget all rows, if there is a file."""
        if self.path.exists():
            with self.writing(()) as writer:
                writer.clear()


class LmdbReader:
    """Finds packed rows in a file.

    Args:
        path: The file, which is there.
    """

    def __init__(self, path: Path) -> None:
        self._file = _files.take(path)
        self._is_open = True
        state = self.state()
        self._encode = encoder_of(state.key if state is not None else ())

    def get(self, key: Any) -> bytes | None:
        """Return the row of a key, `None` if there is none."""
        try:
            with self._file.lock, self._file.open().begin() as transaction:
                row: bytes | None = transaction.get(self._encode(key))
                if row is None:
                    _check(transaction)
                return row
        except struct.error:
            raise OverflowError(key) from None
        except lmdb.Error as error:
            raise StoreError(f"{self._file.path} cannot be read: {error}.") from error

    def get_all(self, keys: Sequence[Any]) -> dict[Any, bytes]:
        """Return the rows of those keys that have one, all of the same state."""
        encode = self._encode
        try:
            with self._file.lock, self._file.open().begin() as transaction:
                get = transaction.get
                rows = {key: row for key in keys if key is not None and (row := get(encode(key))) is not None}
                if len(rows) < len(keys):
                    _check(transaction)
                return rows
        except lmdb.Error as error:
            raise StoreError(f"{self._file.path} cannot be read: {error}.") from error

    def state(self) -> State | None:
        """Return what the file holds."""
        with self._file.lock, self._file.open().begin() as transaction:
            return decode_state(transaction.get(_STATE))

    def count(self) -> int:
        """Return how many keys have a row."""
        with self._file.lock, self._file.open().begin() as transaction:
            return int(transaction.stat()["entries"]) - (transaction.get(_STATE) is not None)

    def close(self) -> None:
        """Close the file, if this was its last user."""
        if self._is_open:
            self._is_open = False
            _files.give_back(self._file)


class LmdbWriter:
    """Changes a file inside a transaction.

    Args:
        transaction: The transaction.
        everything: What LMDB calls the database: all that is in the file.
        encode: Makes keys of this file from those of the group.
    """

    def __init__(self, transaction: Any, everything: Any, encode: Encode) -> None:
        self._transaction = transaction
        self._everything = everything
        self._encode = encode
        self._state = decode_state(transaction.get(_STATE))

    def state(self) -> State | None:
        """Return what the file holds before the change."""
        return self._state

    def clear(self) -> None:
        """Forget all rows."""
        self._transaction.drop(self._everything, delete=False)

    def put(self, keys: Sequence[Any], times: Sequence[int], rows: Sequence[bytes], *, if_newer: bool = False) -> None:
        """Write rows."""
        encode, get = self._encode, self._transaction.get
        items = list(zip(map(encode, keys), rows, strict=True))
        if if_newer:
            pairs = zip(items, times, strict=True)
            items = [item for item, at in pairs if (old := get(item[0])) is None or time_of(old) <= at]
        with self._transaction.cursor() as cursor:
            cursor.putmulti(items)

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget the rows of keys."""
        for key in keys:
            self._transaction.delete(self._encode(key))

    def finish(self, state: State) -> None:
        """Say what the file holds after the change."""
        self._transaction.put(_STATE, encode_state(state))


class _File:
    """A file that this process uses: open unless a fork has closed it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 0
        self.lock = threading.RLock()
        """Held while something is read, so that no fork happens meanwhile."""
        self._environment: Any = None
        self._writers = 0
        self._is_inherited = False

    def open(self) -> Any:
        """Return the file, opened if it is not.

        Raises:
            StoreError: If it cannot be opened.
        """
        if self._environment is None:
            self._environment = _open(self.path)
        elif self._is_inherited:
            raise StoreError(
                f"{self.path} was being written when this process was forked, so only the original can use it. Look up "
                "features in a process that was started anew, or forked at another time."
            )
        return self._environment

    def begin_writing(self) -> Any:
        """Return the file, which stays open until `end_writing`."""
        with self.lock:
            environment = self.open()
            self._writers += 1
            return environment

    def end_writing(self) -> None:
        """Allow forks to close the file again."""
        with self.lock:
            self._writers -= 1

    def close(self) -> None:
        """Close the file, unless it is being written, or is not ours."""
        if self._environment is not None and not self._writers and not self._is_inherited:
            self._environment.close()
            self._environment = None

    def inherit(self) -> None:
        """Begin anew in a forked copy of the process."""
        self.lock = threading.RLock()
        self._is_inherited = self._environment is not None


class _Files:
    """The files that this process uses."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[Path, _File] = {}

    def take(self, path: Path) -> _File:
        """Return a file; there is one of each for all that use it."""
        with self._lock:
            file = self._files.setdefault(path, _File(path))
            file.users += 1
            return file

    def give_back(self, file: _File) -> None:
        """Close a file if nothing else uses it."""
        with self._lock:
            file.users -= 1
            if not file.users:
                self._files.pop(file.path, None)
                with file.lock:
                    file.close()

    def before_fork(self) -> None:
        """Close all files, when no thread is reading any more."""
        self._lock.acquire()
        for file in self._files.values():
            file.lock.acquire()
            file.close()

    def after_fork(self) -> None:
        """Go on in the original."""
        for file in self._files.values():
            file.lock.release()
        self._lock.release()

    def in_copy(self) -> None:
        """Go on in the copy."""
        self._lock = threading.RLock()
        for file in self._files.values():
            file.inherit()


def encoder_of(kinds: Sequence[str]) -> Encode:
    """Return what makes a key of a file from one of a group: never empty, never too long, never that of the state."""
    if is_number(kinds):
        return struct.Struct(">q").pack
    return _text if is_text(kinds) else _bounded


def _check(transaction: Any) -> None:
    """Refuse to call a key missing if the whole group is.

    Raises:
        StoreError: If nothing of the group is looked up here any more.
    """
    if transaction.get(_STATE) is None:
        raise StoreError("This group is not looked up here any more, or never was: open the view again.")


def _text(key: str) -> bytes:
    return _bounded(b"t" + key.encode())


def _bounded(key: bytes) -> bytes:
    if len(key) <= _LONGEST_KEY:
        return key
    return b"h" + hashlib.blake2b(key, digest_size=32).digest()


def _open(path: Path) -> Any:
    try:
        return lmdb.open(str(path), subdir=False, map_size=_MAPPED_BYTES, max_readers=_READERS)
    except (lmdb.Error, OSError) as error:
        raise StoreError(f"{path} cannot be opened: {error}.") from error


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until no other writer is at work: LMDB itself would wait for ever."""
    deadline_s = time.monotonic() + TIMEOUT_S
    with path.open("a+b") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    raise StoreError(f"{path} is locked: another process has been writing for a minute.") from None
                time.sleep(_PAUSE_S)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a copy of this process may have it open too


_files: Final = _Files()
os.register_at_fork(before=_files.before_fork, after_in_parent=_files.after_fork, after_in_child=_files.in_copy)
