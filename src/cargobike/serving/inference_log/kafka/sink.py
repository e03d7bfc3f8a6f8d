"""Keep requests in a topic of Kafka: one message of JSON for each, by the request's id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cargobike.core.errors import InvalidInputError
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.kafka.client import SIGNATURE, KafkaMessage, client_properties, words_of
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.sink import Counts, Entry
from cargobike.serving.inference_log.unpacking import entries_of

_WAIT_S: Final = 0.5
_log = logging.getLogger(__name__)


class KafkaSink:
    """Sends requests to a broker; the client's own queue holds what is not sent yet, and tries again for minutes."""

    def __init__(
        self,
        servers: str,
        topic: str,
        model: str,
        columns_of: Callable[[int], Columns],
        counts: Counts,
        **more: Any,
    ) -> None:
        self._topic = topic
        self._model = model
        self._columns_of = columns_of
        self._counts = counts
        self._encode = msgspec.json.Encoder(enc_hook=str).encode
        self._has_warned = False
        defaults = {
            "bootstrap.servers": servers,
            "client.id": "cargobike",
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 50,
            "queue.buffering.max.kbytes": 64 << 10,
            "error_cb": self._tell,
            "logger": _log,
        }
        try:
            self._producer = Producer({**defaults, **client_properties(), **more})
        except (KafkaException, ValueError, TypeError) as error:
            raise InvalidInputError(f"The broker {servers!r} cannot be used: {words_of(error)}") from error

    def put(self, entries: Sequence[Entry]) -> None:
        """Give requests to the client; what finds no room there is lost."""
        for entry in entries:
            try:
                columns = self._columns_of(entry[3])
                value = self._encode(self._message(entry, columns))
                self._send(entry[0], value, columns)
            except BufferError:
                self._counts.lost += 1
            except Exception:  # noqa: BLE001 - serving goes on without a log
                self._counts.lost += 1
                _log.exception("A request cannot be logged.")
        self._producer.poll(0)

    def put_packed(self, requests: Requests) -> None:
        """Give requests to the client as messages of their own."""
        self.put(entries_of(requests))

    def _message(self, entry: Entry, columns: Columns) -> KafkaMessage:
        request_id, at, latency_s, version, status, rows, answers = entry
        rows, answers = columns.redacted(rows, answers)
        return KafkaMessage(request_id, at, latency_s * 1e3, self._model, version, status, rows, answers)

    def _send(self, key: str, value: bytes, columns: Columns) -> None:
        # Compressed together, equal headers take next to nothing; readers need them to make the columns of files.
        headers: list[tuple[str, str | bytes | None]] = [(SIGNATURE, columns.described)]
        try:
            self._producer.produce(self._topic, value, key.encode(), on_delivery=self._sent, headers=headers)
        except BufferError:
            self._producer.poll(_WAIT_S)  # makes room, if the broker takes anything
            self._producer.produce(self._topic, value, key.encode(), on_delivery=self._sent, headers=headers)

    def _sent(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._counts.written += 1
            self._has_warned = False
        else:
            self._counts.lost += 1

    def _tell(self, error: KafkaError) -> None:
        self._counts.failures += 1
        if not self._has_warned:
            self._has_warned = True
            _log.warning("The broker of the inference log fails, and is tried again: %s", error.str())

    def flush(self) -> bool:
        """Send what there is; returns whether all of it has arrived."""
        return self._producer.flush(_WAIT_S) == 0

    def tend(self) -> None:
        """Do nothing: the broker looks after its topics."""

    def close(self) -> None:
        """Give up what has not arrived."""
        if len(self._producer):
            self._producer.purge()
            self._producer.flush(_WAIT_S)
