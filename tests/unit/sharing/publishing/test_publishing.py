"""What is published is what the source holds, after it was said what becomes visible."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike import data, models, project, sharing
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.sharing.front import open_catalogue, publish_draft
from cargobike.sharing.publishing.draft import Draft, make_draft
from cargobike.sharing.publishing.visible import Said, size_words
from cargobike.sharing.records import Manifest, RecordError
from cargobike.store.files.project import prepare


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    project.use(tmp_path / "project")
    yield tmp_path
    project.use(None)


def manifest_of(entry: sharing.Entry) -> Manifest:
    with open_catalogue("lab") as catalogue:
        return catalogue.manifest(entry)


def publish(name: str, source: object, **said: object) -> sharing.Entry:
    return sharing.publish(name, source, network="lab", yes=True, **said)  # type: ignore[arg-type]


def draft_of(source: object, **options: object) -> Draft:
    return make_draft(Said(name="x"), source, project=prepare(), network="lab", **options)  # type: ignore[arg-type]


def test_a_folder_becomes_versions_that_supersede_each_other(here: Path) -> None:
    (here / "set" / "deep").mkdir(parents=True)
    (here / "set" / "a.txt").write_text("one")
    (here / "set" / "deep" / "b.txt").write_text("two")
    first = publish("words", here / "set", description="Words", license="MIT", tags=("text",))
    assert (first.version, first.kind, first.size, first.num_files) == (1, "folder", 6, 2)
    assert publish("words", here / "set", description="Words", license="MIT", tags=("text",)) == first
    (here / "set" / "a.txt").write_text("changed")
    second = manifest_of(publish("words", here / "set"))
    assert (second.version, second.supersedes) == (2, 1)
    before = {file.path: file.root for file in manifest_of(first).files}
    after = {file.path: file.root for file in second.files}
    assert before["deep/b.txt"] == after["deep/b.txt"]
    assert before["a.txt"] != after["a.txt"]


def test_hidden_files_and_links_stay_here_unless_asked_for(here: Path) -> None:
    (here / "set").mkdir()
    (here / "secret").write_text("mine")
    for name in ("a.csv", ".env", "server.pem"):
        (here / "set" / name).write_text("x\n1\n")
    (here / "set" / "link").symlink_to(here / "secret")
    draft = draft_of(here / "set")
    assert sorted(draft.hashed) == ["a.csv", "server.pem"]
    text = draft.visible()
    assert "1 links and special files are left out" in text
    assert "1 hidden files and folders are left out" in text
    assert "These look like secrets: server.pem" in text
    assert sorted(draft_of(here / "set", hidden=True).hashed) == [".env", "a.csv", "server.pem"]


def test_what_becomes_visible_is_said_and_agreed_to_first(here: Path) -> None:
    (here / "rows.csv").write_text("name,salary\nada,100\nbob,200\n")
    with pytest.raises(InvalidInputError, match=r"(?s)every member of 'lab'.*say yes=True") as raised:
        sharing.publish("pay", here / "rows.csv", network="lab")
    assert "sample, with their values: name, salary" in str(raised.value)
    assert sharing.search(network="lab") == []
    entry = publish("pay", here / "rows.csv", redact=("salary",))
    assert [sorted(row) for row in manifest_of(entry).sample] == [["name"], ["name"]]
    assert entry.columns == (("name", "string"), ("salary", "int64"))
    assert manifest_of(publish("pay", here / "rows.csv", sample_rows=0, description="x")).sample == ()
    with pytest.raises(InvalidInputError, match="no column 'wages'"):
        publish("pay", here / "rows.csv", redact=("wages",))


def test_a_table_of_the_project_is_published_where_it_lies() -> None:
    table = data.write({"pt": [0.5, 1.5, 2.5], "label": [1, 0, 1]}, "higgs")
    by_name, by_object = draft_of("table:higgs"), draft_of(table)
    assert by_name.hashed == by_object.hashed
    entry = publish("higgs", "higgs")
    assert (entry.kind, entry.rows, dict(entry.columns)) == ("table", 3, {"pt": "double", "label": "int64"})
    assert by_name.content.place == table.url


def test_a_model_is_published_with_all_its_files(here: Path) -> None:
    (here / "weights.bin").write_bytes(bytes(1000))
    version = models.register("digits", files=here / "weights.bin")
    draft = draft_of("model:digits:1")
    assert any(path.endswith("weights.bin") for path in draft.hashed)
    assert "may run code" in draft.visible()
    assert draft_of(version).hashed == draft.hashed
    assert publish("digits", version).kind == "model"


def test_a_name_that_is_nothing_or_several_things_is_refused(here: Path) -> None:
    with pytest.raises(NotFoundError, match="neither a path nor a table"):
        draft_of("nothing")
    data.write({"x": [1]}, "both")
    (here / "w").write_bytes(b"w")
    models.register("both", files=here / "w")
    with pytest.raises(InvalidInputError, match="write table:both or model:both"):
        draft_of("both")
    with pytest.raises(InvalidInputError, match="Rows in memory are written first"):
        draft_of({"x": [1]})


def test_a_bomb_of_tiny_files_cannot_be_published(here: Path) -> None:
    (here / "many").mkdir()
    for number in range(1001):
        (here / "many" / str(number)).write_bytes(b"")
    with pytest.raises(RecordError, match="pack them into fewer"):
        draft_of(here / "many")


def test_a_file_of_a_web_server_is_published_with_its_address(here: Path) -> None:
    (here / "served").mkdir()
    (here / "served" / "a b.csv").write_text("x\n1\n2\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=here / "served")
    ) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            base = f"http://127.0.0.1:{server.server_port}"
            entry = publish("web", f"{base}/a%20b.csv")
        finally:
            server.shutdown()
            thread.join()
    assert (entry.kind, entry.rows, entry.web_seeds) == ("url", 2, (base,))
    assert [file.path for file in manifest_of(entry).files] == ["a b.csv"]


def test_a_network_need_not_be_named_where_there_is_one(here: Path) -> None:
    (here / "a.txt").write_text("a")
    with pytest.raises(InvalidInputError, match="it knows none yet"):
        sharing.search()
    publish("a", here / "a.txt")
    assert [one.name for one in sharing.search("a")] == ["a"]
    publish_draft(make_draft(Said(name="a"), here / "a.txt", project=prepare(), network="office"))
    with pytest.raises(InvalidInputError, match="it knows lab, office"):
        sharing.search()
    with pytest.raises(InvalidInputError, match="lower-case letters"):
        sharing.search(network="../lab")


def test_a_lost_catalogue_does_not_repeat_a_number(here: Path) -> None:
    (here / "a.txt").write_text("a")
    publish("a", here / "a.txt")
    publish("b", here / "a.txt")
    for path in (here / "project" / "sharing" / "networks" / "lab").glob("catalogue.sqlite*"):
        path.unlink()
    assert publish("c", here / "a.txt").sequence == 3


def test_sizes_are_written_for_people() -> None:
    assert [size_words(size) for size in (1, 1000, 999_600, 10**12)] == ["1 byte", "1 kB", "1 MB", "1 TB"]
