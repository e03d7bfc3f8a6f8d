"""Put an experiment together and run it to its end; however it ends, nothing is left behind."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentEnded, ExperimentStarted
from cargobike.core.ids import experiment_id
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Resources
from cargobike.core.running.member import Role
from cargobike.engines.capabilities import Elsewhere
from cargobike.engines.engine import WorkerSpec
from cargobike.experiments.display.display import Display, choose_display
from cargobike.experiments.driving.interrupt import InterruptWatch
from cargobike.experiments.driving.keeping import CodeKeeper
from cargobike.experiments.driving.loop import Clock, Loop, Parts
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.driving.request import Callback, Request
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.replay import Replay
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial.messages import FromWorker, decode_from_worker
from cargobike.store.files.locking import DriverLock
from cargobike.store.journal.journal import JournalWriter, read_journal
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.server import WireServer

if TYPE_CHECKING:
    from cargobike.experiments.tensorboard.server import TensorboardKeeper

_WITHOUT_GPU = Resources(gpus=0)  # what a parameter server gets


def conduct(request: Request) -> tuple[ExperimentRecord, ExperimentFolder]:
    """Run a new experiment to its end; returns its record, folded from its journal, and its folder."""
    clock = Clock()
    folder = request.project.experiment(experiment_id(clock.now()))
    folder.root.mkdir(parents=True)
    with contextlib.ExitStack() as exits:
        exits.enter_context(DriverLock(folder))
        _share(folder, exits)
        journal = exits.enter_context(JournalWriter(folder.journal, durability=request.asked.keeping.durability))
        header = _header(request, folder, clock.now())
        journal.append([header])
        record = ExperimentRecord(header)
        session = _session(request, record)
        scheduler = Scheduler(request.plan, record)
        keeper = _keeper(request, folder)
        exits.callback(keeper.close)
        stage = _Stage(request, folder, journal, clock, (keeper,))
        _run(stage, scheduler, session, exits)
    return record, folder


def take_up(request: Request, folder: ExperimentFolder) -> ExperimentRecord:
    """Continue an experiment from the end of its journal, and run it to its end."""
    clock = Clock()
    with contextlib.ExitStack() as exits:
        exits.enter_context(DriverLock(folder))
        _share(folder, exits)
        folder.stop_request.unlink(missing_ok=True)
        header, *past = read_journal(folder.journal, EXPERIMENT_FACTS)
        assert isinstance(header, ExperimentStarted)
        journal = exits.enter_context(JournalWriter(folder.journal, durability=request.asked.keeping.durability))
        record = ExperimentRecord(header)
        session = _session(request, record)
        replay = Replay(request.plan, record, session)
        replay.run(past)
        scheduler = Scheduler(request.plan, record)
        scheduler.take_up(replay, clock.now())
        keepers: tuple[CodeKeeper, ...] = ()
        if not folder.snapshot.exists():
            keeper = CodeKeeper(folder, {}, remark="the snapshot was taken when the experiment was taken up again")
            exits.callback(keeper.close)
            keepers = (keeper,)
        stage = _Stage(request, folder, journal, clock, keepers)
        _run(stage, scheduler, session, exits)
    return record


class _Stage(msgspec.Struct, frozen=True):
    """What a new experiment and a resumed one have in common when they begin to run."""

    request: Request
    folder: ExperimentFolder
    journal: JournalWriter
    clock: Clock
    callbacks: tuple[Callback, ...]


def _run(
    stage: _Stage,
    scheduler: Scheduler,
    session: OptimizerSession,
    exits: contextlib.ExitStack,
) -> None:
    request, clock, journal = stage.request, stage.clock, stage.journal
    interrupt = InterruptWatch()
    display = choose_display(scheduler.record, quiet=request.quiet)
    exits.callback(_close_display, display, clock)
    display.phase(_what_takes_time(request))
    elsewhere = request.engine if isinstance(request.engine, Elsewhere) else None
    server = WireServer(decode_from_worker, elsewhere.listening if elsewhere else None)
    exits.callback(server.close)
    callbacks = [*stage.callbacks, *request.callbacks]
    if request.asked.keeping.tensorboard:
        board = _board(stage.folder, display)
        exits.callback(board.close)
        callbacks.append(board)
    travel = _serve_files(request, elsewhere, server, stage.folder, exits) if elsewhere else NO_TRAVEL
    make_spec = _spec_maker(request, server, stage.folder, travel)
    optimizer_thread = OptimizerThread(session)
    exits.callback(optimizer_thread.close)
    loop = Loop(
        Parts(
            scheduler=scheduler,
            optimizer_thread=optimizer_thread,
            pool=WorkerPool(request.engine, server, make_spec, request.patience),
            server=server,
            journal=journal,
            folder=stage.folder,
            display=display,
            clock=clock,
            files_travel=bool(travel.address),
            interrupt=interrupt,
            callbacks=callbacks,
        )
    )
    try:
        loop.run()
    except BaseException as error:
        _close_record(scheduler.record, journal, display, clock, error)
        raise
    optimizer_thread.finish()
    exits.callback(interrupt.pass_on)


def _share(folder: ExperimentFolder, exits: contextlib.ExitStack) -> None:
    """Copy the experiment to shared storage while it runs, if its project is shared."""
    project = folder.project
    if project.remote_url.exists():
        from cargobike.store.files.remote import open_remote  # noqa: PLC0415 - only for shared storage
        from cargobike.store.files.uploading import Uploader  # noqa: PLC0415

        remote = open_remote(project.remote_url.read_text("utf-8").strip())
        exits.callback(Uploader(folder, remote).close)


def _board(folder: ExperimentFolder, display: Display) -> TensorboardKeeper:
    from cargobike.experiments.tensorboard.server import TensorboardKeeper  # noqa: PLC0415 - only if one is wanted

    return TensorboardKeeper(folder, display.phase)


class _Travel(msgspec.Struct, frozen=True):
    """How the files of trials travel to and from workers that do not see the project's disk."""

    address: str = ""
    marker: str = ""


NO_TRAVEL = _Travel()


def _serve_files(
    request: Request,
    engine: Elsewhere,
    server: WireServer[FromWorker],
    folder: ExperimentFolder,
    exits: contextlib.ExitStack,
) -> _Travel:
    """Serve the project to workers that do not see its disk: they find no marker in the experiment's folder."""
    # Not needed for workers on the driver's own machine, which see its disk: every import delays their first trial.
    from cargobike.experiments.driving.file_server import FileServer  # noqa: PLC0415

    listening = engine.listening
    port = listening.port + 2 if listening.port else 0
    router, address = server.open_router(msgspec.structs.replace(listening, port=port))
    exits.callback(FileServer(router, request.project, folder).close)
    marker = f".seen-{os.urandom(8).hex()}"
    if engine.may_share_disk:
        (folder.root / marker).touch()
        exits.callback((folder.root / marker).unlink, missing_ok=True)
    return _Travel(address, marker)


def _session(request: Request, record: ExperimentRecord) -> OptimizerSession:
    return OptimizerSession(
        request.optimizer,
        record.trials,
        allowed=request.names,
        stop_rules=request.stop_rules,
        start_points=request.start_points,
    )


def _what_takes_time(request: Request) -> str:
    """Say what the user has to wait for before the first trial."""
    libraries = dict.fromkeys(name.partition(".")[0] for name in request.libraries)
    return f"starting workers (importing {', '.join(libraries)})" if libraries else "starting workers"


def _close_record(
    record: ExperimentRecord, journal: JournalWriter, display: Display, clock: Clock, error: BaseException
) -> None:
    """Record that the driver gave up, if the journal can still be written to."""
    state: Literal["interrupted", "failed"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    fact = ExperimentEnded(at=clock.now(), state=state, reason=f"{type(error).__name__}: {error}")
    with contextlib.suppress(CargobikeError):
        journal.append([fact])
        record.apply(fact)
        display.update([fact])


def _close_display(display: Display, clock: Clock) -> None:
    display.close(clock.now())


def _keeper(request: Request, folder: ExperimentFolder) -> CodeKeeper:
    code = request.code
    files = {folder.payload.name: request.payload, folder.function.name: code.source, **code.files}
    return CodeKeeper(folder, files, function_file=code.function_file, resources=code.resources)


def _header(request: Request, folder: ExperimentFolder, now: float) -> ExperimentStarted:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return ExperimentStarted(
        at=now,
        id=folder.id,
        asked=request.asked,
        cargobike=request.version,
        user=user,
        host=socket.gethostname(),
        pid=os.getpid(),
    )


def _spec_maker(
    request: Request, server: WireServer[FromWorker], folder: ExperimentFolder, travel: _Travel
) -> Callable[[str, Role, tuple[bytes, bytes]], WorkerSpec]:
    def make(worker: str, role: Role, keys: tuple[bytes, bytes]) -> WorkerSpec:
        config = AgentConfig(
            worker=worker,
            address=server.address,
            server_key=server.server_key,
            public_key=keys[0],
            secret_key=keys[1],
            folder=str(folder.root.absolute()),
            project=str(request.project.root.absolute()),
            reuse=request.asked.placement.isolation == "reuse",
            driver_silence_s=request.engine.driver_silence_s if isinstance(request.engine, Elsewhere) else None,
            files_address=travel.address,
            marker=travel.marker,
        )
        return WorkerSpec(
            name=worker,
            module=WORKER_PROGRAM,
            config=config.encode(),
            payload=request.payload,
            role=role,
            resources=_WITHOUT_GPU if role is Role.SERVER else request.asked.placement.resources,
            peers=request.plan.workers,
            version=request.version,
            libraries=request.libraries,
        )

    return make
