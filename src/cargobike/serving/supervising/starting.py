"""Starting a supervisor: the lock, the journal, what an earlier one has left, the socket; then the loop."""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import socket
import sys
import time
from pathlib import Path

import msgspec

from cargobike.core.errors import CargobikeError, DeploymentError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.version import __version__
from cargobike.serving.facts import (
    AnyServingFact,
    DeploymentChanged,
    DeploymentStarted,
    DeploymentStopped,
    SupervisorStarted,
)
from cargobike.serving.record import DeploymentFolder, DeploymentRecord, folder_of, read_record
from cargobike.serving.specification import Specification
from cargobike.serving.supervising.config import (
    Started,
    SupervisorConfig,
    keep_local,
    read_local,
)
from cargobike.serving.supervising.crew import Crew
from cargobike.serving.supervising.finding import find_version, model_name
from cargobike.serving.supervising.listening import listen
from cargobike.serving.supervising.loop import Loop, say_on_stdout
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.runtime import SUPERVISOR, prepare_folder, remove_folder, runtime_folder, secret_of
from cargobike.store.files import project
from cargobike.store.files.locking import DriverLock, holder
from cargobike.store.journal.journal import JournalWriter


def supervise(config: SupervisorConfig) -> None:
    """Run a deployment until it is stopped.

    Raises:
        DeploymentError: If another supervisor has it, its port is taken, or its first version cannot be started.
    """
    project.use(config.project)
    folder = folder_of(ProjectFolder(Path(config.project)), config.name)
    lock = DriverLock(folder)
    try:
        lock.acquire()
    except StoreError as error:
        raise DeploymentError(
            f"{config.name} is being served by {holder(folder)}. Change it with `cargobike deployments`, or stop it "
            f"with `cargobike deployments stop {config.name}`."
        ) from error
    try:
        _supervise(config, folder)
    finally:
        lock.release()


def _supervise(config: SupervisorConfig, folder: DeploymentFolder) -> None:
    runtime = runtime_folder(folder.project, config.name)
    prepare_folder(runtime)
    crew = Crew(runtime, folder, secret_of(runtime), config.grace_s)
    found = crew.adopt()
    try:
        with JournalWriter(folder.journal) as journal:
            record = _opened(config, folder, journal, is_running=bool(found) or crew.front is not None)
            crew.local = read_local(folder)
            crew.specification = msgspec.structs.replace(record.specification, environment={})
            _listen(crew, record, journal)
            with _control_socket(runtime) as server:
                loop = Loop(record, crew, journal, server, say_on_stdout)
                _begin(loop, config, found)
                error = loop.run()
        if error:
            raise DeploymentError(error)
    finally:
        crew.close()
        remove_folder(runtime)


def _listen(crew: Crew, record: DeploymentRecord, journal: JournalWriter) -> None:
    """Listen; a deployment that cannot is stopped and not lost, and needs none of its versions."""
    try:
        listen(crew, record)
    except DeploymentError as error:
        journal.append([DeploymentStopped(at=time.time(), reason=str(error))])
        raise


def _opened(
    config: SupervisorConfig, folder: DeploymentFolder, journal: JournalWriter, *, is_running: bool
) -> DeploymentRecord:
    """Return what the journal says, after what is asked for now was written into it."""
    record = read_record(folder)
    if config.local is not None:
        keep_local(folder, config.local)
    if not config.specification:
        if record is None:
            raise DeploymentError(f"There is no deployment {config.name!r} in {folder.project.root}.")
        return record
    asked = msgspec.json.decode(config.specification, type=Specification)
    fact: AnyServingFact
    if record is None:
        fact = DeploymentStarted(
            at=time.time(), id=config.name, specification=asked, cargobike=__version__, user=_user(), host=_host()
        )
        record = DeploymentRecord(asked, fact.at)
    elif record.specification != asked:
        fact = DeploymentChanged(at=time.time(), specification=asked, user=_user())
    else:
        return record
    journal.append([fact])
    if model_name(record.specification.model) != model_name(asked.model):
        record.current = record.previous = record.candidate = 0  # versions of another model mean nothing here
    record.apply(fact)
    if not is_running and record.current != asked.version:
        # Nothing serves: the version before is what a rollback goes to, and need not be started first.
        record.previous, record.current, record.candidate = record.current, 0, 0
    return record


def _begin(loop: Loop, config: SupervisorConfig, found: dict[int, int]) -> None:
    record = loop.record
    for version in {record.current, record.candidate, record.previous, record.specification.version} - {0}:
        # What cannot be found now is found, or missed, by the replica that loads it.
        with contextlib.suppress(CargobikeError):
            loop.versions[version] = find_version(f"{model_name(record.specification.model)}:{version}")
    loop.write(
        SupervisorStarted(
            at=loop.clock.now(),
            pid=os.getpid(),
            host=record.specification.host,
            port=record.port,
            adopted=tuple(found),
            grpc_port=record.grpc_port,
            step=config.step,
        )
    )
    if config.owner:
        loop.own(config.owner)
    wanted = record.specification.version
    loop.handle(events.Began(at=loop.clock.now(), found=found))
    if (config.specification and wanted != record.current) or not record.current:
        loop.handle(events.RollAsked(at=loop.clock.now(), version=wanted))


def _control_socket(runtime: Path) -> socket.socket:
    """Listen for users' processes."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    aside = runtime / f"{SUPERVISOR}.{os.getpid()}"
    server.bind(str(aside))
    server.listen(32)
    aside.replace(runtime / SUPERVISOR)
    return server


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _host() -> str:
    return socket.gethostname()


def main() -> None:
    """Run a supervisor: its config comes on standard input; it says on standard output when it serves."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    config = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=SupervisorConfig)
    try:
        supervise(config)
    except CargobikeError as error:
        say_on_stdout(Started(error=str(error)))
        logging.getLogger(__name__).error("%s", error)
        sys.exit(1)
