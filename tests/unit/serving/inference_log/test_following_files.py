from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.core.signatures import Field, Signature
from cargobike.serving.inference_log import upkeep
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.file_sink import FileSink
from cargobike.serving.inference_log.following_files import FileFollower
from cargobike.serving.inference_log.pieces import Pieces
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.sink import Counts
from cargobike.serving.inference_log.upkeep import tidy
from cargobike.store.files.storages import open_storage
from support.logged_requests import NOON, VECTORS, Faulty, logging_to, take_some

FOLDER = log_folder("digits")
OTHERS = Signature((Field("x", "BYTES"),), (Field("score", "FP64"),))
DAY_S = 86_400


def sink_at(project: Path, counts: Counts | None = None) -> FileSink:
    def columns_of(version: int) -> Columns:
        return Columns("digits", version, OTHERS if version == 3 else VECTORS)

    return FileSink(open_storage(project), FOLDER, columns_of, counts or Counts())


def put(sink: FileSink, names: list[str], at: float, version: int = 1) -> None:
    row: Any = "a text" if version == 3 else [1, 2, 3]
    sink.put([(name, at, 0.0, version, 200, [row], [0.5]) for name in names])
    assert sink.flush()


def read_all(follower: FileFollower, position: str = "", most: int = 1000) -> tuple[list[str], str]:
    names: list[str] = []
    while True:
        stretch = follower.read(position, most)
        names += stretch.rows["request_id"].to_pylist()
        position = stretch.position
        if not stretch.more:
            return names, position


class Reader:
    """Reads, and keeps the position with what it read, unless it is killed before."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.at = 0.0
        self.position = ""
        self.names: list[str] = []
        self.start()

    def start(self) -> None:
        self.follower = FileFollower(open_storage(self.project), FOLDER, lambda: self.at)

    def read(self, most: int, *, is_killed: bool = False) -> bool:
        stretch = self.follower.read(self.position, most)
        if is_killed:
            self.start()
            return True
        self.names += stretch.rows["request_id"].to_pylist()
        self.position = stretch.position
        return stretch.more


@pytest.fixture(scope="module", autouse=True)
def no_grace() -> Iterator[None]:
    """Delete files as soon as others stand for them, so that a reader meets that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "GRACE_S", -1.0)
        yield


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(1, 3), st.sampled_from((-3, -1, 0, 0, 1))),
        st.tuples(st.just("restart a writer"), st.integers(0, 2)),
        st.tuples(st.just("merge"), st.booleans()),
        st.tuples(st.just("killed while merging"), st.integers(0, 9)),
        st.tuples(st.just("read"), st.integers(1, 6)),
        st.tuples(st.just("killed while reading"), st.integers(1, 6)),
        st.tuples(st.just("wait"), st.sampled_from((1, 61))),
    ),
    max_size=30,
)


@given(steps)
@settings(max_examples=40, deadline=None)
def test_every_row_comes_once_whatever_happens_between(schedule: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        sinks = [sink_at(project) for _ in range(3)]
        reader = Reader(project)
        written: list[str] = []
        for number, (what, *how) in enumerate(schedule):
            if what == "write":
                names = [f"{number}.{turn}" for turn in range(1 + number % 3)]
                put(sinks[how[0]], names, time.time() + how[2] * DAY_S, how[1])
                written += names
            elif what == "restart a writer":
                sinks[how[0]] = sink_at(project)
            elif what == "merge":
                tidy(open_storage(project), FOLDER, whole=how[0])
            elif what == "killed while merging":
                storage = Faulty(open_storage(project))
                storage.fails_at = how[0]
                with contextlib.suppress(StoreError):
                    tidy(storage, FOLDER, whole=True)
            elif what == "wait":
                reader.at += how[0]
            else:
                reader.read(how[0], is_killed=what == "killed while reading")
        reader.at += 100
        while reader.read(4):
            pass
        assert sorted(reader.names) == sorted(written)
        assert read_all(FileFollower(open_storage(project), FOLDER), reader.position)[0] == []
        assert len(reader.position) < 60 + 40 * len(schedule)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12), st.integers(0, 3)), max_size=20))
@settings(max_examples=100, deadline=None)
def test_runs_of_numbers_are_a_set(added: list[tuple[str, int, int]]) -> None:
    pieces, numbers = Pieces({}), set[tuple[str, int]]()
    for writer, first, more in added:
        pieces.add(writer, first, first + more)
        numbers |= {(writer, number) for number in range(first, first + more + 1)}
    assert {(writer, number) for writer in "ab" for number in range(20) if pieces.has(writer, number)} == numbers
    for runs in pieces.runs.values():
        assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(runs)), "runs that touch are one"
    assert pieces.holds(pieces.copy())
    larger = pieces.copy()
    larger.add("c", 1, 1)
    assert larger.holds(pieces)
    assert not pieces.holds(larger)


def test_a_position_stays_small_and_forgets_what_was_deleted(tmp_path: Path) -> None:
    sink = sink_at(tmp_path)
    for number in range(60):
        put(sink, [f"r{number}"], NOON + number)
    names, position = read_all(FileFollower(open_storage(tmp_path), FOLDER))
    assert names == [f"r{number}" for number in range(60)], "in the order of time"
    assert len(position) < 60, "one run"
    tidy(open_storage(tmp_path), FOLDER, keep_days=1)
    put(sink_at(tmp_path), ["new"], time.time())
    names, after = read_all(FileFollower(open_storage(tmp_path), FOLDER), position)
    assert names == ["new"]
    assert len(after) < 60, "the writer whose files are gone is left out"


def test_versions_whose_types_do_not_fit_come_one_after_the_other(tmp_path: Path) -> None:
    sink = sink_at(tmp_path)
    for number, version in enumerate((1, 3, 2, 1)):
        put(sink, [f"r{number}"], NOON + number, version)
    follower = FileFollower(open_storage(tmp_path), FOLDER)
    first = follower.read("", 100)
    assert first.rows["request_id"].to_pylist() == ["r0"]
    assert first.more
    names, _ = read_all(follower, first.position)
    assert names == ["r1", "r2", "r3"]


def test_what_could_not_be_kept_is_counted_once_also_in_merged_files(tmp_path: Path) -> None:
    counts = Counts()
    sink = sink_at(tmp_path, counts)
    for number in range(4):
        counts.lost += 2
        put(sink, [f"r{number}"], NOON + number)
    follower = FileFollower(open_storage(tmp_path), FOLDER)
    first = follower.read("", 1)
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    second = follower.read(first.position, 100)
    assert (first.dropped, second.dropped, second.rows.num_rows) == (2, 6, 3)


def test_only_what_comes_is_read_from_the_end_on(tmp_path: Path) -> None:
    sink = sink_at(tmp_path)
    for number in range(4):
        put(sink, [f"r{number}"], NOON + number)
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    put(sink, ["before"], NOON)
    follower = FileFollower(open_storage(tmp_path), FOLDER)
    end = follower.end()
    put(sink, ["late"], NOON - 5 * DAY_S)
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    assert read_all(follower, end)[0] == ["late"]


def test_a_log_is_found_by_the_name_of_its_deployment(tmp_path: Path) -> None:
    with logging_to(tmp_path) as log:
        take_some(log, 5)
    follower = log_keeper().follow("digits", ProjectFolder(tmp_path))
    stretch = follower.read("", 100)
    assert pc.sum(stretch.rows["output.score"]).as_py() == 5.0
    assert stretch.rows.column_names[:7] == ["request_id", "at", "latency_ms", "model", "version", "status", "row"]
    follower.close()
    with pytest.raises(NotFoundError, match="no deployment 'digit'"):
        log_keeper().follow("digit", ProjectFolder(tmp_path))


def test_positions_and_files_that_are_none_are_refused(tmp_path: Path) -> None:
    put(sink_at(tmp_path), ["one"], NOON)
    follower = FileFollower(open_storage(tmp_path), FOLDER)
    with pytest.raises(InvalidInputError, match="no position in an inference log in files"):
        follower.read('{"topic": 1}', 10)
    (file,) = (tmp_path / FOLDER).rglob("*.parquet")
    file.write_bytes(b"PAR1 but no more")
    with pytest.raises(StoreError, match=r"is damaged, move it away to go on"):
        follower.read("", 10)


def test_a_storage_that_is_gone_is_said_and_nothing_is_skipped(tmp_path: Path) -> None:
    put(sink_at(tmp_path), ["one"], datetime.now(UTC).timestamp())
    storage = Faulty(open_storage(tmp_path))
    follower = FileFollower(storage, FOLDER)
    storage.is_gone = True
    with pytest.raises(StoreError, match="gone"):
        follower.read("", 10)
    storage.is_gone = False
    assert read_all(follower)[0] == ["one"]


def test_pieces_are_read_elsewhere_also_where_files_were_merged_meanwhile(tmp_path: Path) -> None:
    for start in range(0, 60, 10):
        with logging_to(tmp_path) as log:
            take_some(log, 10, start=start)
    storage = open_storage(str(tmp_path))
    follower = FileFollower(storage, log_folder("digits"))
    first = follower.ahead("", 1)
    assert [log_keeper().read_piece(piece).num_rows for piece in follower.pieces("", first)] == [10]
    end = follower.end()
    pieces = follower.pieces(first, end)
    assert len(pieces) == 5
    before = [log_keeper().read_piece(piece).column("request_id").to_pylist() for piece in pieces]
    alone = follower.read(first, 1000).rows.column("request_id").to_pylist()
    assert [name for some in before for name in some] == alone
    tidy(storage, log_folder("digits"), whole=True)
    for file in [file for file in (tmp_path / log_folder("digits")).rglob("*.parquet") if "merged" not in file.parts]:
        file.unlink()
    assert [log_keeper().read_piece(piece).column("request_id").to_pylist() for piece in pieces] == before
    (again,) = follower.pieces(first, end)
    assert sorted(log_keeper().read_piece(again).column("request_id").to_pylist()) == sorted(alone)
    assert follower.pieces(end, follower.ahead(end, 100)) == []
    for file in (tmp_path / log_folder("digits")).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StoreError, match="has lost rows before they were read"):
        log_keeper().read_piece(pieces[0])
