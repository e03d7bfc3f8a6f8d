"""The commands of sharing, as a shell calls them, without a daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cargobike import project
from cargobike.cli.app import app
from cargobike.sharing.front import open_catalogue
from support.publications import identity_of, signed_manifest

ALICE = identity_of("alice")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARGOBIKE_SHARE_SECRET", raising=False)
    project.use(tmp_path / "project")
    (tmp_path / "rows.csv").write_text("name,age\nada,36\nbob,41\n")
    yield tmp_path
    project.use(None)


def call(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["share", *words], input=answer)


def lines(*words: str) -> str:
    result = call(*words)
    assert result.exit_code == 0, result.output
    return result.output


def told(*words: str) -> object:
    return json.loads(lines(*words, "--json"))


def test_publishing_says_what_becomes_visible_and_asks() -> None:
    refused = call("publish", "people", "rows.csv", "--network", "lab", answer="n\n")
    assert refused.exit_code == 1
    assert "Visible to every member of 'lab'" in refused.output
    assert told("find", "--network", "lab") == []
    agreed = call("publish", "people", "rows.csv", "--network", "lab", answer="y\n")
    assert agreed.exit_code == 0
    assert "Others get it while this runs: cargobike share serve --network lab" in agreed.output
    assert call("publish", "people", "rows.csv", "--json").exit_code == 2


def test_what_is_published_is_found_shown_and_listed(here: Path) -> None:
    entry = told("publish", "people", "rows.csv", "--network", "lab", "--yes", "--tag", "hr", "--license", "MIT")
    assert isinstance(entry, dict)
    assert (entry["version"], entry["rows"], entry["is_served"]) == (1, 2, False)
    assert "people@" in lines("find", "peop", "--tag", "hr", "--column", "age", "--max-size", "1kB")
    assert "Nothing was found" in lines("find", "--min-size", "1GB")
    shown = lines("show", "people")
    assert "licence:     MIT" in shown
    assert "{'age': 36, 'name': 'ada'}" in shown or "{'name': 'ada', 'age': 36}" in shown
    assert str(here) in lines("ls")
    assert call("find", "--max-size", "much").exit_code == 2
    missing = call("show", "peopl")
    assert missing.exit_code == 1
    assert "Did you mean 'people'" in missing.output


def test_a_torrent_is_written_once(here: Path) -> None:
    told("publish", "people", "rows.csv", "--network", "lab", "--yes")
    told("torrent", "people", "--to", "people.torrent")
    assert (here / "people.torrent").read_bytes().startswith(b"d")
    again = call("torrent", "people", "--to", "people.torrent")
    assert "is there already" in again.output


def test_publishers_are_judged_and_rated(here: Path) -> None:
    told("publish", "people", "rows.csv", "--network", "lab", "--yes")
    with open_catalogue("lab") as catalogue:
        catalogue.add(signed_manifest(ALICE))
    assert "is trusted" in lines("trust", ALICE.publisher[:20], "--as", "alice")
    assert "alice" in lines("publishers")
    told("rate", "higgs@alice", "4", "Good enough")
    told("comment", "higgs@alice", "On second thought: not bad")
    shown = told("show", "higgs")
    assert isinstance(shown, dict)
    assert [(one["rating"], one["text"]) for one in shown["opinions"]] == [(4, "On second thought: not bad")]
    assert call("rate", "higgs", "7").exit_code == 2
    told("mute", "alice")
    told("block", "alice")
    told("forget", "alice")
    assert "higgs" not in lines("find", "--all")


def test_a_key_is_printed_and_replaced() -> None:
    told("publish", "people", "rows.csv", "--network", "lab", "--yes")
    before = lines("key").strip()
    changed = told("key", "--replace", "--yes")
    assert isinstance(changed, dict)
    assert changed["old"] == before
    assert lines("key").strip() == changed["publisher"] != before
    refused = call("withdraw", "people", "--yes")
    assert "signed with another key" in refused.output


def test_commands_for_a_daemon_say_how_to_start_one() -> None:
    told("publish", "people", "rows.csv", "--network", "lab", "--yes")
    for words in (("status",), ("pause",), ("resume",), ("stop",), ("limit", "--send", "1MB/s")):
        result = call(*words)
        assert result.exit_code == 1
        assert "cargobike share serve --network lab" in result.output
    assert call("limit").exit_code == 2
    assert "ExecStart=" in lines("serve", "--systemd", "--port", "7000")
    refused = call("serve")
    assert refused.exit_code == 1
    assert "CARGOBIKE_SHARE_SECRET" in refused.output
