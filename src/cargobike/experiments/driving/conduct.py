"""Put an experiment together and run it to its end; however it ends, nothing is left behind."""

from __future__ import annotations

import contextlib
import getpass
import itertools
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.facts import ExperimentEnded, ExperimentStarted
from cargobike.core.ids import experiment_id
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Resources
from cargobike.core.registering.steps import step_token
from cargobike.core.running.descriptors import enough_descriptors
from cargobike.core.running.forks import end_copy
from cargobike.core.running.member import Role
from cargobike.engines.capabilities import Elsewhere, HandsDown
from cargobike.engines.engine import WorkerSpec
from cargobike.experiments.display.display import Display, choose_display
from cargobike.experiments.driving.clock import Clock
from cargobike.experiments.driving.feeding import IndexFeeder
from cargobike.experiments.driving.interrupt import InterruptWatch
from cargobike.experiments.driving.keeping import CodeKeeper, KeptModels
from cargobike.experiments.driving.loop import Loop, Parts
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.driving.request import Callback, Herald, Request
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.reading import facts_from, journal_reader
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.replay import Replay
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial.messages import FromWorker, decode_from_worker
from cargobike.store.files.locking import DriverLock
from cargobike.store.files.shared import shared_url
from cargobike.store.journal.journal import JournalWriter
from cargobike.workers.wire.pairs import PairServer
from cargobike.workers.wire.ways import AgentConfig, DriverEnd, Ticket

if TYPE_CHECKING:
    from cargobike.experiments.driving.file_server import FileServer
    from cargobike.experiments.tensorboard.server import TensorboardKeeper
    from cargobike.workers.wire.server import WireServer

_WITHOUT_GPU = Resources(gpus=0)  # what a parameter server gets


def conduct(request: Request) -> tuple[ExperimentRecord, ExperimentFolder]:
    """Run a new experiment to its end; returns its record, folded from its journal, and its folder."""
    clock = Clock()
    folder = ExperimentFolder(request.project.experiment(experiment_id(clock.now())).root.absolute())
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
        registrar = KeptModels(folder, record)
        exits.callback(registrar.close)  # after the snapshot, which models refer to
        keeper = _keeper(request, folder)
        exits.callback(keeper.close)
        herald = Herald(header, request.callbacks)
        stage = _Stage(request, folder, journal, clock, scheduler, session, (keeper, registrar, herald))
        _run(stage, exits)
    return record, folder


def take_up(request: Request, folder: ExperimentFolder) -> ExperimentRecord:
    """Continue an experiment from the end of its journal, and run it to its end."""
    from cargobike.experiments.driving.served_files import sweep_trials  # noqa: PLC0415 - not for new ones

    clock = Clock()
    folder = ExperimentFolder(folder.root.absolute())
    with contextlib.ExitStack() as exits:
        exits.enter_context(DriverLock(folder))
        _share(folder, exits)
        folder.stop_request.unlink(missing_ok=True)
        sweep_trials(folder)
        reader = journal_reader(folder)
        past = facts_from(reader)
        record = fold(itertools.islice(past, 1))
        session = _session(request, record)
        replay = Replay(request.plan, record, session)
        replay.run(past)
        durability = request.asked.keeping.durability
        journal = exits.enter_context(JournalWriter(folder.journal, durability=durability, start_at=reader.offset))
        _refuse_fewer(request.plan.num_trials, record)
        if request.new_space is not None:
            session.change_space(*request.new_space)
        scheduler = Scheduler(request.plan, record)
        scheduler.take_up(replay, clock.now(), request.new_space)
        registrar = KeptModels(folder, record)
        exits.callback(registrar.close)
        keepers: tuple[Callback, ...] = (registrar,)
        if not folder.snapshot.exists():
            keeper = CodeKeeper(folder, {}, remark="the snapshot was taken when the experiment was taken up again")
            exits.callback(keeper.close)
            keepers = (keeper, registrar)
        stage = _Stage(request, folder, journal, clock, scheduler, session, keepers)
        _run(stage, exits)
    return record


def _refuse_fewer(num_trials: int | None, record: ExperimentRecord) -> None:
    """Refuse to go on with an experiment up to a number of trials that it has passed already."""
    if num_trials is not None and num_trials < len(record.trials):
        raise InvalidInputError(
            f"num_trials={num_trials} was given, but {record.id} has {len(record.trials)} trials already, "
            f"and they count; give at least {len(record.trials)}, or leave it out."
        )


class _Stage(msgspec.Struct, frozen=True):
    """What a new experiment and a resumed one have in common when they begin to run."""

    request: Request
    folder: ExperimentFolder
    journal: JournalWriter
    clock: Clock
    scheduler: Scheduler
    session: OptimizerSession
    callbacks: tuple[Callback, ...]


def _run(stage: _Stage, exits: contextlib.ExitStack) -> None:
    request, clock, journal = stage.request, stage.clock, stage.journal
    record = stage.scheduler.record
    display = choose_display(record, quiet=request.quiet, plain=request.in_process)
    exits.callback(_close_display, display, clock)
    feeder = IndexFeeder(stage.folder)
    exits.callback(feeder.close)
    callbacks = [*stage.callbacks, feeder, *request.callbacks]
    if request.asked.keeping.tensorboard:
        board = _board(stage.folder, display)
        exits.callback(board.close)
        callbacks.append(board)
    put_together = _in_process if request.in_process else _with_workers
    loop, finish = put_together(stage, display, callbacks, exits)
    me = os.getpid()
    try:
        loop.run()
    except BaseException as error:
        if os.getpid() != me:
            end_copy(error)  # a callback or an optimizer forked it: nothing here is its own
        _close_record(record, journal, display, clock, error)
        raise
    finish()


class _Runs(Protocol):
    """What runs an experiment to its end."""

    def run(self) -> None:
        """Run it."""


_PutTogether = tuple[_Runs, Callable[[], None]]


def _with_workers(
    stage: _Stage,
    display: Display,
    callbacks: Sequence[Callback],
    exits: contextlib.ExitStack,
) -> _PutTogether:
    """Return the loop that runs trials on workers, and what to do after it."""
    request = stage.request
    exits.enter_context(enough_descriptors())
    interrupt = InterruptWatch()
    display.phase(_what_takes_time(request))
    elsewhere = request.engine if isinstance(request.engine, Elsewhere) else None
    server: DriverEnd[FromWorker]
    travel = _Travel()
    if elsewhere is None and isinstance(request.engine, HandsDown):
        server = PairServer(decode_from_worker)
        exits.callback(server.close)
    else:
        # Not for workers on this machine: every import delays their first trial.
        from cargobike.workers.wire.server import WireServer  # noqa: PLC0415

        server = open_server = WireServer(decode_from_worker, elsewhere.listening if elsewhere else None)
        exits.callback(server.close)
        if elsewhere:
            travel = _serve_files(request, elsewhere, open_server, stage.folder, exits)
    make_spec = _spec_maker(request, stage.folder, travel)
    optimizer_thread = OptimizerThread(stage.session)
    exits.callback(optimizer_thread.close)
    loop = Loop(
        Parts(
            scheduler=stage.scheduler,
            optimizer_thread=optimizer_thread,
            pool=WorkerPool(request.engine, server, make_spec, request.patience),
            server=server,
            journal=stage.journal,
            folder=stage.folder,
            display=display,
            clock=stage.clock,
            file_server=travel.server,
            interrupt=interrupt,
            callbacks=callbacks,
        )
    )

    def finish() -> None:
        optimizer_thread.finish()
        exits.callback(interrupt.pass_on)

    return loop, finish


def _in_process(
    stage: _Stage,
    display: Display,
    callbacks: Sequence[Callback],
    _: contextlib.ExitStack,
) -> _PutTogether:
    """Return the loop that runs trials in this process, and what to do after it."""
    # Only for `workers=0`: all others would wait longer for their first trial.
    from cargobike.experiments.driving.in_process import HereParts, InProcess  # noqa: PLC0415

    parts = HereParts(
        scheduler=stage.scheduler,
        session=stage.session,
        payload=stage.request.payload,
        function=stage.request.function,
        journal=stage.journal,
        folder=stage.folder,
        display=display,
        clock=stage.clock,
        callbacks=callbacks,
    )
    return InProcess(parts), stage.session.finish


def _share(folder: ExperimentFolder, exits: contextlib.ExitStack) -> None:
    """Copy the experiment to shared storage while it runs, if its project is shared."""
    project = folder.project
    if url := shared_url(project):
        from cargobike.store.files.remote import open_remote  # noqa: PLC0415 - only for shared storage
        from cargobike.store.files.uploading import Uploader  # noqa: PLC0415

        remote = open_remote(url)
        exits.callback(Uploader(folder, remote).close)


def _board(folder: ExperimentFolder, display: Display) -> TensorboardKeeper:
    from cargobike.experiments.tensorboard.server import TensorboardKeeper  # noqa: PLC0415 - only if one is wanted

    return TensorboardKeeper(folder, display.phase)


class _Travel(msgspec.Struct, frozen=True):
    """How the files of trials travel to and from workers that do not see the project's disk."""

    server: FileServer | None = None
    address: str = ""
    marker: str = ""


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
    from cargobike.workers.files.requests import MOST_BYTES  # noqa: PLC0415

    listening = engine.listening
    port = listening.port + 2 if listening.port else 0
    router, address = server.open_router(msgspec.structs.replace(listening, port=port), most_bytes=MOST_BYTES)
    file_server = FileServer(router, request.project, folder)
    exits.callback(file_server.close)
    marker = f".seen-{os.urandom(8).hex()}"
    if engine.may_share_disk:
        (folder.root / marker).touch()
        exits.callback((folder.root / marker).unlink, missing_ok=True)
    return _Travel(file_server, address, marker)


def _session(request: Request, record: ExperimentRecord) -> OptimizerSession:
    return OptimizerSession(
        request.optimizer,
        record.runs,
        allowed=request.names,
        stop_rules=request.stop_rules,
        start_points=request.start_points,
        settings=record.trials,
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
        step=step_token(),
    )


def _spec_maker(
    request: Request, folder: ExperimentFolder, travel: _Travel
) -> Callable[[str, Role, Ticket], WorkerSpec]:
    def make(worker: str, role: Role, ticket: Ticket) -> WorkerSpec:
        config = AgentConfig(
            worker=worker,
            address=ticket.address,
            server_key=ticket.server_key,
            public_key=ticket.public_key,
            secret_key=ticket.secret_key,
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
            descriptor=ticket.descriptor,
        )

    return make
