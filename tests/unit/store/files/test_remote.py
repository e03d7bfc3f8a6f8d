"""Objects of a project on shared storage, on a file system that fsspec has in memory and on one with folders."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, MissingLibraryError, StoreError
from cargobike.experiments.kind import EXPERIMENTS
from cargobike.store.files.remote import ALIVE_S, Head, RemoteProject, Segment, patiently

ID = "20270101-000000-aaaa"
OTHER = "20270101-000000-bbbb"


@pytest.fixture(params=["memory", "file"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteProject:
    place = {"memory": f"memory://{tmp_path.name}-{id(request)}", "file": f"file://{tmp_path}/shared"}
    return RemoteProject(place[request.param])


def test_a_head_says_how_far_an_experiment_has_come(remote: RemoteProject) -> None:
    assert remote.heads(EXPERIMENTS) == {}
    assert remote.read_head(EXPERIMENTS, ID) is None
    remote.write_head(EXPERIMENTS, ID, 120, pid=7)
    head = remote.read_head(EXPERIMENTS, ID)
    assert head is not None
    assert (head.journal_bytes, head.pid, head.is_over, head.is_alive) == (120, 7, False, True)
    remote.write_head(EXPERIMENTS, ID, 240, is_over=True)
    over = remote.read_head(EXPERIMENTS, ID)
    assert over is not None
    assert over.is_over
    assert not over.is_alive
    assert over.revision != head.revision


def test_only_experiments_have_heads(remote: RemoteProject) -> None:
    remote.write_head(EXPERIMENTS, ID, 1)
    remote.write("heads/something-else", b"x")
    assert list(remote.heads(EXPERIMENTS)) == [ID]


def test_a_damaged_head_is_none(remote: RemoteProject) -> None:
    remote.write(f"heads/{ID}", b"{")
    assert remote.read_head(EXPERIMENTS, ID) is None


def test_a_driver_that_was_not_heard_of_for_long_does_not_run() -> None:
    assert Head(journal_bytes=1, at=time.time()).is_alive
    assert not Head(journal_bytes=1, at=time.time() - ALIVE_S - 1).is_alive


def test_segments_come_in_order_the_longer_ones_first(remote: RemoteProject) -> None:
    assert remote.segments(EXPERIMENTS, ID) == []
    for segment in (Segment(100, 200), Segment(0, 100), Segment(0, 200)):
        remote.write(f"experiments/{ID}/journal/{segment.name}", b"x")
    remote.write(f"experiments/{ID}/journal/notes.txt", b"x")
    assert remote.segments(EXPERIMENTS, ID) == [Segment(0, 200), Segment(0, 100), Segment(100, 200)]


def test_the_name_of_a_segment_leads_back_to_it() -> None:
    segment = Segment(5, 123456)
    assert Segment.parse(segment.name) == segment
    assert segment.name < Segment(6, 7).name
    assert [Segment.parse(name) for name in ("x.jsonl", "1-.jsonl", "-1-2.jsonl")] == [None, None, None]


def test_objects_are_read_whole_or_from_a_byte_on(remote: RemoteProject) -> None:
    remote.write("some/deep/object", b"0123456789")
    assert remote.read("some/deep/object") == b"0123456789"
    assert remote.read("some/deep/object", start=7) == b"789"
    assert remote.read("some/other") is None


def test_files_go_there_and_come_back(remote: RemoteProject, tmp_path: Path) -> None:
    here, back = tmp_path / "here", tmp_path / "back"
    names = [f"part/{number}" for number in range(70)]
    for name in names:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    remote.upload(here, [*names, "part/vanished"], f"experiments/{ID}")
    assert remote.download(f"experiments/{ID}", [*names, "part/none"], back) == names
    assert {path.name: path.read_text() for path in (back / "part").iterdir()} == {
        name.partition("/")[2]: name for name in names
    }, "nothing but the files, no remains of what was not there"


def test_what_is_deleted_is_gone_with_all_below_it(remote: RemoteProject) -> None:
    remote.write(f"experiments/{ID}/code/x", b"x")
    remote.write(f"experiments/{OTHER}/code/x", b"x")
    remote.delete(f"experiments/{ID}", "experiments/never-there")
    assert remote.read(f"experiments/{ID}/code/x") is None
    assert remote.read(f"experiments/{OTHER}/code/x") == b"x"


def test_a_damaged_list_of_files_is_said(remote: RemoteProject) -> None:
    assert remote.listing(EXPERIMENTS, ID) == {}
    remote.write(f"experiments/{ID}/files.json", b'{"a":[1,2]}')
    assert remote.listing(EXPERIMENTS, ID) == {"a": (1, 2)}
    remote.write(f"experiments/{ID}/files.json", b"{")
    with pytest.raises(StoreError, match=f"list of files of {ID} .* is damaged"):
        remote.listing(EXPERIMENTS, ID)


def test_failures_name_the_project_without_its_password(tmp_path: Path) -> None:
    with pytest.raises((InvalidInputError, MissingLibraryError)) as caught:
        RemoteProject("nonsense://me:hunter2@host/x")
    assert "hunter2" not in str(caught.value)
    remote = RemoteProject(f"file://{tmp_path}/shared")
    (tmp_path / "shared").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written to"):
        remote.write("heads/x", b"x")


def test_patience_has_an_end() -> None:
    calls: list[int] = []

    def at_the_third() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise StoreError("away")
        return 7

    assert patiently(at_the_third, time.monotonic() + 30) == 7
    calls.clear()
    with pytest.raises(StoreError, match="away"):
        patiently(at_the_third, time.monotonic())
    assert len(calls) == 1
