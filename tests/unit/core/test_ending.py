"""How a worker ended, for programs and for people."""

from __future__ import annotations

import msgspec
import pytest

from cargobike.core.facts import WorkerJoined, WorkerLost
from cargobike.core.running.ending import Ending, EndKind, process_ending


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (0, EndKind.LEFT, "exited with code 0"),
        (3, EndKind.CRASHED, "exited with code 3"),
        (-9, EndKind.KILLED, "was ended by SIGKILL"),
        (-99, EndKind.KILLED, "was ended by signal 99"),
    ],
)
def test_an_exit_code_says_how_a_process_ended(code: int, kind: EndKind, text: str) -> None:
    ending = process_ending(code)
    assert ending == Ending(kind, text)
    assert str(ending) == text


def test_it_travels() -> None:
    ending = Ending(EndKind.SILENT, "it has been silent for 3 s")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ending), type=Ending) == ending


def test_facts_that_were_written_before_have_neither_role_nor_cause() -> None:
    joined = msgspec.json.decode(b'{"fact":"worker-joined","at":1.0,"worker":"s0"}', type=WorkerJoined)
    lost = msgspec.json.decode(b'{"fact":"worker-lost","at":1.0,"worker":"s0","reason":"died"}', type=WorkerLost)
    assert joined.role == "worker"
    assert lost.cause is None
