"""What trials print, kept in files; nothing is lost without a word when a file cannot be written for a while."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from pathlib import Path

import msgspec

from cargobike.core.running.descriptors import from_reserve

MOST_HELD_BYTES = 16 << 20
TRY_AGAIN_S = 1.0

log = logging.getLogger(__name__)

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Held(msgspec.Struct):
    """What waits to be written to one file."""

    reason: str
    data: bytearray = msgspec.field(default_factory=bytearray)
    lost_bytes: int = 0


class OutputFiles:
    """Appends to files, in order. What a file does not take now (no descriptor, no room) is held and tried again.

    No more than `MOST_HELD_BYTES` are held in all. What does not fit, or still cannot be written when everything ends,
    is lost; a warning says how much of which file, and so does the file, where it can be written again.
    """

    def __init__(self) -> None:
        self._held: dict[Path, _Held] = {}
        self._next_try = 0.0

    def append(self, path: Path, data: bytes) -> None:
        """Write to the end of a file, now or later."""
        held = self._held.get(path)
        if held is None:
            written, error = _append(path, data)
            if error is None:
                return
            held = self._held[path] = _Held(error.strerror or str(error))
            log.warning("%s cannot be written: %s. What was printed is held, and written when it can be.", path, error)
            data = data[written:]
        room = MOST_HELD_BYTES - sum(len(one.data) for one in self._held.values())
        if held.lost_bytes or len(data) > room:
            held.lost_bytes += len(data)
        else:
            held.data += data

    def try_again(self, now_s: float) -> None:
        """Write what is held, as far as possible; does nothing if that was tried just now."""
        if self._held and now_s >= self._next_try:
            self._next_try = now_s + TRY_AGAIN_S
            self._write_held()

    def close(self) -> None:
        """Write what is held, and say what is lost."""
        self._write_held()
        for path, held in self._held.items():
            lost = held.lost_bytes + len(held.data)
            log.warning("%d bytes that were printed are lost: %s could not be written: %s.", lost, path, held.reason)
        self._held.clear()

    def _write_held(self) -> None:
        for path, held in list(self._held.items()):
            written, error = _append(path, bytes(held.data))
            del held.data[:written]
            if error is None and held.lost_bytes:
                lost = f"\ncargobike: {held.lost_bytes} bytes that were printed here are lost: {held.reason}\n"
                _, error = _append(path, lost.encode("utf-8", "replace"))
            if error is None:
                del self._held[path]
                kept = f"{held.lost_bytes} bytes of what was printed are lost" if held.lost_bytes else "nothing is lost"
                log.warning("%s can be written again; %s.", path, kept)


def _append(path: Path, data: bytes) -> tuple[int, OSError | None]:
    """Return how many bytes were written, and why not all of them were; a link is not followed."""
    written = 0
    try:
        open_it = functools.partial(os.open, path, _FLAGS, 0o666)
        try:
            fd = from_reserve(open_it)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = from_reserve(open_it)
        try:
            while written < len(data):
                written += os.write(fd, data[written:])
        finally:
            with contextlib.suppress(OSError):
                os.close(fd)
    except OSError as error:
        return written, error
    return written, None
