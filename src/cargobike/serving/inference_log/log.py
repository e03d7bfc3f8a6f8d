"""The inference log of a deployment: takes requests at once, and keeps them a moment later."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import in_words
from cargobike.core.signatures import Signature
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.file_sink import FileSink
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.sink import Counts, Entry, Sample, Sink
from cargobike.serving.specification import Logging, Specification
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import open_storage

MOST_BYTES: Final = 64 << 20
"""About the most memory that requests take before they are converted."""
_LOOK_EVERY_S: Final = 0.25
_STORAGE_TIMEOUT_S: Final = 5.0
_AT_ONCE: Final = 1024

_log = logging.getLogger(__name__)


class InferenceLog:
    """Keeps requests and answers; made, used and closed by one thread.

    `take` appends to a queue and returns: about a microsecond. A thread empties the queue, turns requests into columns,
    and writes every `flush_s`. Memory is bounded: what finds no room, because the storage is gone or too slow, is
    dropped and counted. Deployments run it in a process of its own (`process.py`).

    Attributes:
        counts: What became of requests.
    """

    def __init__(
        self,
        specification: Specification,
        project_url: str,
        model: str,
        signatures: Mapping[int, Signature | None],
        *,
        sink: Sink | None = None,
    ) -> None:
        """Prepare to keep requests; nothing is written yet.

        Args:
            specification: The deployment, and what of it is kept.
            project_url: The project's address.
            model: The name of the model.
            signatures: What each version takes and returns; looked into again when a new version answers.
            sink: Where it goes; by default what the specification says.

        Raises:
            InvalidInputError: If the storage or the broker cannot be what the specification says.
            MissingLibraryError: If a library for it is not installed.
        """
        check_logging(specification.logging)
        self._model = model
        self._signatures = signatures
        self._redact = specification.logging.redact
        self._flush_s = specification.logging.flush_s
        self._sample = Sample(specification.logging.sample)
        self._columns: dict[int, Columns] = {}
        self._waiting: deque[Entry] = deque()
        self._sizes: deque[int] = deque()
        self._packed: deque[Requests] = deque()
        self._bytes_in = 0
        self._bytes_out = 0
        self.counts = Counts()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed_at = 0.0
        if not specification.logging.sample:
            return
        self._sink = sink or self._chosen_sink(specification, project_url)
        self._thread = threading.Thread(target=self._run, name="inference-log", daemon=True)
        self._thread.start()

    def take(  # noqa: PLR0917 - called for every request
        self,
        request_id: str,
        at: float,
        latency_s: float,
        version: int,
        status: int,
        rows: Sequence[Any] | None,
        answers: Sequence[Any] | None,
        size: int = 0,
    ) -> None:
        """Keep a request; returns at once, and never raises because of what is kept or where.

        Args:
            request_id: What the client or the front called it; equal ids are kept or left out together.
            at: When it came, in seconds since 1970.
            latency_s: How long it took.
            version: The version that answered.
            status: The HTTP status of the answer.
            rows: The rows, which must not change any more; `None` if they were not understood.
            answers: One for each row; `None` if there are none.
            size: About how many bytes of memory this takes; by default what the signature suggests.
        """
        if self._thread is None or not self._sample.keeps(request_id.encode("utf-8", "surrogatepass")):
            return
        if not size:
            columns = self._columns.get(version) or self._columns_of(version)
            size = columns.row_bytes * (len(rows) if rows else 1)
        self.counts.taken += 1
        if not self._has_room(size):
            self.counts.refused += 1
            return
        self._waiting.append((request_id, at, latency_s, version, status, rows, answers))
        self._sizes.append(size)

    def take_packed(self, requests: Requests) -> None:
        """Keep requests of which a sample was taken before, as they have travelled."""
        if self._thread is None:
            return
        self.counts.taken += requests.count
        if not self._has_room(_size_of(requests)):
            self.counts.refused += requests.count
            return
        self._packed.append(requests)

    def _has_room(self, size: int) -> bool:
        """Tell whether there is room for so many bytes, and take it."""
        if self._bytes_in - self._bytes_out + size > MOST_BYTES:
            return False
        self._bytes_in += size
        return True

    def close(self, within_s: float = 5.0) -> None:
        """Keep what was taken, as far as that can be done in a time, and end; what is left is counted as dropped."""
        if self._thread is None:
            return
        self._closed_at = time.monotonic() + within_s
        self._closing.set()
        self._thread.join(within_s + 2 * _STORAGE_TIMEOUT_S)
        self._thread = None
        if self.counts.dropped:
            _log.warning("The inference log has dropped %d of %d requests.", self.counts.dropped, self.counts.taken)

    def _columns_of(self, version: int) -> Columns:
        columns = self._columns.get(version)
        if columns is None:
            signature = self._signatures.get(version)
            columns = self._columns[version] = Columns(self._model, version, signature, self._redact)
        return columns

    def _chosen_sink(self, specification: Specification, project_url: str) -> Sink:
        folder = log_folder(specification.name)
        chosen = specification.logging
        if not chosen.kafka:
            # A folder may be the copy of shared storage: then the log belongs there, where other hosts read it.
            shared = "" if "://" in project_url else shared_url(ProjectFolder(Path(project_url)))
            storage = open_storage(chosen.url or shared or project_url, timeout_s=_STORAGE_TIMEOUT_S)
            return FileSink(storage, folder, self._columns_of, self.counts, chosen.keep_days)
        try:
            from cargobike.serving.inference_log.kafka.sink import KafkaSink  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise in_words(error, "Logging to Kafka", "kafka") from error
        return KafkaSink(chosen.kafka, chosen.topic or specification.name, self._model, self._columns_of, self.counts)

    def _run(self) -> None:
        flush_at = time.monotonic() + self._flush_s
        while not self._closing.wait(_LOOK_EVERY_S):
            self._hand_over()
            if time.monotonic() >= flush_at:
                self._guarded(self._sink.flush)
                self._guarded(self._sink.tend)
                flush_at = time.monotonic() + self._flush_s
        self._hand_over()
        while not self._guarded(self._sink.flush) and time.monotonic() < self._closed_at:
            time.sleep(0.05)
        self._guarded(self._sink.close)

    def _hand_over(self) -> None:
        """Give to the sink what waits now; what comes meanwhile waits for the next time."""
        for _ in range(len(self._packed)):
            requests = self._packed.popleft()
            self._put(requests.count, self._sink.put_packed, requests)
            self._bytes_out += _size_of(requests)
        count = len(self._waiting)
        for start in range(0, count, _AT_ONCE):
            some = [self._waiting.popleft() for _ in range(min(_AT_ONCE, count - start))]
            self._put(len(some), self._sink.put, some)
            self._bytes_out += sum(self._sizes.popleft() for _ in some)

    def _put(self, count: int, put: Callable[[Any], None], requests: Any) -> None:
        try:
            put(requests)
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self.counts.lost += count
            _log.exception("%d requests cannot be logged.", count)

    def _guarded(self, step: Any) -> bool:
        """Take a step of the sink; the log goes on whatever happens."""
        try:
            return bool(step())
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self.counts.failures += 1
            _log.exception("The inference log cannot be written, and is tried again.")
            return False


def _size_of(requests: Requests) -> int:
    return len(requests.rows) + len(requests.answers) + len(requests.figures) + len(requests.ids)


def check_logging(logging_: Logging) -> None:
    """Refuse what cannot be done.

    Raises:
        InvalidInputError: Lists every mistake.
    """
    mistakes = []
    if not 0 <= logging_.sample <= 1:
        mistakes.append(f"sample is a share between 0 and 1; {logging_.sample!r} was given.")
    if not 0.05 <= logging_.flush_s <= 3600:
        mistakes.append(f"flush_s is between 0.05 and 3600 seconds; {logging_.flush_s!r} was given.")
    if not logging_.keep_days >= 0:
        mistakes.append(f"keep_days is a number of days, or 0 for ever; {logging_.keep_days!r} was given.")
    if logging_.topic and not logging_.kafka:
        mistakes.append(f"topic={logging_.topic!r} needs kafka='host:port', the servers of a broker.")
    if mistakes:
        raise InvalidInputError("The inference log cannot be kept like this:", mistakes)
