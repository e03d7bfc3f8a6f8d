"""Messages: what drivers, agents, templates, runners, file servers and parameter servers say to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Suggestion
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import messages as trial_messages
from cargobike.store.journal.lines import seal
from cargobike.testing.journals import first_fact
from cargobike.training.parameter_server import messages as server_messages
from cargobike.workers.files import requests
from cargobike.workers.wire import inner
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.link import Link
from faults.fuzzing.target import Target

_AT = 1.0


def message_targets() -> Iterator[Target]:
    """Yield the decoders of all messages, and a scheduler that acts on those of workers."""
    yield _decoder("from-worker", trial_messages.decode_from_worker, _from_worker(), weight=150)
    yield _decoder("for-runner", trial_messages.decode_for_runner, _for_runner(), weight=100)
    yield _decoder("wire", _decode_both_ways, _from_worker() + _for_runner(), weight=100)
    yield _decoder("inner", _decode_inner, _inner(), weight=100)
    yield _decoder("envelope", lambda data: Link().unpack(data), _envelopes(), weight=50)
    yield _decoder("agent-config", AgentConfig.decode, _configs(), weight=30)
    yield _decoder("file-request", requests.decode_request, _file_requests(), weight=60)
    yield _decoder("file-reply", requests.decode_reply, _file_replies(), weight=20)
    yield _decoder("server-request", server_messages.decode_request, _server_requests(), weight=60)
    yield _decoder("server-reply", server_messages.decode_reply, _server_replies(), weight=20)
    yield Target("scheduler", _schedule, _conversations(), "msgpack", allowed=wire.NoMessage, weight=60)


def _decoder(name: str, decode: Callable[[bytes], object], examples: tuple[Any, ...], *, weight: int) -> Target:
    packed = tuple(one if isinstance(one, bytes) else wire.encode_message(one) for one in examples)
    return Target(name, decode, packed, "msgpack", allowed=wire.NoMessage, weight=weight)


def _decode_both_ways(data: bytes) -> None:
    for decode in (wire.decode_worker_message, wire.decode_driver_message):
        try:
            decode(data)
        except wire.NoMessage:
            continue


def _decode_inner(data: bytes) -> None:
    for decode in (
        inner.decode_for_template,
        inner.decode_from_template,
        inner.decode_from_runner,
        inner.decode_for_runner,
    ):
        try:
            decode(data)
        except wire.NoMessage:
            continue


def _schedule(data: bytes) -> None:
    """Do with messages of a worker what a driver does: schedule, write facts, read them again."""
    scheduler = Scheduler(Plan(workers=1), ExperimentRecord(first_fact()))
    replayed = ExperimentRecord(first_fact())
    commands = scheduler.begin(_AT)
    worker = next(command.worker for command in commands if isinstance(command, ev.StartWorker))
    events: list[ev.Event] = [
        ev.WorkerArrived(at=_AT, worker=worker),
        ev.SuggestionMade(at=_AT, suggestion=Suggestion(params={"x": 1})),
    ]
    for item in msgspec.msgpack.decode(data, type=list[msgspec.Raw]):
        try:
            message = trial_messages.decode_from_worker(item)
        except wire.NoMessage:
            continue
        event = _event(worker, message)
        if event is not None:
            events.append(event)
    for event in events:
        for command in scheduler.handle(event):
            if isinstance(command, ev.Record):
                replayed.apply(EXPERIMENT_FACTS.decode(seal(command.fact)[:-1]))


def _event(worker: str, message: object) -> ev.Event | None:
    """Make an event of a message as the driver's loop does, field by field."""
    kinds: dict[type, type[ev.Event]] = {
        trial_messages.Point: ev.PointsReported,
        trial_messages.Saved: ev.CheckpointWritten,
        trial_messages.AttemptEnd: ev.AttemptEnded,
    }
    body = getattr(message, "body", None)
    kind = kinds.get(type(body))
    if kind is None or not isinstance(message, wire.Said | wire.Ended):
        return None
    fields = {name: getattr(body, name) for name in kind.__struct_fields__ if hasattr(body, name)}
    return kind(**{**fields, "at": _AT, "worker": worker, "trial": message.task, "attempt": message.attempt})


# -- examples --------------------------------------------------------------------------------------------------------


def _said(body: Any) -> wire.Said[Any]:
    return wire.Said(0, 1, body)


def _from_worker() -> tuple[Any, ...]:
    return (
        wire.Hello("w0", 7, "host", "3.11.7", "1.0", gpus=("0",)),
        wire.Beat(),
        _said(trial_messages.Point(3, {"score": 0.5, "loss": 1.5}, waits=True)),
        _said(trial_messages.Saved(3, "experiments/x/trials/0000/checkpoints/000001-step3", 100)),
        _said(trial_messages.Published("address", b"\x01\x02")),
        _said(trial_messages.Wanted("address", of="workers", at_once=True)),
        wire.Ended(0, 1, trial_messages.AttemptEnd("completed", 0.5, {"score": 0.5}, peak_memory_bytes=10)),
        wire.Ended(0, 1, trial_messages.AttemptEnd("failed", error="ValueError: x", alike="x"), failed=True),
        wire.Died(0, 1, -9, last_output="x", stack="y"),
        wire.Quiet(0, 1, 2.5),
        wire.Output(0, "stdout", b"hello\n"),
        wire.Bye(),
    )


def _for_runner() -> tuple[Any, ...]:
    member = trial_messages.Membership(index=0, roles=("worker", "server"), hosts=("a", "b"), secret=b"s" * 32)
    return (
        wire.Assign(0, 1, trial_messages.Assignment({"x": 1, "y": [1, "a"]}, 3, milestones=(1, 3), membership=member)),
        wire.Assign(
            0, 1, trial_messages.Assignment({}, 3, milestones="every"), 5.0, wire.Files(bring=("a",), follow="b")
        ),
        wire.Tell(0, 1, trial_messages.Verdict(3, "stop")),
        wire.Tell(0, 1, trial_messages.Gathered("address", [b"x", None])),
        wire.Halt(0, 1, 2.0, stack=True),
        wire.Release(),
        inner.Kept("a/b"),
        inner.Brought("a/b", "no"),
        inner.Leave(),
    )


def _inner() -> tuple[Any, ...]:
    return (
        inner.Start(msgspec.Raw(wire.encode_message(_for_runner()[0]))),
        inner.Kill(),
        inner.ShowStack(),
        inner.Import(["numpy"]),
        inner.CheckUnread(),
        inner.Exited(-9, 100, goes_on=False),
        inner.Imported(["numpy", "json"]),
        inner.Keep("a/b", alone=True),
        inner.Bring("a/b"),
        *_for_runner(),
    )


def _envelopes() -> tuple[bytes, ...]:
    link = Link()
    return (link.pack([]), link.pack([wire.encode_message(one) for one in _from_worker()[:4]]))


def _configs() -> tuple[bytes, ...]:
    config = AgentConfig(
        worker="w0",
        address="tcp://a:1",
        server_key=b"k" * 40,
        public_key=b"k" * 40,
        secret_key=b"k" * 40,
        folder="/a/b",
        project="/a",
        reuse=False,
    )
    return (config.encode(),)


def _file_requests() -> tuple[Any, ...]:
    path = "experiments/20270115-080000-test/trials/0000/checkpoints/.saving.0.1/state"
    return (
        requests.Put(1, path, 10, b"data"),
        requests.Put(2, path, link="elsewhere"),
        requests.Settle(3, path, "000001-step3", replaces=("000000-step1",)),
        requests.Listing(4, path),
        requests.Get(5, path, 3),
    )


def _file_replies() -> tuple[Any, ...]:
    return (requests.Reply(1, data=b"x", files=[requests.File("a", 3), requests.File("b", 0, "a")]),)


def _server_requests() -> tuple[Any, ...]:
    spec = server_messages.TensorSpec("weight", (2, 3), by_rows=True)
    return (
        server_messages.Hello("w0", 0),
        server_messages.Declare((spec,), server_messages.Rule(), server_messages.Terms(staleness=3)),
        server_messages.Pull(rows=(None, 3)),
        server_messages.Push(1, 2, codec="int8", rows=(1, 2), lr=0.1, pull=server_messages.Pull()),
        server_messages.Ask(),
        server_messages.Bye(),
    )


def _server_replies() -> tuple[Any, ...]:
    return (
        server_messages.Counts(True, 3),
        server_messages.Parameters(3),
        server_messages.Pushed(True, 3, 1),
        server_messages.Refused("malformed", "no"),
    )


def _conversations() -> tuple[bytes, ...]:
    said = [msgspec.Raw(wire.encode_message(one)) for one in _from_worker()]
    return tuple(msgspec.msgpack.encode(part) for part in (said[2:7], said[2:4] + said[7:8], said[:3]))
