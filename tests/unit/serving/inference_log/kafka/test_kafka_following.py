from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.core.settings import KAFKA_PROPERTIES as PROPERTIES
from cargobike.serving.inference_log.kafka.following import KafkaFollower
from cargobike.serving.inference_log.reading import read_log
from support.logged_requests import NOON, RECORDS, logging_to, take_some


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Return the address of a broker that librdkafka plays, as long as its client lives."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    (one,) = owner.list_topics(timeout=10).brokers.values()
    yield f"{one.host}:{one.port}"
    owner.flush(1)


def make_topic(cluster: str, topic: str) -> None:
    """Make a topic: the broker gives it four partitions."""
    found = Producer({"bootstrap.servers": cluster}).list_topics(topic, timeout=10)
    assert len(found.topics[topic].partitions) == 4


def read_all(follower: KafkaFollower, position: str = "", most: int = 1000) -> tuple[list[str], str, int]:
    ids: list[str] = []
    for calls in range(1, 1000):
        stretch = follower.read(position, most)
        ids += stretch.rows.column("request_id").to_pylist()
        position = stretch.position
        if not stretch.more:
            return ids, position, calls
    raise AssertionError("it does not end")


def test_rows_have_the_columns_of_files(cluster: str, tmp_path: Path) -> None:
    requests: list[tuple[str, Any, Any]] = [
        ("a", [{"age": 3, "town": "Oslo"}, {"age": 4}], [0.5, 0.25]),
        ("b", [{"age": "old", "town": "Rome"}], [1.0]),
        ("c", None, None),
    ]
    for kafka in ("", cluster):
        with logging_to(tmp_path, {1: RECORDS}, redact=("town",), kafka=kafka, topic=kafka and "same") as log:
            for number, (name, rows, answers) in enumerate(requests):
                log.take(name, NOON + number, 0.002, 1, 200, rows, answers)
    with closing(KafkaFollower(cluster, "same")) as follower:
        rows = follower.read("", 100).rows
    written = read_log("digits", project=ProjectFolder(tmp_path))
    assert rows.schema.equals(written.schema)
    assert rows.to_pylist() == written.to_pylist()
    assert rows.column("input.age").to_pylist() == [3, 4, None, None]


def test_every_row_comes_once_over_partitions_and_readers(cluster: str, tmp_path: Path) -> None:
    make_topic(cluster, "parts")
    with logging_to(tmp_path, kafka=cluster, topic="parts") as log:
        take_some(log, 500)
    with closing(KafkaFollower(cluster, "parts")) as follower:
        first = follower.read("", 120)
        assert 0 < first.rows.num_rows <= 124
        assert first.more
        assert len(json.loads(first.position)) == 4
    ids = first.rows.column("request_id").to_pylist()
    with closing(KafkaFollower(cluster, "parts")) as follower:
        more, position, calls = read_all(follower, first.position, 100)
        assert calls > 3
        assert sorted(ids + more) == sorted(f"r{number}" for number in range(500))
        assert follower.end() == position
        with logging_to(tmp_path, kafka=cluster, topic="parts") as log:
            take_some(log, 20, start=500)
        later, _, _ = read_all(follower, position)
        assert sorted(later) == sorted(f"r{number}" for number in range(500, 520))


def test_partitions_advance_together_so_that_rows_come_about_in_time(cluster: str, tmp_path: Path) -> None:
    make_topic(cluster, "pace")
    with logging_to(tmp_path, kafka=cluster, topic="pace") as log:
        take_some(log, 400)
    with closing(KafkaFollower(cluster, "pace")) as follower:
        stretch = follower.read("", 100)
    ats = stretch.rows.column("at").to_pylist()
    assert ats == sorted(ats)
    assert max(ats).timestamp() < NOON + 180, "no partition runs far ahead of the other"


def test_pieces_are_read_elsewhere_and_are_what_a_reader_alone_gets(cluster: str, tmp_path: Path) -> None:
    make_topic(cluster, "pieces")
    with logging_to(tmp_path, kafka=cluster, topic="pieces") as log:
        take_some(log, 100)
    with closing(KafkaFollower(cluster, "pieces")) as follower:
        position = follower.ahead("", 60)
        stretch = follower.read("", 60)
        assert position == stretch.position
        pieces = follower.pieces("", position)
        assert len(pieces) == 4
        for _ in range(2):  # a task that is run again gives the same rows
            tables = [log_keeper().read_piece(piece) for piece in pieces]
            ids = [name for table in tables for name in table.column("request_id").to_pylist()]
            assert sorted(ids) == sorted(stretch.rows.column("request_id").to_pylist())
        rest = follower.pieces(position, follower.end())
        assert sum(log_keeper().read_piece(piece).num_rows for piece in rest) == 100 - len(ids)
        assert follower.pieces(follower.end(), follower.ahead(follower.end(), 60)) == []


def test_a_topic_that_is_not_there_yet_is_empty(cluster: str, tmp_path: Path) -> None:
    with closing(KafkaFollower(cluster, "none-yet")) as follower:
        stretch = follower.read("", 10)
        assert (stretch.rows.num_rows, stretch.more) == (0, False)
        with logging_to(tmp_path, kafka=cluster, topic="none-yet") as log:
            take_some(log, 3)
        assert follower.read(stretch.position, 10).rows.num_rows == 3


def test_messages_of_others_are_left_out_and_counted(cluster: str, tmp_path: Path) -> None:
    make_topic(cluster, "mixed")
    producer = Producer({"bootstrap.servers": cluster})
    for value in (b"hello", b'{"request_id": 3}', b'{"a": [' * 50_000, None):
        producer.produce("mixed", value)
    assert producer.flush(10) == 0
    with logging_to(tmp_path, kafka=cluster, topic="mixed") as log:
        take_some(log, 2)
    said = {"request_id": "x", "at": 1, "latency_ms": 1, "model": "m", "version": 1, "status": 200, "answers": None}
    for strange in ({"rows": 3}, {"rows": None, "at": 1e300}, {"rows": None, "version": 2**31}):
        producer.produce("mixed", json.dumps({**said, **strange}).encode())
    producer.produce("mixed", json.dumps({**said, "rows": None}).encode(), headers=[("signature", b"[[")])
    assert producer.flush(10) == 0
    with closing(KafkaFollower(cluster, "mixed")) as follower:
        stretch = follower.read("", 100)
    assert stretch.rows.column("request_id").to_pylist() == ["r0", "r1"]
    assert (stretch.dropped, stretch.more) == (8, False)


def test_a_broker_that_is_gone_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.serving.inference_log.kafka.following._ASK_S", 0.3)
    with closing(KafkaFollower("127.0.0.1:1", "digits")) as follower:
        words = "The topic 'digits' of the broker 127.0.0.1:1 cannot be read now: .*stays there"
        with pytest.raises(StoreError, match=words):
            follower.read("", 10)


def test_positions_that_cannot_be_are_refused(cluster: str, tmp_path: Path) -> None:
    make_topic(cluster, "anew")
    with closing(KafkaFollower(cluster, "anew")) as follower:
        with pytest.raises(InvalidInputError, match="'2026-05-01' is no position in a topic of Kafka"):
            follower.read("2026-05-01", 10)
        with pytest.raises(StoreError, match=r"ends at 0 in partition 0, and was read up to 7 before.*made anew"):
            follower.read('{"0":7}', 10)
        with pytest.raises(StoreError, match="has no partition 4, of which messages were read before"):
            follower.read('{"0":0,"4":7}', 10)


def test_settings_of_the_client_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.pasword=sesame\n")
    monkeypatch.setenv(PROPERTIES, str(file))
    with pytest.raises(InvalidInputError, match=r"The broker '127.0.0.1:1' cannot be used: .*sasl.pasword") as caught:
        KafkaFollower("127.0.0.1:1", "digits")
    assert "sesame" not in str(caught.value)
