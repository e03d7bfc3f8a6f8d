"""Which writers are at work on a table, so that what dead ones left behind can be swept, and nothing of living ones.

A writer announces itself in `writing/<token>.json` before its first file, and renews that as it goes. Before it
commits it creates `writing/<token>.end`; a sweeper creates the same file before it deletes. Of the two the one that
comes second stands back.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.data.tables.versions import all_versions
from cargobike.store.files.storage import Storage

FOLDER = "writing"
_PART = re.compile(r"[0-9]+/part-[0-9]+-(?P<token>[0-9a-f]{12})-[0-9-]+\.parquet")
_RENEW_S = 300.0
_SILENT_S = 24 * 3600.0
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
        storage: The table's place.
        token: What the names of its files hold.
        folder: The folder below the table's address that they lie in.
    """

    def __init__(self, storage: Storage, token: str, folder: str) -> None:
        self._storage = storage
        self._token = token
        self._folder = folder
        self._renewed = 0.0
        self.path = f"{FOLDER}/{token}.json"
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
        is_first = self._storage.create(f"{FOLDER}/{self._token}.end", b"commit")
        if not is_first or self._storage.stat(self.path) is None:
            raise StoreError(
                f"What was written to {self._storage} was swept away, since this process had been silent for more than "
                f"{_SILENT_S / 3600:.0f} hours. Write it again."
            )

    def end(self) -> None:
        """Take the claim back; the files are either listed or deleted."""
        self._storage.delete(f"{FOLDER}/{self._token}.end")
        self._storage.delete(self.path)  # last: while it is there, a sweeper finds the rest


def sweep(storage: Storage) -> list[str]:
    """Delete what dead writers left behind, and return the paths."""
    swept: list[str] = []
    for token, claim in list(_claims(storage)):
        has_died = has_ended(claim.process)
        if not has_died and time.time() - claim.at < _SILENT_S:
            continue
        is_first = storage.create(f"{FOLDER}/{token}.end", b"sweep")
        if not is_first and not has_died:
            continue  # it has come back, and commits
        listed = {file.path for manifest in all_versions(storage) for file in manifest.files}
        orphans = [
            entry.path for entry in storage.list(claim.folder) if f"-{token}" in entry.path and entry.path not in listed
        ]
        storage.delete(*orphans)
        storage.delete(f"{FOLDER}/{token}.json")
        storage.delete(f"{FOLDER}/{token}.end")
        swept += orphans
    if swept:
        _log.info("swept %d files of writers that died, at %s", len(swept), storage)
    return swept


def sweep_unlisted(storage: Storage) -> list[str]:
    """Delete files that no version lists and no writer claims, such as those of tasks that outlived their job.

    It lists everything, so it is done only now and then. The order matters: a writer that is not found among the claims
    has ended before, so that the manifests, read last, list what it committed.
    """
    parts = [match for entry in storage.list(deep=True) if (match := _PART.fullmatch(entry.path))]
    claims = {token for token, _ in _claims(storage)}
    listed = {file.path for manifest in all_versions(storage) for file in manifest.files}
    unlisted = [part[0] for part in parts if part["token"] not in claims and part[0] not in listed]
    storage.delete(*unlisted)
    ended = [entry.path for entry in storage.list(FOLDER) if entry.path.endswith(".end")]
    storage.delete(*(path for path in ended if path.removeprefix(f"{FOLDER}/").removesuffix(".end") not in claims))
    return unlisted


def _claims(storage: Storage) -> Iterator[tuple[str, Claim]]:
    for entry in storage.list(FOLDER):
        token, _, kind = entry.path.removeprefix(f"{FOLDER}/").partition(".")
        data = storage.read(entry.path) if kind == "json" and token.isalnum() else None
        with contextlib.suppress(*UNDECODABLE):
            if data is not None and (claim := msgspec.json.decode(data, type=Claim)).folder.isdecimal():
                yield token, claim
