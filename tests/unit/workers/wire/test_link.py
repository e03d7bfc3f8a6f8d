"""A link delivers each message once and in order, however often the connection is cut."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.workers.wire.link import Link
from cargobike.workers.wire.messages import NoMessage


def numbers(messages: list[msgspec.Raw]) -> list[int]:
    return [msgspec.msgpack.decode(message, type=int) for message in messages]


@given(st.lists(st.sampled_from(["send", "lose", "answer", "reconnect"]), max_size=60))
def test_nothing_is_lost_or_repeated(steps: list[str]) -> None:
    here, there = Link(), Link()
    sent, arrived = 0, list[int]()
    for step in [*steps, "reconnect"]:
        if step in {"send", "lose"}:
            packet = here.pack([msgspec.msgpack.encode(sent)])
            sent += 1
            if step == "send":
                arrived += numbers(there.unpack(packet))
        elif step == "answer":
            here.unpack(there.pack([]))
        else:
            for packet in here.unacknowledged():
                arrived += numbers(there.unpack(packet))
    assert arrived == list(range(sent))
    here.unpack(there.pack([]))
    assert here.in_flight == 0


def test_an_acknowledgement_carries_no_message() -> None:
    here, there = Link(), Link()
    assert there.unpack(here.pack([])) == []
    assert here.in_flight == 0


@pytest.mark.parametrize("data", [b"", b"\x00", b"nonsense", msgspec.msgpack.encode([1, 2]), b"\x93" * 10_000])
def test_what_is_not_an_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(NoMessage):
        Link().unpack(data)
