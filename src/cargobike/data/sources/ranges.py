"""Reads stretches of files on any storage, compressed by gzip or not, with bounded memory."""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.files import check_unchanged, read_range
from cargobike.data.sources.listing import File

PIECE = 4 << 20
_PACKED_PIECE = 1 << 20
_MARK_EVERY = 16 << 20
_GZIP = zlib.MAX_WBITS | 16


class Ranges(Protocol):
    """The content of one file."""

    def read(self, start: int, length: int) -> bytes:
        """Return bytes; fewer only where the content ends. May be called from several threads."""

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the content from a place to its end."""


def open_ranges(file: File) -> Ranges:
    """Return the content of a file; what is in it if its name says that gzip compressed it."""
    return GzipRanges(file) if file.path.endswith((".gz", ".tgz")) else PlainRanges(file)


class PlainRanges:
    """A file as it lies there."""

    def __init__(self, file: File) -> None:
        self._file = file

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of the file.

        Raises:
            StoreError: If the file is gone, has changed, or cannot be read.
        """
        check_unchanged(self._file)
        return self._read(start, length)

    def _read(self, start: int, length: int) -> bytes:
        length = min(length, self._file.size - start)
        if length <= 0:
            return b""
        return read_range(self._file, start, length)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes of the file from a place on."""
        check_unchanged(self._file)
        while piece := self._read(start, PIECE):
            yield piece
            start += len(piece)


class GzipRanges:
    """What a file compressed by gzip holds.

    Such a file can be read only from its beginning. So the state of the decompressor, some 40 KiB, is kept at every
    few megabytes that have been passed, and reading begins at the nearest one.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._packed = PlainRanges(file)
        self._lock = threading.Lock()
        self._marks: list[_Unpacking] = [_Unpacking()]

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of the content.

        Raises:
            InvalidInputError: If the file is not compressed by gzip, or damaged.
            StoreError: If the file is gone, has changed, or cannot be read.
        """
        taken: list[bytes] = []
        place, end = start, start + length
        for piece in self.pieces(start):
            taken.append(piece[: end - place])
            place += len(piece)
            if place >= end:
                break
        return b"".join(taken)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the content from a place on."""
        check_unchanged(self._file)
        with self._lock:
            number = bisect_right(self._marks, start, key=lambda mark: mark.produced) - 1
            state = self._marks[number].copy()
        while True:
            begin = state.produced
            piece = state.next_piece(self._packed, self._file)
            if not piece:
                return
            self._remember(state)
            if state.produced > start:
                yield piece[max(0, start - begin) :]

    def _remember(self, state: _Unpacking) -> None:
        with self._lock:
            if state.produced - self._marks[-1].produced >= _MARK_EVERY:
                self._marks.append(state.copy())


class _Unpacking:
    """A decompressor, where it stands in the file, and how much it has produced."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(_GZIP)
        self._rest = b""
        self._consumed = 0
        self._has_begun = False
        self.produced = 0

    def copy(self) -> _Unpacking:
        other = _Unpacking.__new__(_Unpacking)
        other._decompressor = self._decompressor.copy()
        other._rest, other._consumed, other._has_begun = self._rest, self._consumed, self._has_begun
        other.produced = self.produced
        return other

    def next_piece(self, packed: PlainRanges, file: File) -> bytes:
        """Return the next content, at most `PIECE` bytes of it, or nothing at its end."""
        while True:
            if not self._rest:
                self._rest = packed._read(self._consumed, _PACKED_PIECE)
                self._consumed += len(self._rest)
            is_last = not self._rest
            if is_last and self._consumed and not self._has_begun:
                return b""
            try:
                piece = self._decompressor.decompress(self._rest, PIECE)
            except zlib.error as error:
                raise InvalidInputError(
                    f"{file.shown}: what should follow byte {self.produced:,} of its content cannot be decompressed "
                    f"({error}). Write it again, or take .gz off its name if it is not compressed."
                ) from None
            self._has_begun = True
            self._rest = self._decompressor.unconsumed_tail
            if self._decompressor.eof:  # another one may follow in the same file
                self._rest = self._decompressor.unused_data.lstrip(b"\0")
                self._decompressor = zlib.decompressobj(_GZIP)
                self._has_begun = False
            elif is_last and not piece:
                raise InvalidInputError(f"{file.shown}: it is cut off. Write it again.")
            self.produced += len(piece)
            if piece:
                return piece


class Forward:
    """Reads a file from its beginning to its end, and passes over what is not needed; holds one piece in memory."""

    def __init__(self, ranges: Ranges) -> None:
        self._pieces = ranges.pieces()
        self._piece = b""
        self._at = 0
        self.place = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes; fewer only where the file ends."""
        at = self._at
        if at + count <= len(self._piece):
            self._at = at + count
            self.place += count
            return self._piece[at : at + count]
        taken = [self._piece[at:]]
        missing = count - len(taken[0])
        while missing and self._next():
            taken.append(self._piece[:missing])
            self._at = len(taken[-1])
            missing -= self._at
        if missing:
            self._at = len(self._piece)
        self.place += count - missing
        return b"".join(taken)

    def skip(self, count: int) -> int:
        """Pass over bytes, and return how many of them there were."""
        missing = count
        while missing > len(self._piece) - self._at:
            missing -= len(self._piece) - self._at
            if not self._next():
                self._at = len(self._piece)
                break
        else:
            self._at += missing
            missing = 0
        self.place += count - missing
        return count - missing

    def _next(self) -> bool:
        piece = next(self._pieces, b"")
        if not piece:
            self._piece, self._at = b"", 0
            return False
        self._piece, self._at = piece, 0
        return True


class Held:
    """Content that is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of it."""
        return self._data[start : start + length]

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield it whole."""
        yield self._data[start:]
