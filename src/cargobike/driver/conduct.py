"""Put an experiment together and run it to its end, leaving nothing behind whatever happens."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Literal

from cargobike.core.errors import CargobikeError
from cargobike.core.facts import ExperimentEnded, ExperimentStarted
from cargobike.core.ids import experiment_id
from cargobike.driver.conversation import Conversation
from cargobike.driver.dialogue import Dialogue
from cargobike.driver.display import Display, choose_display
from cargobike.driver.function import Train
from cargobike.driver.interrupt import InterruptWatch
from cargobike.driver.loop import Clock, Loop, Parts
from cargobike.driver.request import WORKER_PROGRAM, Request
from cargobike.driver.scheduler import Scheduler
from cargobike.driver.server import WireServer
from cargobike.driver.shipping import unsaved_sources
from cargobike.driver.staff import Staff
from cargobike.engines.engine import WorkerSpec
from cargobike.store.fold import ExperimentRecord
from cargobike.store.journal import JournalWriter
from cargobike.store.layout import ExperimentFolder
from cargobike.store.locking import DriverLock
from cargobike.worker.connection import AgentConfig
from cargobike.worker.payload import Payload


def conduct(request: Request) -> tuple[ExperimentRecord, ExperimentFolder]:
    """Run an experiment to its end; returns what its journal says, folded."""
    clock = Clock()
    interrupt = InterruptWatch()
    now = clock.now()
    payload = _payload(request)
    folder = request.project.experiment(experiment_id(now))
    folder.root.mkdir(parents=True)
    with contextlib.ExitStack() as exits:
        exits.enter_context(DriverLock(folder))
        journal = exits.enter_context(JournalWriter(folder.journal, durability=request.durability))
        header = _header(request, folder, now)
        journal.append([header])
        record = ExperimentRecord(header)
        display = choose_display(quiet=request.quiet)
        exits.callback(_close_display, display, clock)
        display.update([header])
        display.phase(_what_takes_time(request))
        server = WireServer()
        exits.callback(server.close)
        staff = Staff(request.engine, server, _spec_maker(request, server, folder, payload), request.patience)
        dialogue = Dialogue(
            request.optimizer, record.trials, allowed=request.names, stop_rules=request.stop_rules
        )
        conversation = Conversation(dialogue)
        exits.callback(conversation.close)
        scheduler = Scheduler(request.plan, record)
        loop = Loop(
            Parts(
                scheduler=scheduler,
                conversation=conversation,
                staff=staff,
                server=server,
                journal=journal,
                folder=folder,
                display=display,
                clock=clock,
                interrupt=interrupt,
                callbacks=(_CodeKeeper(request.train, folder, payload), *request.callbacks),
            )
        )
        try:
            loop.run()
        except BaseException as error:
            _close_record(record, journal, display, clock, error)
            raise
        conversation.finish()
    interrupt.pass_on()
    return record, folder


def _what_takes_time(request: Request) -> str:
    """Say what a user waits for before the first trial."""
    libraries = dict.fromkeys(name.partition(".")[0] for name in request.libraries)
    return f"starting workers (importing {', '.join(libraries)})" if libraries else "starting workers"


def _close_record(
    record: ExperimentRecord, journal: JournalWriter, display: Display, clock: Clock, error: BaseException
) -> None:
    """Write down that the driver gave up, if the journal can still be written to."""
    state: Literal["interrupted", "failed"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    fact = ExperimentEnded(at=clock.now(), state=state, reason=f"{type(error).__name__}: {error}")
    with contextlib.suppress(CargobikeError):
        journal.append([fact])
        record.apply(fact)
        display.update([fact])


def _close_display(display: Display, clock: Clock) -> None:
    display.close(clock.now())


def _payload(request: Request) -> bytes:
    train = request.train
    return Payload(
        function=request.function,
        sys_path=[os.path.abspath(path) for path in sys.path],
        launch_dir=os.getcwd(),
        preload=list(request.libraries),
        sources=unsaved_sources(),
        metric=request.metric,
        direction=request.direction,
        value_is_optional=request.params is not None,
        wants_reporter=train.wants_reporter,
        own_directory=request.own_directory,
    ).encode()


def _header(request: Request, folder: ExperimentFolder, now: float) -> ExperimentStarted:
    plan = request.plan
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return ExperimentStarted(
        at=now,
        id=folder.id,
        name=request.name or request.train.title.rpartition(":")[2],
        cargobike=request.version,
        description=request.description,
        function=request.train.title,
        space=request.space.describe(),
        params=request.params,
        optimizer=request.optimizer.name or type(request.optimizer).__name__,
        num_trials=plan.num_trials,
        direction=request.direction,
        metric=request.metric,
        seed=plan.seed,
        workers=plan.workers,
        gang=plan.gang,
        engine=request.engine.name,
        isolation=request.isolation,
        deterministic=plan.deterministic,
        user=user,
        host=socket.gethostname(),
        pid=os.getpid(),
    )


def _spec_maker(
    request: Request, server: WireServer, folder: ExperimentFolder, payload: bytes
) -> Callable[[str, tuple[bytes, bytes]], WorkerSpec]:
    def make(worker: str, keys: tuple[bytes, bytes]) -> WorkerSpec:
        config = AgentConfig(
            worker=worker,
            address=server.address,
            server_key=server.server_key,
            public_key=keys[0],
            secret_key=keys[1],
            experiment=str(folder.root.absolute()),
            project=str(request.project.root.absolute()),
            reuse=request.isolation == "reuse",
        )
        return WorkerSpec(
            name=worker,
            module=WORKER_PROGRAM,
            config=config.encode(),
            payload=payload,
            resources=request.resources,
            peers=request.plan.workers,
            version=request.version,
        )

    return make


class _CodeKeeper:
    """Keeps the code of an experiment in its folder, once its first trial is on its way."""

    def __init__(self, train: Train, folder: ExperimentFolder, payload: bytes) -> None:
        self._train = train
        self._folder = folder
        self._payload = payload
        self._kept = False

    def on_facts(self, facts: Sequence[object]) -> None:
        """Write the files when the first facts after the start come in."""
        if self._kept:
            return
        self._kept = True
        self._folder.code.mkdir(exist_ok=True)
        (self._folder.code / "payload.msgpack").write_bytes(self._payload)
        source = self._train.source()
        if source:
            (self._folder.code / "function.py").write_text(source, encoding="utf-8")
