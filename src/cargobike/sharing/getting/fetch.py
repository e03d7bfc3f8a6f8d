"""What is had of a publication, what is missing, and who delivers: shared by the threads of all sources.

Everything that comes is verified against the signed manifest before it is kept. A source that delivers something wrong
is blamed by name, and asked for nothing more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cargobike.core.errors import CargobikeError, InvalidInputError, WaitError
from cargobike.sharing.getting.tallies import Tally, standstill
from cargobike.sharing.hashing import PieceVerifier
from cargobike.sharing.pieces.arriving import Arriving
from cargobike.sharing.pieces.found import Found
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.pieces.window import Window
from cargobike.sharing.shapes import Manifest
from cargobike.sharing.swarm.picking import Picker

_log = logging.getLogger(__name__)
_HASHERS: Final = 2
_SENDERS: Final = 2
"""How many files go to a storage at once."""


class Fetch:
    """One publication on its way. Methods may be called from several threads.

    Args:
        manifest: What it is.
        arriving: Where it goes.
        holdings: Where pieces of older versions are found, and what came is entered.
        in_order: Whether the beginning is wanted first.
        most_staged: Bytes of files that may be on this disk at once, if they go to a storage; `None` for any number.
    """

    def __init__(
        self,
        manifest: Manifest,
        arriving: Arriving,
        holdings: Holdings,
        *,
        in_order: bool = False,
        most_staged: int | None = None,
    ) -> None:
        self.manifest, self.arriving, self.holdings = manifest, arriving, holdings
        self.plan = arriving.plan
        self.changed = threading.Condition()
        self.tallies: dict[str, Tally] = {}
        self.layers_turn = threading.Lock()
        self.size_had = self.size_fetched = self.size_found = self.size_twice = 0
        self.last_progress_s = time.monotonic()
        self.failure: BaseException | None = None
        self.is_stopped = False
        self.is_finished = False
        self._picker = Picker(self.plan.count, in_order=in_order, is_open=False)
        self._window = Window([file.size for file in self.plan.files], most_staged)
        self._senders = ThreadPoolExecutor(_SENDERS, "cargobike-send") if arriving.storage is not None else None
        self._num_sending = 0
        self._open: set[int] = set()
        self._verifiers: dict[int, PieceVerifier] = {}
        self._found = Found(arriving, holdings, self._verifiers)
        self._whole: set[int] = set()
        self._kept = bytearray(self.plan.count)
        for index, file in enumerate(self.plan.files):
            if file.size <= self.plan.piece_size:
                self._verifiers[index] = PieceVerifier(
                    file.root, file.size, self.plan.piece_size, [bytes.fromhex(file.root)]
                )

    @property
    def size(self) -> int:
        """Bytes that are to be had, without copies of equal files."""
        return sum(file.size for file in self.plan.files)

    @property
    def is_over(self) -> bool:
        """Whether sources have nothing more to do."""
        return self._picker.is_done or self.is_stopped or self.failure is not None

    @property
    def has_ended(self) -> bool:
        """Whether everything is in its place, or never will be."""
        return not self.missing_pieces or self.is_stopped or self.failure is not None

    @property
    def missing_pieces(self) -> int:
        """How many pieces are not in their places."""
        return self._kept.count(0)

    @property
    def silent_s(self) -> float:
        """For how long nothing has come; 0 while files go to a storage, which has a deadline of its own."""
        return 0.0 if self._num_sending else time.monotonic() - self.last_progress_s

    @property
    def room_needed(self) -> int:
        """Bytes that the disk must have room for, at most."""
        return min(self._window.room, self.size - self.size_had)

    def begin(self) -> None:
        """Take what an earlier attempt has left and what older versions have, after it was verified."""
        for index, file in enumerate(self.plan.files):
            if index not in self._verifiers and (hashes := self.holdings.layer(file.root, self.plan.piece_size)):
                self.take_layer(index, hashes)
        begun = self._found.look()
        self._take_what_is_on_the_storage()
        self._window.prefer(begun)
        self._advance()

    def _take_what_is_on_the_storage(self) -> None:
        if self.arriving.storage is None:
            return
        there = self._found.on_the_storage(sorted(self._verifiers))
        self._window.skip(there)
        for index in there:
            self.arriving.leave_to_storage(index)
            self._whole.add(index)
            for piece in self.plan.pieces_of(index):
                self._note(piece, None, found=True)

    def _advance(self) -> None:
        """Begin with as many files as may be on this disk."""
        with self.changed:
            begun = self._window.advance()
        self._begin_with(begun)

    def _begin_with(self, files: Iterable[int]) -> None:
        """Take what is here of some files, and have sources asked for the rest."""
        files = list(files)
        known = [index for index in files if index in self._verifiers]
        with ThreadPoolExecutor(_HASHERS, thread_name_prefix="cargobike-found") as threads:
            rest = [index for index, taken in zip(known, threads.map(self._take_file, known), strict=True) if not taken]
            list(threads.map(self._find, [piece for index in rest for piece in self.plan.pieces_of(index)]))
        with self.changed:
            self._open.update(files)
            for index in files:
                self._have_asked_for(index)
            self.changed.notify_all()

    def _have_asked_for(self, index: int) -> None:
        """Have sources asked for a file whose turn it is, once its pieces can be verified."""
        if index in self._open and index in self._verifiers:
            self._picker.open(self.plan.pieces_of(index))

    def _take_file(self, index: int) -> bool:
        """Take a file that an attempt before has moved to its place."""
        if not self._found.is_in_place(index):
            return False
        for piece in self.plan.pieces_of(index):
            self._had(piece, self.arriving.note(piece), found=True)
        return True

    def _find(self, piece: int) -> None:
        """Take a piece that is on this host already."""
        if not self._picker.has(piece):
            is_found, whole = self._found.take(piece)
            if is_found:
                self._had(piece, whole, found=True)

    def files_without_layer(self) -> list[int]:
        """Return files of which the hashes of the pieces are not known yet."""
        with self.changed:
            return [index for index in range(len(self.plan.files)) if index not in self._verifiers]

    def is_begun(self, index: int) -> bool:
        """Tell whether it is a file's turn to come."""
        return index in self._open

    def can_verify(self, index: int) -> bool:
        """Tell whether the hashes of the pieces of a file are known."""
        return index in self._verifiers

    def take_layer(self, index: int, hashes: bytes) -> bool:
        """Take the hashes of the pieces of a file; return whether they are those of the file."""
        file = self.plan.files[index]
        pieces = [hashes[start : start + 32] for start in range(0, len(hashes), 32)]
        try:
            verifier = PieceVerifier(file.root, file.size, self.plan.piece_size, pieces)
        except InvalidInputError:
            return False
        with self.changed:
            self._verifiers[index] = verifier
        return True

    def use_layer(self, index: int, hashes: bytes) -> bool:
        """Take the hashes that a source has delivered, keep them, and look for pieces that are here already."""
        if not self.take_layer(index, hashes):
            return False
        try:
            self._found.look_at(index)
            self.holdings.add_layer(self.plan.files[index].root, self.plan.piece_size, self._verifiers[index].pieces)
            if index in self._open:
                self._begin_with([index])
        except CargobikeError as error:
            self.fail(error)
        return True

    def layer(self, index: int) -> tuple[bytes, ...]:
        """Return the hashes of the pieces of a file; it must be whole."""
        return self._verifiers[index].pieces

    def join(self, source: str, flags: Sequence[bool] | None) -> None:
        """Note what a source has."""
        with self.changed:
            self._picker.join(source, flags)
            self.tally(source).is_connected = True
            self.changed.notify_all()

    def leave(self, source: str, why: str = "") -> None:
        """Note that a source is gone, and why."""
        with self.changed:
            self._picker.leave(source)
            tally = self.tally(source)
            tally.is_connected = False
            if why and not tally.blame:
                tally.state = why
            self.changed.notify_all()

    def tally(self, source: str) -> Tally:
        """Return the counts of a source."""
        return self.tallies.setdefault(source, Tally(source))

    def note_state(self, source: str, state: str) -> None:
        """Note what a source is doing; one that was dropped stays that."""
        with self.changed:
            tally = self.tally(source)
            if not tally.blame:
                tally.state = state

    def take(self, source: str, most: int) -> list[int]:
        """Return pieces to ask a source for."""
        with self.changed:
            return [] if self.is_over else self._picker.take(source, most)

    def has(self, piece: int) -> bool:
        """Tell whether a piece is had."""
        return self._picker.has(piece)

    def lacks(self, source: str, piece: int) -> None:
        """Note that a source does not have a piece that it was thought to have."""
        with self.changed:
            self._picker.lacks(source, piece)
            self.changed.notify_all()

    def give_back(self, source: str, piece: int) -> None:
        """Note that a source was not asked for a piece after all."""
        with self.changed:
            self._picker.give_back(source, piece)
            self.changed.notify_all()

    def deliver(self, source: str, piece: int, data: bytes | bytearray | memoryview) -> bool:
        """Take a piece from a source; returns whether it is what it should be, and blames the source if not."""
        spot = self.plan.spot(piece)
        if not self._verifiers[spot.file].verify(spot.number, data):
            self.blame(source, f"piece {spot.number} of {self.plan.files[spot.file].path} was wrong")
            return False
        with self.changed:
            if self._picker.has(piece):
                self.size_twice += spot.length
                return True
            self._picker.got(piece)  # before it is written, so that no other source is asked for it now
        try:
            whole = self.arriving.write(piece, data)
            self._had(piece, whole, found=False, source=source)
        except CargobikeError as error:
            self.fail(error)
        return True

    def blame(self, source: str, why: str) -> None:
        """Ask a source for nothing more, and say who it is and why."""
        _log.warning("%s is dropped: %s", source, why)
        with self.changed:
            self._picker.leave(source)
            tally = self.tally(source)
            tally.blame, tally.state, tally.is_connected = why, f"dropped: {why}", False
            self.changed.notify_all()

    def _had(self, piece: int, whole: int | None, *, found: bool, source: str = "") -> None:
        """Count a piece that is in its place; the last one of a file when the whole file is."""
        if whole is None or self._senders is None:
            if whole is not None:
                self._finish_file(whole)
            self._note(piece, whole, found=found, source=source)
            return
        with self.changed:
            self._picker.got(piece)  # not when it has been sent: a source would be asked for what was found here
            if self.failure is None and not self.is_stopped:
                self._num_sending += 1
                self._senders.submit(self._send, piece, whole, found, source)

    def _send(self, piece: int, whole: int, found: bool, source: str) -> None:
        """Send a file to the storage, and begin with others for which there is room now; runs in a thread."""
        try:
            if self.failure is None and not self.is_stopped:
                self._finish_file(whole)
                self._note(piece, whole, found=found, source=source)
                with self.changed:
                    self._window.close(whole)
                self._advance()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.fail(error)
        finally:
            with self.changed:
                self._num_sending -= 1
                self.last_progress_s = time.monotonic()
                self.changed.notify_all()

    def _note(self, piece: int, whole: int | None, *, found: bool, source: str = "") -> None:
        length = self.plan.spot(piece).length
        with self.changed:
            self._picker.got(piece)
            self._kept[piece] = 1
            self.size_had += length
            self.last_progress_s = time.monotonic()
            if found:
                self.size_found += length
            else:
                self.size_fetched += length
                tally = self.tally(source)
                tally.size += length
                tally.pieces += 1
            if whole is not None:
                self._whole.add(whole)
            self.changed.notify_all()

    def _finish_file(self, index: int) -> None:
        file = self.plan.files[index]
        for path in self.arriving.finish_file(index):
            self.holdings.arrived(file.root, self.arriving.staging, self.arriving.place, path, file.size)
        self.arriving.leave_to_storage(index)

    def fail(self, error: BaseException) -> None:
        """End everything: what is to be kept cannot be kept."""
        with self.changed:
            self.failure = self.failure or error
            self.changed.notify_all()

    def stop(self) -> None:
        """End everything; what was had stays for the next time."""
        with self.changed:
            self.is_stopped = True
            self.changed.notify_all()

    def finish(self) -> None:
        """Note that everything is in its place."""
        with self.changed:
            self.is_finished = True
            self.changed.notify_all()

    def close(self) -> None:
        """Wait for what is on its way to a storage; nothing may be delivered any more."""
        if self._senders is not None:
            self._senders.shutdown(wait=True, cancel_futures=True)

    def is_whole(self, index: int) -> bool:
        """Tell whether a file is in its place."""
        return index in self._whole

    def wait_for_pieces(self, pieces: Sequence[int], timeout_s: float) -> None:
        """Wait until some pieces are there; they come before all others.

        Raises:
            WaitError: If nothing at all came for so long.
        """
        missing = [piece for piece in pieces if not self._kept[piece]]
        for index in sorted({self.plan.spot(piece).file for piece in missing}):
            with self.changed:
                is_new = self._window.begin_now(index)
            if is_new:
                self._begin_with([index])
        with self.changed:
            self._picker.want(missing)
            self.changed.notify_all()
            while not all(self._kept[piece] for piece in missing):
                self.check()
                left = timeout_s - self.silent_s
                if left <= 0:
                    raise self.nothing_comes(timeout_s)
                self.changed.wait(min(left, 1.0))

    def check(self) -> None:
        """Raise what has ended the fetch, if something has."""
        if self.failure is not None:
            raise self.failure
        if self.is_stopped:
            raise WaitError(f"Getting {self.manifest.reference} was ended before everything had come.")

    def nothing_comes(self, timeout_s: float) -> WaitError:
        """Return the error for a fetch that stands still; it names every source."""
        what = f"Nothing of {self.manifest.reference} came for {timeout_s:g} s"
        return standstill(f"{what}; {self.size_had:,} of {self.size:,} bytes are here and stay", self.tallies.values())
