"""Stream the rows of a publication into a topic of Kafka while they arrive: one message of JSON for each, in order."""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, StoreError, WaitError
from cargobike.core.values.properties import read_properties

_log = logging.getLogger(__name__)
_ROOM_S: Final = 0.5
_FLUSH_S: Final = 5.0


class Rows(Protocol):
    """What has rows: an `Arrival`, for example."""

    def source(self) -> Any:
        """Return the rows in groups, which are read one by one, and may have to be waited for."""


def stream(rows: Rows, servers: str, topic: str, *, timeout_s: float = 60.0, **more: Any) -> int:
    """Send every row to a topic, in order, and return how many were sent when the broker has all of them.

    Args:
        rows: What arrives.
        servers: Where the broker is: `host:port`, or several.
        topic: The topic.
        timeout_s: For how long the broker may take nothing.
        more: Settings of the client, besides those in the file that the environment names.

    Raises:
        InvalidInputError: If the client cannot use these settings.
        WaitError: If the broker takes nothing for too long, or rows do not come.
        StoreError: If the broker refuses a row.
    """
    refused: list[str] = []

    def told(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error.str())

    defaults = {"bootstrap.servers": servers, "client.id": "cargobike", "enable.idempotence": True, "linger.ms": 20}
    own = read_properties(settings.kafka_properties(), settings.KAFKA_PROPERTIES)
    try:
        producer = Producer({**defaults, "logger": _log, **own, **more})
    except (KafkaException, ValueError, TypeError) as error:
        raise InvalidInputError(f"The broker {servers!r} cannot be used: {error}") from error
    source, encode, count = rows.source(), msgspec.json.Encoder(enc_hook=str).encode, 0
    try:
        for group in range(len(source.groups)):
            for row in source.read(group).to_pylist():
                _produce(producer, topic, encode(row), told, timeout_s)
                count += 1
            if refused:
                raise StoreError(f"The broker refuses rows for {topic!r}: {refused[0]}")
        _flush(producer, topic, timeout_s)
    finally:
        source.close()
        producer.purge()
        producer.flush(_ROOM_S)
    if refused:
        raise StoreError(f"The broker refuses rows for {topic!r}: {refused[0]}")
    return count


def _produce(producer: Producer, topic: str, value: bytes, told: Any, timeout_s: float) -> None:
    waited_s = 0.0
    while True:
        try:
            producer.produce(topic, value, on_delivery=told)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(_ROOM_S)  # makes room, if the broker takes anything
            waited_s += _ROOM_S
            if waited_s > timeout_s:
                raise _silent(topic, timeout_s) from None


def _flush(producer: Producer, topic: str, timeout_s: float) -> None:
    before, waited_s = len(producer), 0.0
    while left := producer.flush(_FLUSH_S):
        waited_s = 0.0 if left < before else waited_s + _FLUSH_S
        before = left
        if waited_s > timeout_s:
            raise _silent(topic, timeout_s)


def _silent(topic: str, timeout_s: float) -> WaitError:
    return WaitError(f"The broker took nothing for the topic {topic!r} for {timeout_s:g} s.", missing=["the broker"])
