from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.registering.following import Stretch
from cargobike.serving.inference_log.kafka.following import KafkaFollower
from support.kafka_gateway import KafkaGateway
from support.logged_requests import logging_to, take_some
from support.seaweed_server import SeaweedServer

pytestmark = pytest.mark.slow


@pytest.fixture
def gateway(seaweed: SeaweedServer, tmp_path: Path) -> Iterator[KafkaGateway]:
    server = KafkaGateway(seaweed, tmp_path)
    yield server
    server.close()


def test_a_broker_that_is_gone_for_a_while_costs_neither_writer_nor_reader_a_row(
    gateway: KafkaGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cargobike.serving.inference_log.kafka.following._ASK_S", 2.0)
    client = tmp_path / "client.properties"
    client.write_text("enable.idempotence=false\n")  # which this broker does not know
    monkeypatch.setenv("CARGOBIKE_KAFKA_PROPERTIES", str(client))
    gateway.make_topic("lost", 2)
    with closing(KafkaFollower(gateway.servers, "lost", silence_s=2.0)) as follower:
        with logging_to(tmp_path, kafka=gateway.servers, topic="lost") as log:
            take_some(log, 60)
        first = read_patiently(follower, "", 25)
        ids = first.rows.column("request_id").to_pylist()
        assert 0 < len(ids) < 60
        gateway.pause()
        with pytest.raises(StoreError, match=f"'lost' of the broker {gateway.servers}"):
            follower.read(first.position, 100)
        with logging_to(tmp_path, kafka=gateway.servers, topic="lost") as log:
            take_some(log, 40, start=60)
            gateway.go_on()
            give_up_at = time.monotonic() + 60
            while log.counts.written < 40 and time.monotonic() < give_up_at:
                time.sleep(0.05)
            assert (log.counts.written, log.counts.lost) == (40, 0)
        position = first.position
        for _ in range(20):
            stretch = read_patiently(follower, position, 1000)
            position = stretch.position
            ids += stretch.rows.column("request_id").to_pylist()
            if not stretch.more and len(ids) >= 100:
                break
        assert follower.end() == position
    assert sorted(ids) == sorted(f"r{number}" for number in range(100))


def read_patiently(follower: KafkaFollower, position: str, most: int) -> Stretch:
    """Read as one who waits for a broker does."""
    for left in reversed(range(15)):
        try:
            return follower.read(position, most)
        except StoreError:
            if not left:
                raise
    raise AssertionError("unreachable")
