from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cargobike.core.errors import InvalidInputError
from cargobike.core.settings import KAFKA_PROPERTIES as PROPERTIES
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.kafka.sink import KafkaSink
from cargobike.serving.inference_log.sink import Counts
from support.logged_requests import NOON, RECORDS, VECTORS, logging_to, take_some


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Return the address of a broker that librdkafka plays, as long as its client lives."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    metadata = owner.list_topics(timeout=10)
    (one,) = metadata.brokers.values()
    yield f"{one.host}:{one.port}"
    owner.flush(1)


def received(broker: str, topic: str, count: int) -> list[dict[str, object]]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test", "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    messages: list[dict[str, object]] = []
    for _ in range(100):
        messages += [json.loads(one.value() or b"") for one in consumer.consume(count, timeout=0.3)]
        if len(messages) >= count:
            break
    consumer.close()
    return messages


def test_requests_arrive_as_messages(broker: str, tmp_path: Path) -> None:
    with logging_to(tmp_path, kafka=broker, topic="requests") as log:
        take_some(log, 50)
    messages = received(broker, "requests", 50)
    assert {message["request_id"] for message in messages} == {f"r{number}" for number in range(50)}
    (one,) = [message for message in messages if message["request_id"] == "r7"]
    assert one == {
        "request_id": "r7",
        "at": NOON + 7,
        "latency_ms": 2.0,
        "model": "digits",
        "version": 1,
        "status": 200,
        "rows": [[7.0, 0.5, -1.0]],
        "answers": [3.5],
    }
    assert (log.counts.taken, log.counts.written, log.counts.dropped) == (50, 50, 0)
    assert not list(tmp_path.iterdir()), "no files are written"


def test_the_topic_is_the_deployments_name_and_fields_are_redacted(broker: str, tmp_path: Path) -> None:
    with logging_to(tmp_path, {1: RECORDS}, kafka=broker, redact=("town",)) as log:
        log.take("a", NOON, 0.001, 1, 200, [{"age": 3, "town": "sesame"}], [0.5])
    (message,) = received(broker, "digits", 1)
    assert message["rows"] == [{"age": 3}]


def test_a_broker_that_is_gone_fails_no_request_and_what_is_lost_is_counted(tmp_path: Path) -> None:
    counts = Counts()
    sink = KafkaSink(
        "127.0.0.1:1",
        "digits",
        "digits",
        lambda version: Columns("digits", version, VECTORS),
        counts,
        **{"queue.buffering.max.messages": 20, "reconnect.backoff.ms": 10},
    )
    with logging_to(tmp_path, sink=sink) as log:
        take_some(log, 22)
        log.close(within_s=0.1)
    assert counts.lost == 22
    assert counts.written == 0
    assert counts.failures >= 1


def test_what_the_client_does_not_know_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# who we are\nsasl.username = team\nsasl.pasword=sesame\n")
    monkeypatch.setenv(PROPERTIES, str(file))
    words = r"The broker '127.0.0.1:1' cannot be used: .*sasl.pasword"
    with pytest.raises(InvalidInputError, match=words) as caught, logging_to(tmp_path, kafka="127.0.0.1:1"):
        pass
    assert "sesame" not in str(caught.value)
    monkeypatch.setenv(PROPERTIES, str(tmp_path / "none"))
    words = rf"{PROPERTIES} names .*none, which cannot be read"
    with pytest.raises(InvalidInputError, match=words), logging_to(tmp_path, kafka="127.0.0.1:1"):
        pass
