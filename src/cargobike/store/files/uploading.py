"""Sends a thing from its local folder to shared storage, an experiment while its driver runs.

The journal goes in segments, other files whole, each time they have changed. What is on the storage is never ahead of
the folder and at most some seconds behind it; when the driver has ended, everything is there.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Final

import msgspec

from cargobike.core.errors import StoreError, SupersededError
from cargobike.core.layout import ThingFolder
from cargobike.core.registering.kinds import Kind
from cargobike.core.registering.products import kind_of
from cargobike.store.files.remote import Listing, RemoteProject, Segment, patiently
from cargobike.store.files.things import files_of

JOURNAL_EVERY_S: Final = 2.0
FILES_EVERY_S: Final = 10.0
HEARTBEAT_S: Final = 15.0
END_S: Final = 300.0
_MOST_SEGMENTS: Final = 32
_LARGE_BYTES: Final = 8 << 20

_log = logging.getLogger(__name__)


class Sender:
    """Sends what has changed in one thing's folder; knows what it has sent.

    Args:
        folder: The thing.
        remote: The storage to send to.
    """

    def __init__(self, folder: ThingFolder, remote: RemoteProject) -> None:
        self.folder = folder
        self.remote = remote
        self.kind = kind_of(folder.root)
        self._remote_folder = self.kind.place(folder.id)
        self._small: list[Segment] = []
        self._sent_bytes: int | None = None
        self._sent_files: Listing | None = None

    @property
    def sent_bytes(self) -> int:
        """How much of the journal is on the storage."""
        if self._sent_bytes is None:
            there = self.remote.segments(self.kind, self.folder.id)
            if there:
                self._compare(max(there, key=lambda one: one.end))
            self._sent_bytes = max((one.end for one in there), default=0)
            self._small = [one for one in there if one.end - one.start < _LARGE_BYTES]
        return self._sent_bytes

    def _compare(self, last: Segment) -> None:
        """Make sure that our journal goes on where the one on the storage ends."""
        with self.folder.journal.open("rb") as file:
            file.seek(last.start)
            ours = file.read(last.end - last.start)
        if ours != self.remote.read(f"{self._remote_folder}/journal/{last.name}"):
            raise SupersededError(f"{self.folder.id} was resumed elsewhere, from before the end of what is here")

    def send_journal(self) -> bool:
        """Send the whole lines that are new; returns whether there were any."""
        start = self.sent_bytes
        with self.folder.journal.open("rb") as file:
            file.seek(start)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return False
        segment = Segment(start, start + len(data))
        self.remote.write(f"{self._remote_folder}/journal/{segment.name}", data)
        self._sent_bytes = segment.end
        self._small.append(segment)
        if len(self._small) >= _MOST_SEGMENTS:
            self._merge()
        return True

    def _merge(self) -> None:
        """Replace many small segments by one; readers use whichever they find first."""
        first, last = self._small[0].start, self._small[-1].end
        with self.folder.journal.open("rb") as file:
            file.seek(first)
            data = file.read(last - first)
        merged = Segment(first, last)
        self.remote.write(f"{self._remote_folder}/journal/{merged.name}", data)
        self.remote.delete(*(f"{self._remote_folder}/journal/{one.name}" for one in self._small if one != merged))
        self._small = [merged] if last - first < _LARGE_BYTES else []

    def send_files(self) -> bool:
        """Send files that are new or have changed, and remove those that are gone; returns whether there were any."""
        if self._sent_files is None:
            self._sent_files = self.remote.listing(self.kind, self.folder.id)
        now = files_to_send(self.kind, self.folder)
        if now == self._sent_files:
            return False
        changed = [name for name, mark in now.items() if self._sent_files.get(name) != mark]
        self.remote.upload(self.folder.root, changed, self._remote_folder)
        gone = [f"{self._remote_folder}/{name}" for name in self._sent_files if name not in now]
        self.remote.write(f"{self._remote_folder}/files.json", msgspec.json.encode(now))
        if gone:
            self.remote.delete(*gone)
        self._sent_files = now
        return True

    def send_head(self, *, is_over: bool) -> None:
        """Write its head: how far it has come."""
        self.remote.write_head(self.kind, self.folder.id, self.sent_bytes, pid=os.getpid(), is_over=is_over)

    def send_all(self) -> None:
        """Send everything, files before the journal that speaks of them, and write in its head that this is all."""
        self.send_files()
        self.send_journal()
        self.send_head(is_over=True)
        self.folder.unsent.unlink(missing_ok=True)


class Uploader:
    """Keeps an experiment on shared storage up to date from a thread, as long as its driver runs.

    A storage that is out of reach does not stop the experiment: everything is sent once it is back, at the latest at
    the end. What could not be sent even then stays in the local folder, and is sent by the next command that looks at
    the project.
    """

    def __init__(self, folder: ThingFolder, remote: RemoteProject) -> None:
        self._sender = Sender(folder, remote)
        self._folder = folder
        self._over = threading.Event()
        self._has_warned = False
        folder.unsent.touch()
        self._sender.send_head(is_over=False)  # raises at once if it may not write there
        self._thread = threading.Thread(target=self._run, name="cargobike-upload", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the rest, and wait until it is there."""
        self._over.set()
        self._thread.join()
        try:
            try:
                self._sender.send_all()
            except (StoreError, OSError) as error:
                _log.warning("%s; waiting up to %g s for the storage, Ctrl-C to send it later.", error, END_S)
                patiently(self._sender.send_all, time.monotonic() + END_S)
        except (StoreError, OSError) as error:
            _log.error(
                "%s is not whole on the shared storage (%s). It is in %s, and is sent when the project is used next.",
                self._folder.id,
                error,
                self._folder.root,
            )

    def _run(self) -> None:
        next_files = next_head = 0.0
        while not self._over.wait(JOURNAL_EVERY_S):
            now = time.monotonic()
            try:
                has_news = False
                if now >= next_files:
                    has_news = self._sender.send_files()
                    next_files = time.monotonic() + max(FILES_EVERY_S, 10 * (time.monotonic() - now))
                has_news = self._sender.send_journal() or has_news
                if has_news or now >= next_head:
                    self._sender.send_head(is_over=False)
                    next_head = now + HEARTBEAT_S
                self._look_for_stop()
                self._has_warned = False
            except (StoreError, OSError) as error:
                if not self._has_warned:
                    _log.warning("%s; the experiment goes on, and is sent later.", error)
                self._has_warned = True

    def _look_for_stop(self) -> None:
        name = self._sender.kind.place(self._folder.id, "stop")
        if self._sender.remote.read(name) is not None:
            self._sender.remote.delete(name)
            self._folder.stop_request.touch()


def files_to_send(kind: Kind, folder: ThingFolder) -> Listing:
    """Return the files of a thing that belong on the storage besides its journal, with size and time of change."""
    return {
        path: (status.st_size, status.st_mtime_ns)
        for path, status in files_of(kind, folder.root, with_hidden=False)
        if path != kind.journal
    }
