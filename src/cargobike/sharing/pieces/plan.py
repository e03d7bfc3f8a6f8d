"""The pieces of a publication, numbered: equal files are there once, and a number says which bytes of which file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cargobike.sharing.hashing import num_pieces
from cargobike.sharing.shapes import File, Manifest


class Spot(NamedTuple):
    """Where a piece lies: which file, by its number and root, which piece of it, and which bytes."""

    file: int
    root: str
    number: int
    offset: int
    length: int


class Plan:
    """The pieces of a publication in the order of its files.

    Attributes:
        piece_size: Bytes of a piece; the last of a file may be shorter.
        files: Files with different content that is not empty; the first of equal ones.
        twins: For each of them the paths of all files with this content.
        empty: The paths of files without content.
        count: How many pieces there are.
    """

    def __init__(self, files: Sequence[File], piece_size: int) -> None:
        self.piece_size = piece_size
        self.empty = [file.path for file in files if not file.size]
        self.files: list[File] = []
        self.twins: list[list[str]] = []
        known: dict[str, int] = {}
        for file in files:
            if not file.size:
                continue
            if file.root in known:
                self.twins[known[file.root]].append(file.path)
                continue
            known[file.root] = len(self.files)
            self.files.append(file)
            self.twins.append([file.path])
        self._starts = [0]
        for file in self.files:
            self._starts.append(self._starts[-1] + num_pieces(file.size, piece_size))
        self.count = self._starts[-1]

    @classmethod
    def of(cls, manifest: Manifest) -> Plan:
        """Return the plan of a publication."""
        return cls(manifest.files, manifest.piece_size)

    def spot(self, piece: int) -> Spot:
        """Return where a piece lies."""
        index = bisect_right(self._starts, piece) - 1
        file, number = self.files[index], piece - self._starts[index]
        offset = number * self.piece_size
        return Spot(index, file.root, number, offset, min(self.piece_size, file.size - offset))

    def pieces_of(self, file: int) -> range:
        """Return the numbers of the pieces of a file."""
        return range(self._starts[file], self._starts[file + 1])

    def covering(self, file: int, start: int, length: int) -> range:
        """Return the pieces that hold a stretch of a file."""
        if length <= 0:
            return range(0)
        first = self._starts[file]
        end = min(start + length, self.files[file].size)
        return range(first + start // self.piece_size, first + -(-end // self.piece_size))

    def index_of(self, path: str) -> int | None:
        """Return the number of the file with a path; `None` if it is empty or unknown."""
        return next((index for index, paths in enumerate(self.twins) if path in paths), None)

    def spots(self) -> Iterator[Spot]:
        """Yield all pieces, in order."""
        return (self.spot(piece) for piece in range(self.count))
