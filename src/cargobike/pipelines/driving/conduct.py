"""Put a run together and drive it to its end; however it ends, nothing is left behind."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError, RunCancelledError, StoreError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.running.forks import end_copy
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.exact import pack_exactly
from cargobike.core.version import __version__
from cargobike.experiments.asking.own_modules import own_modules
from cargobike.experiments.asking.shipping import unsaved_sources
from cargobike.experiments.trial.failure import describe_exception
from cargobike.pipelines.driving.clock import Clock
from cargobike.pipelines.driving.conductor import Conductor
from cargobike.pipelines.driving.driver import Driver, Watch
from cargobike.pipelines.driving.interrupts import Interrupts
from cargobike.pipelines.facts import RunEnded, RunResumed, RunStarted, RunState
from cargobike.pipelines.processes.crew import Crew
from cargobike.pipelines.processes.messages import Setup
from cargobike.pipelines.processes.sweeping import sweep
from cargobike.pipelines.record import RunFolder, RunRecord, fold, folder_of, read_on
from cargobike.pipelines.steps.current import driving
from cargobike.pipelines.values.keeping import keep
from cargobike.pipelines.values.passing import resolved
from cargobike.store.files.locking import DriverLock, holder
from cargobike.store.files.mirror import fetch
from cargobike.store.files.remote import open_remote
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import storage_of
from cargobike.store.files.uploading import Uploader
from cargobike.store.journal.journal import JournalWriter

_ENDS_S: Final = 15.0
"""How long the processes of a driver that died may take to end."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to be driven.

    Attributes:
        function: The pipeline.
        params: What it is called with.
        code: The fingerprints of its code.
        place: Where it can be found again.
        parallel: How many steps may run at once.
        use_cache: Whether results of earlier runs may be used.
        cause: What set it off.
        watch: Is told of every fact.
    """

    function: Callable[..., Any]
    params: Mapping[str, Any]
    code: dict[str, str]
    place: str = ""
    parallel: int = 1
    use_cache: bool = True
    cause: dict[str, Any] = {}
    watch: Watch | None = None


def conduct(request: Request, project: ProjectFolder, run_id: str) -> RunRecord:
    """Run a pipeline to its end; returns the record of one that was completed.

    Raises:
        InvalidInputError: If there is a run with that id already.
        Exception: Whatever ended the pipeline's function.
    """
    folder = folder_of(project, run_id)
    interrupts = Interrupts()
    with contextlib.ExitStack() as exits:
        exits.callback(interrupts.pass_on)  # last, when everything is safe
        _claim(folder)
        exits.enter_context(_locked(folder))
        if folder.journal.exists() and folder.journal.stat().st_size:
            raise _taken(folder)
        _share(folder, exits)
        journal = exits.enter_context(JournalWriter(folder.journal))
        started = RunStarted(
            at=Clock().now(),
            id=run_id,
            pipeline=getattr(request.function, "__name__", "pipeline"),
            function=request.place,
            params=pack_exactly(dict(request.params)),
            code=request.code,
            cause=request.cause,
            parallel=request.parallel,
            folder=os.getcwd(),
            use_cache=request.use_cache,
            cargobike=__version__,
            user=_user(),
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        journal.append([started])
        record = fold([started], folder)
        conductor = Conductor(record, parallel=request.parallel, use_cache=request.use_cache)
        _drive(request, conductor, journal, interrupts)
    return record


def take_up(request: Request, record: RunRecord, *, accept_changes: bool) -> RunRecord:
    """Go on with a run where it was, and drive it to its end.

    Raises:
        StoreError: If another driver has it.
        InvalidInputError: If its code has changed, unless that is accepted.
        Exception: Whatever ended the pipeline's function.
    """
    folder = record.folder
    fetch(folder, with_checkpoints=True)
    interrupts = Interrupts()
    with contextlib.ExitStack() as exits:
        exits.callback(interrupts.pass_on)
        exits.enter_context(_locked(folder))
        _await_processes(folder)
        folder.stop_request.unlink(missing_ok=True)
        read_on(record)  # another driver may have gone on with it
        if record.state is RunState.COMPLETED:
            return record
        changed = changed_parts(record.code, request.code)
        if changed and not accept_changes:
            raise InvalidInputError(
                f"The code of run {record.id} has changed since: {', '.join(changed)}. Resume with `--accept-changes` "
                "(accept_changes=True): steps that are done keep their results, unless their own code or inputs have "
                "changed. Or run the pipeline anew."
            )
        _share(folder, exits)
        journal = exits.enter_context(JournalWriter(folder.journal))
        fact = RunResumed(
            at=max(Clock().now(), record.last_at),
            code=request.code if changed else {},
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        journal.append([fact])
        record.apply(fact)
        conductor = Conductor(
            record, parallel=request.parallel, accept_changes=accept_changes, use_cache=request.use_cache
        )
        _drive(request, conductor, journal, interrupts)
    return record


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the parts of code that have changed, come or gone."""
    return [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


def _drive(request: Request, conductor: Conductor, journal: JournalWriter, interrupts: Interrupts) -> None:
    record, me = conductor.record, os.getpid()
    project = record.folder.project
    setup = Setup(
        run=str(record.folder.root.absolute()),
        project=str(project.root.absolute()),
        sys_path=[os.path.abspath(path) for path in sys.path],
        argv=list(sys.argv),
        sources=unsaved_sources(),
        modules=own_modules(),
        home=getattr(request.function, "__module__", ""),
    )
    with interrupts:
        driver = Driver(conductor, journal, Crew(setup), project=project, interrupts=interrupts, watch=request.watch)
        try:
            _call(request, driver, record)
        except BaseException as error:
            if os.getpid() != me:
                end_copy(error)  # the pipeline forked it: nothing here is its own
            _end_badly(driver, record, error)
            if driver.is_cancelled and not isinstance(error, RunCancelledError):
                raise RunCancelledError(f"Run {record.id} was cancelled.", run=record.id) from None
            raise
        finally:
            if os.getpid() == me:
                driver.close()


def _call(request: Request, driver: Driver, record: RunRecord) -> None:
    """Call the pipeline's function and wait for all its steps."""
    with driving(driver, getattr(request.function, "__module__", "")):
        value = request.function(**request.params)
        value = resolved(value, lambda promise: driver.wait_for(promise.number, None))
    driver.leave(failed=False)
    driver.wait_for_all()
    driver.check()
    failure = driver.failures.first_unseen(driver.settled)
    if failure is not None:
        raise failure
    result = keep(value, record.folder.root, "result")
    with driver.interrupts.whole(), driver.lock:
        fact = RunEnded(at=driver.clock.now(), state=RunState.COMPLETED, result=result)
        record.apply(fact)
        driver.write(fact)


def _end_badly(driver: Driver, record: RunRecord, error: BaseException) -> None:
    """Record why a run has no result: steps that run go on to their end if it failed, and are ended otherwise."""
    if driver.is_cancelled:
        state, text = RunState.CANCELLED, "cancelled"
    elif isinstance(error, KeyboardInterrupt):
        state, text = RunState.INTERRUPTED, "interrupted"
    else:
        state, text = RunState.FAILED, describe_exception(error, os.getcwd())[0]
    with contextlib.suppress(CargobikeError):
        try:
            if state is RunState.FAILED:
                driver.leave(failed=True)
            else:
                driver.stop(state)
            driver.wait_for_all()
        except KeyboardInterrupt:
            state = RunState.INTERRUPTED
            driver.stop(state)
            driver.wait_for_all()
        with driver.lock:
            fact = RunEnded(at=driver.clock.now(), state=state, error=text, failed=driver.failures.behind(error))
            record.apply(fact)
            driver.write(fact)


@contextlib.contextmanager
def _locked(folder: RunFolder) -> Any:
    lock = DriverLock(folder)
    try:
        lock.acquire()
    except StoreError as error:
        raise StoreError(
            f"Run {folder.id} is being driven by {holder(folder)}. Wait for it, or end it with "
            f"`cargobike pipelines cancel {folder.id}`."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _claim(folder: RunFolder) -> None:
    """Make sure that no driver on another host begins the same run on shared storage."""
    if not shared_url(folder.project):
        return
    storage, path = storage_of(folder.project), f"pipelines/claims/{folder.id}"
    if not storage.create(path, name_of_this_process().encode()):
        data = storage.read(path) or b""
        if not has_ended(data.decode("utf-8", "replace")):
            raise _taken(folder)


def _taken(folder: RunFolder) -> InvalidInputError:
    return InvalidInputError(
        f"There is a run {folder.id} already; `cargobike pipelines show {folder.id}` shows it. Choose another id, or "
        f"go on with it: `cargobike pipelines resume {folder.id}`."
    )


def _await_processes(folder: RunFolder) -> None:
    """Wait until the processes of a driver that died are gone: what they still do must not be done twice."""
    sweep(folder.root.absolute())
    fd = os.open(folder.processes_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    give_up_at = time.monotonic() + _ENDS_S
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise WaitError(
                        f"Processes of steps of run {folder.id} are still there {_ENDS_S:g} s after their driver died. "
                        f"End them (`fuser {folder.processes_lock}` names them), then resume.",
                        missing=["processes of steps"],
                    ) from None
                time.sleep(0.01)
            else:
                return
    finally:
        os.close(fd)


def _share(folder: RunFolder, exits: contextlib.ExitStack) -> None:
    """Copy the run to shared storage while it runs, if its project is shared."""
    if url := shared_url(folder.project):
        exits.callback(Uploader(folder, open_remote(url)).close)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
