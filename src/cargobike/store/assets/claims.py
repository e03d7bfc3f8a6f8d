"""Which writers are at work on an asset, so that what dead ones left behind can be swept, and nothing of living ones.

A writer announces itself in `writing/<token>.json` before its first file, and renews that as it goes. Before it
commits it creates `writing/<token>.end`; a sweeper creates the same file before it deletes. Of the two the one that
comes second stands back.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.storage import Storage

FOLDER: Final = "writing"
_RENEW_S: Final = 300.0
_SILENT_S: Final = 24 * 3600.0
"""A writer whose process cannot be seen from here, and that said nothing for so long, is taken for dead."""

_log = logging.getLogger(__name__)


class Claim(msgspec.Struct, frozen=True):
    """What a writer says of itself: its process, where its files lie, when it last said so."""

    process: str
    folder: str
    at: float


class Writing:
    """The claim of one living writer.

    Args:
        storage: Where the asset lies.
        token: Drawn by the writer; its files have it in their paths.
        folder: Where its files lie, as the asset's sweeper understands it.
        claims: The folder of the asset's claims.
    """

    def __init__(self, storage: Storage, token: str, folder: str, claims: str = FOLDER) -> None:
        self._storage = storage
        self._folder = folder
        self._renewed = 0.0
        self.path = f"{claims}/{token}.json"
        self._end = f"{claims}/{token}.end"
        self.renew()

    def renew(self) -> None:
        """Say that this writer lives, if it has not done so for a while."""
        if time.monotonic() - self._renewed < _RENEW_S and self._renewed:
            return
        claim = Claim(name_of_this_process().strip(), self._folder, time.time())
        self._storage.write(self.path, msgspec.json.encode(claim))
        self._renewed = time.monotonic()

    def begin_commit(self) -> None:
        """Make sure that no sweeper takes the files away from now on.

        Raises:
            StoreError: If one has begun to.
        """
        is_first = self._storage.create(self._end, b"commit")
        if not is_first or self._storage.stat(self.path) is None:
            raise StoreError(
                f"What was written to {self._storage} was swept away, since this process had been silent for more than "
                f"{_SILENT_S / 3600:.0f} hours. Write it again."
            )

    def end(self) -> None:
        """Take the claim back; the files are either listed or deleted."""
        self._storage.delete(self._end)
        self._storage.delete(self.path)  # last: while it is there, a sweeper finds the rest


def sweep(
    storage: Storage, left_by: Callable[[str, Claim], Iterable[str]], folders: re.Pattern[str], claims: str = FOLDER
) -> list[str]:
    """Delete what dead writers left behind, and return the paths.

    Args:
        storage: Where the asset lies.
        left_by: Returns the paths that a writer left and that nothing lists, by its token and claim. It is called after
            the writer can no longer commit.
        folders: What the folder of a claim looks like; other claims are left alone.
        claims: The folder of the asset's claims.
    """
    swept: list[str] = []
    for token, claim in list(read_claims(storage, folders, claims)):
        has_died = has_ended(claim.process)
        if not has_died and time.time() - claim.at < _SILENT_S:
            continue
        is_first = storage.create(f"{claims}/{token}.end", b"sweep")
        if not is_first and not has_died:
            continue  # it has come back, and commits
        orphans = list(left_by(token, claim))
        storage.delete(*orphans)
        storage.delete(f"{claims}/{token}.json")
        storage.delete(f"{claims}/{token}.end")
        swept += orphans
    if swept:
        _log.info("swept %d paths of writers that died, at %s", len(swept), storage)
    return swept


def read_claims(storage: Storage, folders: re.Pattern[str], claims: str = FOLDER) -> Iterator[tuple[str, Claim]]:
    """Yield the claims of all writers, dead or alive, by their tokens; what is no claim is skipped."""
    for entry in storage.list(claims):
        token, _, kind = entry.path.removeprefix(f"{claims}/").partition(".")
        data = storage.read(entry.path) if kind == "json" and token.isalnum() else None
        with contextlib.suppress(*UNDECODABLE):
            if data is not None and folders.fullmatch((claim := msgspec.json.decode(data, type=Claim)).folder):
                yield token, claim
