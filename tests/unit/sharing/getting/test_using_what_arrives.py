"""What comes is used while it arrives, kept by the project, sent to a storage or to Kafka; servers give it, too."""

from __future__ import annotations

import datetime
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer

from cargobike import data, features, models
from cargobike import project as projects
from cargobike.core.errors import InvalidInputError, UntrustedError, WaitError
from cargobike.core.registering.tracing import Thing
from cargobike.sharing.getting import from_web
from cargobike.sharing.getting.front import get
from cargobike.sharing.getting.kafka import stream
from cargobike.sharing.getting.placing import everything_got, got_edges
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.publishing.sources import open_content
from support.swarm import PIECE, Seeder, fill, lab, project_at, publish, read_folder, seeding

ROWS = 40_000


@pytest.fixture
def getter(tmp_path: Path) -> Iterator[Path]:
    projects.use(tmp_path / "getter")
    yield project_at(tmp_path / "getter").root
    projects.use(None)


@pytest.fixture
def seeder(tmp_path: Path) -> Iterator[Seeder]:
    with seeding(tmp_path / "seed") as seeder:
        yield seeder


def write_rows(folder: Path) -> None:
    """Two files of Parquet with several row groups each, each of several pieces."""
    folder.mkdir()
    for number in range(2):
        begin = number * ROWS // 2
        values = list(range(begin, begin + ROWS // 2))
        table = pa.table({"x": values, "text": [f"{value * 7919 % 10007} {value}" for value in values]})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=ROWS // 10, compression="none")


def begin(seeder: Seeder, **options: Any) -> Any:
    return get("higgs", network=lab(), peers=[seeder.address], quiet=True, **{"timeout_s": 20.0, **options})


class _Gate(Holdings):
    """Holdings that give the beginning of each file and its last piece, and the rest when they are told to."""

    is_open = False

    def __init__(self, holdings: Holdings) -> None:
        self.__dict__ = holdings.__dict__

    def read(self, root: str, piece_size: int, number: int) -> bytes | bytearray | None:
        last = len(self.layer(root, piece_size) or b"") // 32 - 1
        return super().read(root, piece_size, number) if _Gate.is_open or number in (0, 1, last - 1, last) else None


@pytest.mark.usefixtures("getter")
def test_a_loader_begins_before_everything_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "source")
    with seeding(tmp_path / "seed", wrap=_Gate) as seeder:
        publish(seeder.membership, tmp_path / "source", kind="table")
        with begin(seeder, to=tmp_path / "to", in_order=True, wait=False) as arrival:
            source = arrival.source()
            assert source.num_rows == ROWS
            assert source.read(0).column("x").to_pylist() == list(range(ROWS // 10))
            assert arrival.progress.size_had < arrival.progress.size
            monkeypatch.setattr(_Gate, "is_open", True)
            loader = data.Loader(arrival, batch_size=1000, shuffle=False)
            seen = [value for batch in loader for value in batch["x"].tolist()]
            arrival.wait(20)
    assert seen == list(range(ROWS))


@pytest.mark.usefixtures("getter")
def test_rows_that_are_waited_for_come_first_and_a_wait_has_an_end(tmp_path: Path, seeder: Seeder) -> None:
    write_rows(tmp_path / "source")
    publish(seeder.membership, tmp_path / "source", kind="table")
    seeder.giving.is_paused = True
    with begin(seeder, to=tmp_path / "to", wait=False, timeout_s=0.5) as arrival:
        with pytest.raises(WaitError, match=r"Nothing of higgs@.* came for 0\.5 s"):
            arrival.read("part-1.parquet", 0, 10)
        with pytest.raises(WaitError, match="Nothing of higgs"):
            data.Loader(arrival, batch_size=10)
        with pytest.raises(LookupError, match=r"has no file 'part-7\.parquet'\. Did you mean 'part-"):
            arrival.read("part-7.parquet", 0, 10)


def test_the_project_keeps_rows_as_a_table_with_origin_and_licence(
    tmp_path: Path, seeder: Seeder, getter: Path
) -> None:
    write_rows(tmp_path / "source")
    manifest = publish(seeder.membership, tmp_path / "source", kind="table")
    arrival = begin(seeder)
    table = data.open("higgs")
    assert arrival.result.version == table.version == 1
    assert table.read().column("x").to_pylist() == list(range(ROWS))
    (got,) = everything_got(project_at(getter))
    assert (got.reference, got.license) == (manifest.reference, "CC-BY-4.0")
    (edge,) = got_edges(project_at(getter))
    assert edge.made == Thing("table", "higgs", "1")
    assert edge.source.kind == "publication"
    assert edge.detail == "network lab, licence CC-BY-4.0"


def test_the_parts_of_a_training_dataset_stay_apart(tmp_path: Path, seeder: Seeder, getter: Path) -> None:
    projects.use(seeder.membership.project.root)
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    group = features.create_group("teams", key="team_id", event_time="at")
    group.insert(pa.table({"team_id": range(20), "at": days[:1] * 20, "budget": [0.5] * 20}))
    view = features.create_view("value", features=["teams.budget"], label="value")
    labels = pa.table({"team_id": range(20), "at": days[1:] * 20, "value": [1.0] * 20})
    view.create_training_dataset("value", labels, split={"train": 0.8, "test": 0.2}, seed=7)
    content = open_content("dataset:value", seeder.membership.project)
    assert content.num_rows == 20
    publish(seeder.membership, Path(content.place), name="value", kind="dataset")
    projects.use(getter)
    get("value", network=lab(), peers=[seeder.address], quiet=True, timeout_s=20.0)
    teams = {part: set(data.open(f"value-{part}").read()["team_id"].to_pylist()) for part in ("train", "test")}
    assert (len(teams["train"]), len(teams["test"])) == (16, 4)
    assert not teams["train"] & teams["test"]
    assert {edge.made.name for edge in got_edges(project_at(getter))} == {"value-train", "value-test"}


def triple(rows: list[Any]) -> list[Any]:
    return [3 * row for row in rows]


def test_a_model_is_the_same_model_there_and_not_trusted(tmp_path: Path, seeder: Seeder, getter: Path) -> None:
    projects.use(seeder.membership.project.root)
    models.register("digits", triple, metrics={"accuracy": 0.9}, example=[1.0])
    folder = Path(open_content("model:digits:1", seeder.membership.project).place)
    publish(seeder.membership, folder, name="digits", kind="model")
    projects.use(getter)
    arrival = get("digits", network=lab(), peers=[seeder.address], quiet=True, timeout_s=20.0)
    version = models.get("digits:1")
    assert isinstance(arrival.result, models.ModelVersion)
    assert arrival.result.reference == version.reference
    assert (version.metrics, version.flavour) == ({"accuracy": 0.9}, "python")
    with pytest.raises(UntrustedError):
        version.predictor()
    assert version.predictor(trust=True)([2.0]) == [6.0]
    (edge,) = got_edges(project_at(getter))
    assert edge.made == Thing("model", "digits", "1")


class _Ranges(http.server.BaseHTTPRequestHandler):
    """Serves ranges of files below a folder; `spoil` changes what is sent."""

    protocol_version = "HTTP/1.1"
    folder: Path
    spoil: Callable[[bytes], bytes] = staticmethod(lambda data: data)

    def do_GET(self) -> None:
        path = self.folder / unquote(self.path.lstrip("/"))
        if not path.is_file():
            self.send_error(404)
            return
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        data = self.spoil(path.read_bytes()[first : last + 1])
        self.send_response(206)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Callable[..., str]]:
    servers = []

    def start(spoil: Callable[[bytes], bytes] = lambda data: data) -> str:
        handler = type("Handler", (_Ranges,), {"folder": tmp_path / "source", "spoil": staticmethod(spoil)})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.usefixtures("getter")
def test_servers_deliver_when_members_give_nothing_and_one_that_lies_is_dropped(
    tmp_path: Path, seeder: Seeder, web: Callable[..., str]
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 6 * PIECE, "sub/b c.txt": 100})
    liar = web(lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    publish(seeder.membership, tmp_path / "source", web_seeds=(liar, web()))
    seeder.giving.is_paused = True
    with pytest.raises(WaitError, match="Nothing of higgs"):
        begin(seeder, to=tmp_path / "to", timeout_s=1.0)  # servers that a stranger names are not asked
    arrival = begin(seeder, to=tmp_path / "to", web_seeds=True)
    assert read_folder(tmp_path / "to") == contents
    assert any(words.startswith(liar) for words in arrival.progress.dropped)


@pytest.mark.usefixtures("getter")
def test_a_server_alone_is_enough_once_records_are_here(
    tmp_path: Path, seeder: Seeder, web: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_web, "_MEMBERS_FIRST_S", 0.0)
    contents = fill(tmp_path / "source", {"a.bin": 3 * PIECE + 5, "b.bin": PIECE})
    publish(seeder.membership, tmp_path / "source", web_seeds=(web(),))
    seeder.membership.holdings.forget(tmp_path / "source")
    begin(seeder, to=tmp_path / "to", web_seeds=True)
    assert read_folder(tmp_path / "to") == contents


def test_rows_stream_into_kafka_as_they_come(tmp_path: Path, seeder: Seeder, getter: Path) -> None:
    write_rows(tmp_path / "source")
    publish(seeder.membership, tmp_path / "source", kind="table")
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    servers = next(iter(owner.list_topics(timeout=10).brokers.values()))
    address = f"{servers.host}:{servers.port}"
    with begin(seeder, to=tmp_path / "to", in_order=True, wait=False) as arrival:
        assert arrival.to_kafka(address, "higgs") == ROWS
    consumer = Consumer({"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["higgs"])
    seen = 0
    try:
        while seen < ROWS:
            messages = consumer.consume(5000, timeout=20)
            assert messages
            seen += sum(message.error() is None for message in messages)
    finally:
        consumer.close()
    with pytest.raises(InvalidInputError, match="cannot be used"):
        stream(arrival, address, "higgs", nonsense="x")
