"""Forcing checkpoints to disk beside the training, so that they survive a power cut."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from cargobike.experiments.trial.checkpoints.folder import force_folder

_LOG = logging.getLogger(__name__)


class Forcing:
    """Forces one checkpoint after the other to disk, in a thread that lives as long as that takes.

    Guarantees: what is being forced, and the last one that was, are in `kept`, which must not be deleted. One is begun
    before the interval is over, by as much as the last one took, and a save waits for one that takes longer than
    the interval. After a failure the next `save` forces its checkpoint itself, and raises its error.

    Args:
        every_s: How many seconds of checkpoints a power cut may cost; 0 if each `save` forces its own.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._took_s = 0.0
        self._began_at = self._ended_at = time.monotonic()
        self._forced: Path | None = None
        self._pending: Path | None = None
        self._thread: threading.Thread | None = None
        self._has_failed = False

    @property
    def kept(self) -> set[Path]:
        """What must not be deleted."""
        return {path for path in (self._forced, self._pending) if path is not None}

    @property
    def must_be_at_once(self) -> bool:
        """Whether the next `save` has to force its checkpoint itself."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()
        return self._every_s <= 0 or self._has_failed

    def trust(self, path: Path | None) -> None:
        """Count a checkpoint that is there already as forced."""
        self._forced = path

    def was_forced(self, path: Path) -> None:
        """Record a checkpoint that its `save` has forced."""
        self._forced = path
        self._has_failed = False
        self._ended_at = time.monotonic()

    def begin_if_due(self, path: Path) -> None:
        """Begin to force a checkpoint that was just saved, if it is time to."""
        now = time.monotonic()
        if self._thread is not None:
            if self._thread.is_alive() and now - self._began_at < self._every_s:
                return
            self.wait()
            now = time.monotonic()
        if now - self._ended_at < max(self._every_s - self._took_s, self._every_s / 2):
            return
        self._began_at = now
        self._pending = path
        self._thread = threading.Thread(target=self._force, args=(path,), name="cargobike-force", daemon=True)
        self._thread.start()

    def wait(self) -> bool:
        """Wait for the one that is being forced; tell whether there was any."""
        if self._thread is None:
            return False
        self._thread.join()
        # Still pending: one that failed, or one whose thread does not exist in this copy of the process.
        self._has_failed = self._has_failed or self._pending is not None
        self._thread = self._pending = None
        return True

    def _force(self, path: Path) -> None:
        try:
            force_folder(path)
        except FileNotFoundError:
            pass  # another attempt has replaced it, and keeps its own
        except OSError as error:
            _LOG.warning("The checkpoint %s could not be forced to disk: %s. The next one will be.", path, error)
            return
        else:
            self._forced = path
        self._ended_at = time.monotonic()
        self._took_s = self._ended_at - self._began_at
        self._pending = None
