"""A watcher's process: the lock, the journal, the reference, then the loop."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.engines.spark.session import import_pyspark
from cargobike.monitoring.facts import Hooks, Watched, WatcherEnded, WatcherStarted
from cargobike.monitoring.hooks.telling import Teller, wanted
from cargobike.monitoring.labelling.joining import Open
from cargobike.monitoring.record import MonitorFolder, MonitorRecord, find_record, folder_of
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.running.keeping import Keeper
from cargobike.monitoring.running.watcher import Watcher, open_log
from cargobike.store.files import project as projects
from cargobike.store.files.locking import DriverLock, holder
from cargobike.store.files.remote import open_remote
from cargobike.store.files.shared import shared_url
from cargobike.store.files.uploading import Uploader

_TELL_AGAIN_S: Final = 86_400.0
"""Hooks that were not told of an alarm, because the process was killed, are told when that is not longer ago."""
_log: Final = logging.getLogger(__name__)


class WatcherConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher's process is told, on its standard input.

    Attributes:
        project: The folder of the project.
        name: The monitor.
        is_owned: Whether it ends when its standard input is closed: with the process that started it.
        paths: Where its metrics may be imported from.
    """

    project: str
    name: str
    is_owned: bool = False
    paths: tuple[str, ...] = ()


class Said(msgspec.Struct, frozen=True):
    """What it says on its standard output, once; `error` if it cannot watch."""

    pid: int = 0
    error: str = ""


@contextlib.contextmanager
def held(folder: MonitorFolder) -> Iterator[None]:
    """Hold a monitor for this process.

    Raises:
        InvalidInputError: If another process watches; says which.
    """
    lock = DriverLock(folder)
    try:
        lock.acquire()
    except StoreError as error:
        raise InvalidInputError(
            f"{folder.id} is being watched by {holder(folder)}; there is one watcher for each monitor. Stop it with "
            f"`cargobike monitor stop {folder.id}`, or use it."
        ) from error
    try:
        yield
    finally:
        lock.release()


def watch_until(over: threading.Event, folder: MonitorFolder, *, begun: threading.Event | None = None) -> None:
    """Watch in this process until it is told to end.

    Args:
        over: Set when it is to end.
        folder: The monitor.
        begun: Set when it has begun.

    Raises:
        InvalidInputError: If another process watches.
        NotFoundError: If there is no such monitor.
    """
    with contextlib.ExitStack() as exits:
        exits.enter_context(held(folder))
        folder.stop_request.unlink(missing_ok=True)
        find_record(folder.project, folder.id)
        keeper = Keeper(folder)
        exits.callback(keeper.close)
        record = find_record(folder.project, folder.id)  # with what a process that was killed had not written
        watched = record.watched
        reference = _reference(folder, watched)
        calibrated = reference.calibrated_sizes
        _share(folder, exits)
        teller = Teller(folder.id, watched.subject, watched.hooks)
        _tell_again(teller, record, watched.hooks)
        follow = open_log(lambda: log_keeper(watched.kind).follow(watched.subject, folder.project))
        rows = _on_spark(watched, reference, folder.project) if watched.engine != "local" else follow
        watcher = Watcher(folder, watched, reference, keeper, opened=rows, log=follow, teller=teller)
        exits.callback(watcher.close)
        keeper.commit(keeper.kept, [WatcherStarted(at=time.time(), pid=os.getpid(), host=socket.gethostname())])
        reason = "stopped"
        try:
            if begun is not None:
                begun.set()
            watcher.run(over)
        except KeyboardInterrupt:
            reason = "interrupted"
            raise
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}"
            raise
        finally:
            folder.stop_request.unlink(missing_ok=True)
            if reference.calibrated_sizes > calibrated:
                reference.save(folder.reference)  # windows by time have many sizes, and each takes a second to learn
            keeper.commit(keeper.kept, [WatcherEnded(at=time.time(), reason=reason)])


def _reference(folder: MonitorFolder, watched: Watched) -> Reference:
    reference = Reference.load(folder.reference)
    if watched.fingerprint and reference.fingerprint != watched.fingerprint:
        raise InvalidInputError(
            f"The reference of {folder.id} is another one than it was asked for with: a call of monitoring.watch was "
            "killed in the middle, or the file was replaced. Call monitoring.watch again."
        )
    return reference


def _on_spark(watched: Watched, reference: Reference, project: ProjectFolder) -> Open:
    """Return what follows the log with Spark; it is started with the first rows, and again after a failure."""
    import_pyspark()
    from cargobike.monitoring.streaming.query import SparkFollower  # noqa: PLC0415 - needs pyspark, an extra

    master = watched.engine.partition(":")[2] or None
    return open_log(lambda: SparkFollower(watched.subject, project, reference.summing.layout, master))


def _tell_again(teller: Teller, record: MonitorRecord, hooks: Hooks) -> None:
    for alarm in record.alarms:
        if time.time() - alarm.raised.at < _TELL_AGAIN_S:
            told = {one.hook for one in alarm.told}
            teller.tell(alarm.raised, [name for name in wanted(hooks) if name not in told])


def _share(folder: MonitorFolder, exits: contextlib.ExitStack) -> None:
    """Copy the monitor to shared storage while it runs, if its project is shared."""
    if url := shared_url(folder.project):
        exits.callback(Uploader(folder, open_remote(url)).close)


def main() -> None:
    """Watch: the config comes on standard input; says on standard output when it has begun."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    config = msgspec.json.decode(sys.stdin.buffer.readline(), type=WatcherConfig)
    sys.path += [path for path in config.paths if path not in sys.path]
    projects.use(config.project)
    folder = folder_of(ProjectFolder(Path(config.project)), config.name)
    over, begun = threading.Event(), threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: over.set())
    threading.Thread(target=_say_begun, args=(begun,), name="cargobike-begun", daemon=True).start()
    if config.is_owned:
        threading.Thread(target=_end_with_owner, args=(over,), name="cargobike-owner", daemon=True).start()
    try:
        watch_until(over, folder, begun=begun)
    except CargobikeError as error:
        _say(Said(error=str(error)))
        _log.error("%s", error)
        sys.exit(1)


def _say_begun(begun: threading.Event) -> None:
    begun.wait()
    _say(Said(pid=os.getpid()))


def _end_with_owner(over: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    over.set()


def _say(said: Said) -> None:
    with contextlib.suppress(OSError):
        os.write(1, msgspec.json.encode(said) + b"\n")
