"""Follow an inference log in a topic of Kafka: offsets of partitions are the position, kept by the reader itself.

No consumer group is joined and nothing is committed to the broker: a position that lies beside what was made of the
rows cannot disagree with it, whoever is killed when.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.registering.following import Stretch
from cargobike.core.signatures import Signature
from cargobike.serving.inference_log.columns import HEAD, Columns
from cargobike.serving.inference_log.kafka.client import SIGNATURE, KafkaMessage, client_properties, words_of
from cargobike.serving.inference_log.sink import Entry

_ASK_S: Final = 10.0
"""How long the broker may take to say where partitions begin and end."""
_SILENCE_S: Final = 20.0
"""How long it may say nothing while messages are read."""
_POLL_S: Final = 0.1
_AT_ONCE: Final = 2000
_LONGEST_SIGNATURE: Final = 1 << 20

_log = logging.getLogger(__name__)
_client_log = _log.getChild("client")
_client_log.setLevel(logging.CRITICAL)  # it tells of each try to connect; what fails for good is raised


class Range(msgspec.Struct, frozen=True, array_like=True):
    """Messages of one partition: from an offset up to, and without, another."""

    partition: int
    start: int
    end: int


class KafkaPiece(msgspec.Struct, frozen=True, tag="kafka"):
    """Messages that any process can read."""

    servers: str
    topic: str
    ranges: list[Range]


class _Bounds(NamedTuple):
    low: int
    high: int


class KafkaFollower:
    """Reads a topic; made, used and closed by one thread.

    Every message comes once, in the order of its partition; partitions are read at the same pace, and the rows of a
    stretch are in the order of their times. Messages that are none of an inference log are left out and counted.

    Args:
        servers: `host:port`, several with commas.
        topic: The topic.
        silence_s: After which time without an answer a read fails.
        more: Further settings of the client.
    """

    def __init__(self, servers: str, topic: str, *, silence_s: float = _SILENCE_S, **more: Any) -> None:
        self._servers = servers
        self._topic = topic
        self._silence_s = silence_s
        self._columns: dict[tuple[str, int, bytes], Columns] = {}
        self._decode = msgspec.json.Decoder(KafkaMessage).decode
        self._has_warned = False
        defaults = {
            "bootstrap.servers": servers,
            "client.id": "cargobike",
            "group.id": "cargobike",  # wanted by the client, and never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "queued.max.messages.kbytes": 64 << 10,
            "logger": _client_log,
        }
        try:
            self._consumer = Consumer({**defaults, **client_properties(), **more})
        except (KafkaException, ValueError, TypeError) as error:
            raise InvalidInputError(f"The broker {servers!r} cannot be used: {words_of(error)}") from error

    def read(self, position: str, most: int) -> Stretch:
        """Return the next rows; one row for each row of a request."""
        wanted, dropped, _ = self._wanted(position, most)
        table, reached, unread = self._fetch(wanted)
        offsets = {**_offsets(position), **reached}
        ends = {one.partition: one.end for one in wanted}
        is_short = any(reached[number] < end for number, end in ends.items())
        more = is_short or any(self._bounds_now[number].high > offset for number, offset in offsets.items())
        return Stretch(table, _as_text(offsets), more, dropped + unread)

    def ahead(self, position: str, most: int) -> str:
        """Return the position behind the next rows, without reading them."""
        return _as_text(self._wanted(position, most)[2])

    def pieces(self, start: str, end: str) -> list[bytes]:
        """Return what lies between two positions, a piece for each partition."""
        starts = _offsets(start)
        ranges = [Range(number, starts.get(number, 0), offset) for number, offset in _offsets(end).items()]
        return [
            msgspec.json.encode(KafkaPiece(self._servers, self._topic, [one])) for one in ranges if one.end > one.start
        ]

    def end(self) -> str:
        """Return the position behind everything that is there now."""
        return _as_text({number: bounds.high for number, bounds in self._bounds().items()})

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def fetch(self, ranges: Sequence[Range]) -> pa.Table:
        """Return the rows of messages, all of them.

        Raises:
            StoreError: If the broker does not answer.
        """
        table, reached, _ = self._fetch(ranges)
        missing = [one for one in ranges if reached[one.partition] < one.end]
        if missing:
            raise StoreError(f"{self._shown} did not give all messages that it has: {missing} are missing.")
        return table

    @property
    def _shown(self) -> str:
        return f"The topic {self._topic!r} of the broker {self._servers}"

    def _wanted(self, position: str, most: int) -> tuple[list[Range], int, dict[int, int]]:
        """Return what to read next, how many messages are gone already, and where that ends."""
        offsets, dropped = _offsets(position), 0
        self._bounds_now = bounds = self._bounds()
        if lost := sorted(offsets.keys() - bounds.keys()):
            raise StoreError(f"{self._shown} has no partition {lost[0]}, of which messages were read before.")
        starts: dict[int, int] = {}
        for number, (low, high) in bounds.items():
            start = offsets.get(number, low)
            if start > high:
                raise StoreError(
                    f"{self._shown} ends at {high} in partition {number}, and was read up to {start} before. Either "
                    "the broker has not recovered yet, or the topic was deleted and made anew: then watch it anew too."
                )
            if start < low:
                _log.warning("%s has deleted %d messages before they were read.", self._shown, low - start)
                dropped += low - start
            starts[number] = max(start, low)
        there = {number: bounds[number].high - start for number, start in starts.items()}
        share = min(1.0, most / max(1, sum(there.values())))
        ends = {
            number: start + (there[number] if share == 1.0 else min(there[number], max(1, int(share * there[number]))))
            for number, start in starts.items()
        }
        wanted = [Range(number, starts[number], end) for number, end in ends.items() if end > starts[number]]
        return wanted, dropped, ends

    def _bounds(self) -> dict[int, _Bounds]:
        """Return where each partition begins and ends now; empty if there is no such topic yet."""
        try:
            known = self._consumer.list_topics(self._topic, timeout=_ASK_S).topics[self._topic]
            if known.error is not None:
                if known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return {}
                raise KafkaException(known.error)
            return {number: self._bounds_of(number) for number in sorted(known.partitions)}
        except KafkaException as error:
            raise StoreError(
                f"{self._shown} cannot be read now: {words_of(error)}. What is sent meanwhile stays there."
            ) from error

    def _bounds_of(self, number: int) -> _Bounds:
        found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=_ASK_S)
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"partition {number} does not say where it ends"))
        return _Bounds(max(found[0], 0), max(found[1], 0))

    def _fetch(self, ranges: Sequence[Range]) -> tuple[pa.Table, dict[int, int], int]:
        """Return rows, the offset that each partition was read up to, and how many messages are no requests."""
        reached = {one.partition: one.start for one in ranges}
        ends = {one.partition: one.end for one in ranges}
        entries: list[tuple[Columns, Entry]] = []
        unread = 0
        if ranges:
            self._consumer.assign([TopicPartition(self._topic, one.partition, one.start) for one in ranges])
        heard_at = time.monotonic()
        try:
            while any(reached[number] < end for number, end in ends.items()):
                messages = self._consumer.consume(_AT_ONCE, _POLL_S)
                if messages:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > self._silence_s:
                    if entries:
                        break  # what came counts; the next read says what is wrong
                    raise StoreError(f"{self._shown} has not answered for {self._silence_s:g} s; it is asked again.")
                unread += self._take(messages, reached, ends, entries)
        except KafkaException as error:
            raise StoreError(f"{self._shown} cannot be read now: {words_of(error)}.") from error
        finally:
            if ranges:
                self._consumer.unassign()
        return _as_table(entries), reached, unread

    def _take(
        self,
        messages: Iterable[Message],
        reached: dict[int, int],
        ends: Mapping[int, int],
        entries: list[tuple[Columns, Entry]],
    ) -> int:
        unread = 0
        for message in messages:
            number, offset = message.partition(), message.offset()
            error = message.error()
            if number is None or offset is None:
                continue
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    reached[number] = ends[number]  # the last offsets may hold no messages, only marks of transactions
                elif not error.retriable():
                    raise KafkaException(error)
                continue
            if not reached[number] <= offset < ends[number]:
                continue
            entry = self._entry(message)
            if entry is None:
                unread += 1
            else:
                entries.append(entry)
            reached[number] = offset + 1
        return unread

    def _entry(self, message: Message) -> tuple[Columns, Entry] | None:
        try:
            said = self._decode(message.value() or b"")
            signature = dict(message.headers() or ()).get(SIGNATURE) or b"null"
            columns = self._columns_of(said, signature.encode() if isinstance(signature, str) else signature)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            if not self._has_warned:
                self._has_warned = True
                _log.warning("%s holds messages that are no requests, which are left out: %s", self._shown, error)
            return None
        latency_s = said.latency_ms / 1e3
        return columns, (said.request_id, said.at, latency_s, said.version, said.status, said.rows, said.answers)

    def _columns_of(self, said: KafkaMessage, signature: bytes) -> Columns:
        key = (said.model, said.version, signature)
        columns = self._columns.get(key)
        if columns is None:
            if len(signature) > _LONGEST_SIGNATURE:
                raise ValueError("a signature that is too long")
            read = msgspec.json.decode(signature, type=Signature | None)
            columns = self._columns[key] = Columns(said.model, said.version, read)
        return columns


def read_piece(piece: bytes) -> pa.Table:
    """Return the rows of one piece, in any process that reaches the broker.

    Raises:
        StoreError: If the broker does not answer.
    """
    read = msgspec.json.decode(piece, type=KafkaPiece)
    follower = KafkaFollower(read.servers, read.topic)
    try:
        return follower.fetch(read.ranges)
    finally:
        follower.close()


def _as_table(entries: Sequence[tuple[Columns, Entry]]) -> pa.Table:
    by_columns: dict[int, tuple[Columns, list[Entry]]] = {}
    for columns, entry in entries:
        by_columns.setdefault(id(columns), (columns, []))[1].append(entry)
    tables = [pa.schema(HEAD).empty_table()]
    for columns, some in by_columns.values():
        step = columns.rows_at_once
        tables += [
            pa.Table.from_batches([columns.batch(some[start : start + step])]) for start in range(0, len(some), step)
        ]
    try:
        table = pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"Versions in this log have fields of the same name and other types ({error})."
        ) from error
    return table.sort_by([(name, "ascending") for name in ("at", "request_id", "row")])


def _offsets(position: str) -> dict[int, int]:
    if not position:
        return {}
    try:
        return {number: max(offset, 0) for number, offset in msgspec.json.decode(position, type=dict[int, int]).items()}
    except msgspec.MsgspecError as error:
        raise InvalidInputError(f"{position!r} is no position in a topic of Kafka: {error}.") from error


def _as_text(offsets: Mapping[int, int]) -> str:
    return msgspec.json.encode({str(number): offsets[number] for number in sorted(offsets)}).decode()
