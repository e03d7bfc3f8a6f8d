"""What a user holds while a publication arrives: wait for it, use it meanwhile, or end it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from cargobike.core.errors import InvalidInputError, MissingLibraryError, NotFoundError, WaitError, nearest
from cargobike.core.registering.keeping import table_keeper
from cargobike.sharing.getting.arriving_files import as_file_system
from cargobike.sharing.getting.fetch import Fetch
from cargobike.sharing.getting.progress import Gauge, Progress
from cargobike.sharing.getting.session import Session
from cargobike.sharing.shapes import Manifest


class Arrival:
    """A publication that arrives in the background; made by `sharing.get(…, wait=False)`.

    Files lie in `place` as soon as they are whole. As `data` of a loader it gives rows as they come.

    Args:
        session: What gets it.
        complete: Called in the background when everything is here; returns what was made of it.
        close: Called at the very end.
    """

    def __init__(
        self, session: Session, *, complete: Callable[[Fetch], object], close: Callable[[], None], timeout_s: float
    ) -> None:
        self._session, self._complete, self._close = session, complete, close
        self._timeout_s = timeout_s
        self._fetch = session.fetch
        self._gauge = Gauge()
        self._error: BaseException | None = None
        self._result: object = None
        self._watch: Callable[[Progress], None] = lambda _progress: None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cargobike-get", daemon=True)
        self._thread.start()

    @property
    def manifest(self) -> Manifest:
        """What it is, as its publisher signed it."""
        return self._fetch.manifest

    @property
    def folder(self) -> Path:
        """Where its files go, or are put together if they go to a storage."""
        return self._fetch.arriving.folder

    @property
    def place(self) -> Path | str:
        """Where its files go: a folder, or the address of a storage."""
        return self.folder if self._fetch.arriving.storage is None else self._fetch.arriving.place

    @property
    def result(self) -> object:
        """What was made of it when it was complete: a table, a model, or its folder; `None` before."""
        return self._result

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._gauge.read(self._fetch)

    def wait(self, timeout_s: float | None = None, *, watch: Callable[[Progress], None] | None = None) -> Path:
        """Wait until all of it is here and verified; returns its folder. A Ctrl-C meanwhile ends it.

        Raises:
            WaitError: If nothing came for too long, or it takes longer than `timeout_s`; what was had stays.
            StoreError: If it cannot be kept.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not self._ended.wait(0.25):
                if watch is not None:
                    watch(self.progress)
                if until is not None and time.monotonic() > until:
                    raise WaitError(f"{self.manifest.reference} was not here after {timeout_s:g} s; what came stays.")
        except BaseException:
            self.stop()
            raise
        if self._error is not None:
            raise self._error
        return self.folder

    def files(self) -> Iterator[Path]:
        """Yield the paths of its files in their order, each as soon as it is whole.

        Raises:
            InvalidInputError: If they go to a storage, where they have addresses.
        """
        if not isinstance(self.place, Path):
            raise InvalidInputError(f"The files of {self.manifest.reference} go to a storage; ask for addresses().")
        return map(Path, self.addresses())

    def addresses(self) -> Iterator[str]:
        """Yield the addresses of its files in their order, on a disk or a storage, each as soon as it is whole."""
        for index, paths in enumerate(self._fetch.plan.twins):
            self._fetch.wait_for_pieces(self._fetch.plan.pieces_of(index), self._timeout_s)
            for path in paths:
                yield f"{self.place}/{path}"

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return bytes of one of its files; waits until they are here, and has them come first.

        Raises:
            NotFoundError: If it has no such file.
            WaitError: If nothing came for too long.
        """
        index = self._fetch.plan.index_of(path)
        if index is None:
            paths = [one for twins in self._fetch.plan.twins for one in twins]
            raise NotFoundError(f"{self.manifest.reference} has no file {path!r}.{nearest(path, paths)}", wanted=path)
        length = max(0, min(length, self._fetch.plan.files[index].size - start))
        if not length:
            return b""
        self._fetch.wait_for_pieces(self._fetch.plan.covering(index, start, length), self._timeout_s)
        while (data := self._fetch.arriving.read_file(index, start, length)) is None:
            self._fetch.check()  # it is being moved to its place
        return data

    def size_of(self, path: str) -> int:
        """Return the bytes of one of its files when it is whole."""
        return next((file.size for file in self.manifest.files if file.path == path), 0)

    def source(self) -> object:
        """Return its rows for a `data.Loader`, which can begin before all of it is here; what it reads comes first.

        Raises:
            InvalidInputError: If it has no Parquet files.
        """
        sizes = {file.path: file.size for file in self.manifest.files if file.path.endswith((".parquet", ".pq"))}
        if not sizes:
            raise InvalidInputError(
                f"{self.manifest.reference} has no Parquet files; wait for its files and read those."
            )
        return table_keeper().open_parquet_files(as_file_system(self, list(sizes)), sizes, self.manifest.reference)

    def to_kafka(self, servers: str, topic: str, *, timeout_s: float = 60.0) -> int:
        """Send its rows to a topic of Kafka as they come, each as a message of JSON, in order; return how many.

        Args:
            servers: Where the broker is: `host:port`, or several.
            topic: The topic.
            timeout_s: For how long the broker may take nothing.

        Raises:
            WaitError: If rows do not come, or the broker takes none.
            StoreError: If the broker refuses one.
            MissingLibraryError: If the client of Kafka is not installed.
        """
        try:
            from cargobike.sharing.getting.kafka import stream  # noqa: PLC0415 - an extra, and only for Kafka
        except ModuleNotFoundError as error:
            words = "Rows go to Kafka with a library that is not installed: pip install confluent-kafka"
            raise MissingLibraryError(words, name=error.name) from error
        return stream(self, servers, topic, timeout_s=timeout_s)

    def stop(self) -> None:
        """End it, and wait until nothing of it runs any more; what was had stays for the next time."""
        self._fetch.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._session.run()
            self._fetch.close()
            self._fetch.arriving.finish()
            self._result = self._complete(self._fetch)
            self._fetch.finish()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error
            self._fetch.fail(error)
        finally:
            self._fetch.close()
            self._fetch.arriving.close()
            self._close()
            self._ended.set()

    def __enter__(self) -> Arrival:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
