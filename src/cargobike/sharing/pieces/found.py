"""Pieces that are on this host already: left by an attempt before, or part of anything else that the project holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cargobike.sharing.hashing import PieceVerifier
from cargobike.sharing.pieces.arriving import Arriving
from cargobike.sharing.pieces.holdings import Holdings

_AT_ONCE: Final = 8


class Found:
    """Looks for pieces, and puts them in their places after they were verified; for several threads.

    Args:
        arriving: Where they go, and where an attempt before may have left some.
        holdings: What the project holds.
        verifiers: What judges the pieces of each file, as far as that is known; others may add to it.
    """

    def __init__(self, arriving: Arriving, holdings: Holdings, verifiers: Mapping[int, PieceVerifier]) -> None:
        self._arriving, self._holdings, self._verifiers = arriving, holdings, verifiers
        self._plan = arriving.plan
        self._claimed: set[int] = set()

    def look(self) -> set[int]:
        """Note what an attempt before has left, and return the files of which it left something."""
        self._claimed = set(self._arriving.claimed())
        return {self._plan.spot(piece).file for piece in self._claimed}

    def look_at(self, index: int) -> None:
        """Note pieces of a file that could not be judged when they came."""
        self._claimed |= set(self._arriving.claimed()).intersection(self._plan.pieces_of(index))

    def on_the_storage(self, files: Sequence[int]) -> list[int]:
        """Return which files were sent to the storage by an attempt before, and have not changed there."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cargobike-found") as threads:
            return [
                index for index, is_there in zip(files, threads.map(self._is_there, files), strict=True) if is_there
            ]

    def _is_there(self, index: int) -> bool:
        root, place = self._plan.files[index].root, self._arriving.place
        return all(self._holdings.is_at(root, place, path) for path in self._plan.twins[index])

    def is_in_place(self, index: int) -> bool:
        """Tell whether an attempt before has moved a file to its place, and it is as it was; else forget its pieces."""
        pieces = self._plan.pieces_of(index)
        if self._claimed.isdisjoint(pieces) or self._arriving.is_staged(index):
            return False
        if self._arriving.storage is None and self._is_as_it_was(index, pieces):
            return True
        for piece in self._claimed.intersection(pieces):
            self._arriving.drop(piece)
            self._claimed.discard(piece)
        return False

    def _is_as_it_was(self, index: int, pieces: Iterable[int]) -> bool:
        for spot in map(self._plan.spot, pieces):
            data = self._arriving.read_file(index, spot.offset, spot.length)
            if data is None or not self._verifiers[index].verify(spot.number, data):
                return False
        return True

    def take(self, piece: int) -> tuple[bool, int | None]:
        """Return whether a piece was found and is in its place now, and the file that is whole thereby, if one is."""
        spot = self._plan.spot(piece)
        verifier = self._verifiers[spot.file]
        if piece in self._claimed:
            data = self._arriving.read(piece)
            if data is not None and verifier.verify(spot.number, data):
                return True, self._arriving.note(piece)
            self._arriving.drop(piece)
        if not self._holdings.knows_piece(verifier.pieces[spot.number]):
            return False, None
        held = self._holdings.find_piece(verifier.pieces[spot.number])
        if held is None or not verifier.verify(spot.number, held):
            return False, None
        return True, self._arriving.write(piece, held)
