"""An index may be anywhere that the user says, and no file or database of another program is touched for it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from cargobike.cli.app import app
from cargobike.core.layout import ProjectFolder
from cargobike.store.index import opening
from cargobike.testing.stores import JournalBuilder

ID = "20270101-000000-aaaa"


class Said(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def cargobike(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> Cli:
    """Return a function that runs a command in a project, with variables, and never sees a bare traceback."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))

    def run(project: Path, *arguments: str, **variables: str) -> Said:
        opening._warn_of.cache_clear()  # each run stands for a process of its own
        caplog.clear()
        done = CliRunner().invoke(app, ["--project", str(project), *arguments], env=variables)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Said(done.exit_code, done.stdout, done.stderr + caplog.text)

    return run


def make_project(root: Path) -> Path:
    JournalBuilder(ProjectFolder(root), ID, name="digits").end()
    return root


def make_database(path: Path, *, mode: str = "delete") -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE experiments (id INTEGER, verdict TEXT)")
        connection.execute("INSERT INTO experiments VALUES (1, 'guilty')")
        connection.commit()


def make_foreign(kind: str, path: Path) -> None:
    if kind == "text":
        path.write_text("my thesis\n" * 1000)
    elif kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.with_name("target").write_text("my thesis\n")
        path.symlink_to("target")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "products":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE products (product TEXT, price REAL)")
    else:
        make_database(path, mode="wal" if kind == "log" else "delete")


def everything_in(folder: Path) -> dict[str, object]:
    """Return what a folder holds: the bytes of files, the targets of links."""
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            found[path.name] = os.readlink(path)
        else:
            found[path.name] = path.read_bytes() if path.is_file() else path.stat().st_mode
    return found


@pytest.mark.parametrize("kind", ["text", "empty", "folder", "pipe", "link", "dangling", "database", "log", "products"])
def test_a_file_that_is_not_ours_is_refused_and_stays(cargobike: Cli, tmp_path: Path, kind: str) -> None:
    project = make_project(tmp_path / "project")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    make_foreign(kind, theirs / "file")
    before = everything_in(theirs)
    done = cargobike(project, "ls", CARGOBIKE_INDEX_URL=f"sqlite:///{theirs}/file")
    assert done.code == 1
    assert "is not an index of Cargobike" in done.err
    assert "was not touched" in done.err
    assert everything_in(theirs) == before


def test_a_named_file_that_does_not_exist_yet_becomes_an_index(cargobike: Cli, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    url = f"sqlite:///{tmp_path}/index of mine.db"
    assert ID in cargobike(project, "ls", CARGOBIKE_INDEX_URL=url).out
    assert ID in cargobike(project, "ls", CARGOBIKE_INDEX_URL=url).out
    with closing(sqlite3.connect(tmp_path / "index of mine.db")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"CgBk", "big"),)
    assert not (project / "index.sqlite").exists()


def test_an_index_of_a_version_that_did_not_mark_its_files_is_used(cargobike: Cli, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    assert cargobike(project, "ls").code == 0
    with closing(sqlite3.connect(project / "index.sqlite")) as connection:
        connection.execute("PRAGMA application_id = 0")
    done = cargobike(project, "ls")
    assert done.code == 0
    assert done.err == ""
    with closing(sqlite3.connect(project / "index.sqlite")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"CgBk", "big"),)


def test_the_database_of_another_program_at_the_place_of_the_index_stays(cargobike: Cli, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    make_database(project / "index.sqlite")
    before = (project / "index.sqlite").read_bytes()
    done = cargobike(project, "ls")
    assert "is not an index of Cargobike but the database of another program" in done.err
    assert (project / "index.sqlite").read_bytes() == before


def test_what_cannot_be_read_at_the_place_of_the_index_is_kept_aside(cargobike: Cli, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    (project / "index.sqlite").write_text("my thesis\n")
    done = cargobike(project, "ls")
    assert ID in done.out
    assert "index.sqlite.unreadable-1" in done.err
    assert (project / "index.sqlite.unreadable-1").read_text() == "my thesis\n"


@pytest.mark.parametrize("options", ["?uri=true", "?vfs=unix-none", "?mode=rwc&uri=true"])
def test_an_address_with_options_is_refused(cargobike: Cli, tmp_path: Path, options: str) -> None:
    project = make_project(tmp_path / "project")
    done = cargobike(project, "ls", CARGOBIKE_INDEX_URL=f"sqlite:///file:{tmp_path}/x.db{options}")
    assert (done.code, "without options" in done.err) == (1, True), done


def test_the_settings_of_a_project_name_a_file_only_with_the_consent_of_its_reader(
    cargobike: Cli, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project")
    (project / "settings.toml").write_text(f'[index]\nurl = "sqlite:///{tmp_path}/theirs.db"\n')
    done = cargobike(project, "ls")
    assert ID in done.out
    assert "which you have not allowed" in done.err
    assert not (tmp_path / "theirs.db").exists()
    assert "which you have not allowed" in cargobike(project, "doctor").out

    assert "which you have not allowed" not in cargobike(project, "doctor", "--allow-index").out
    assert ID in cargobike(project, "ls").out
    assert (tmp_path / "theirs.db").exists()

    (project / "settings.toml").write_text(f'[index]\nurl = "sqlite:///{tmp_path}/other.db"\n')
    assert "which you have not allowed" in cargobike(project, "ls").err, "another address has to be allowed again"
    project.rename(tmp_path / "moved")
    (tmp_path / "moved" / "settings.toml").write_text(f'[index]\nurl = "sqlite:///{tmp_path}/theirs.db"\n')
    assert "which you have not allowed" in cargobike(tmp_path / "moved", "ls").err


def test_a_project_cannot_bring_along_the_address_of_a_storage(cargobike: Cli, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    mine = make_project(tmp_path / "mine")
    (project / "remote-url").write_text(f"file://{mine}\n")
    (project / "experiments" / ID / "unsent").touch()
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*")}
    done = cargobike(project, "ls")
    assert ID in done.out, "what lies in the project is read, not what the address says"
    assert "only what is in it is used" in done.err
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*")} == before
