"""The parts of a snapshot: environment, repository, own files, versioned resources."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.store.files.resources import Resource, check_resources, copy_out, keep_resources, safe_name, sweep_pool
from cargobike.store.history import sources
from cargobike.store.history.environment import normalized, read_environment
from cargobike.store.history.git_state import read_git
from cargobike.store.history.snapshot import take_snapshot, without_secrets
from cargobike.store.history.sources import collect_sources
from support import programs


def git(folder: Path, *words: str) -> str:
    programs.require("git")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *identity, "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "model.py").write_text("SIZE = 1\n")
    (root / ".gitignore").write_text("secret*\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def test_the_environment_names_every_package_as_its_metadata_does() -> None:
    found = read_environment()
    told = {normalized(one.metadata["Name"]): one.version for one in importlib.metadata.distributions()}
    assert found.packages == {**found.packages, **told}
    assert f"msgspec=={importlib.metadata.version('msgspec')}" in found.lock().splitlines()
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.cpu
    assert found.memory_bytes > 1 << 20


def test_a_package_from_a_folder_is_named_with_it_and_its_password_is_not(tmp_path: Path) -> None:
    info = tmp_path / "Own_Thing-1.2.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text('{"url": "https://me:pw@host/own.git"}')
    found = read_environment([str(tmp_path), str(tmp_path / "missing")])
    assert found.packages == {"own-thing": "1.2"}
    assert found.urls == {"own-thing": "https://host/own.git"}
    assert "# own-thing==1.2 from https://host/own.git" in found.lock()


def test_no_variable_is_kept_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    assert read_environment([]).variables["OMP_NUM_THREADS"] == "3"
    assert "hunter2" not in str(read_environment([]))


def test_git_tells_commit_branch_and_what_was_not_committed(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://me:token@host/x.git")
    (repository / "model.py").write_text("SIZE = 2\n")
    (repository / "new.py").write_text("")
    (repository / "secrets.py").write_text("KEY = 'hunter2'")
    found = read_git(repository)
    assert found is not None
    state, diff = found
    assert state.commit == git(repository, "rev-parse", "HEAD")
    assert state.branch == "main"
    assert state.remote == "https://host/x.git"
    assert state.changed == ("model.py", "new.py")
    assert b"-SIZE = 1\n+SIZE = 2" in diff
    assert b"hunter2" not in diff


def test_there_is_no_git_state_outside_a_repository(tmp_path: Path) -> None:
    assert read_git(tmp_path) is None


def test_own_files_are_what_git_knows_or_would(repository: Path) -> None:
    (repository / "new.py").write_text("A = 1\n")
    (repository / "secret_key.py").write_text("KEY = 'hunter2'")
    (repository / "data.csv").write_text("1,2")
    found, packed = collect_sources(repository, repository)
    number = found.roots.index(str(repository))
    mine = {name for name in found.files if name.startswith(f"{number}/")}
    assert mine == {f"{number}/model.py", f"{number}/new.py"}
    archive = repository / "sources.zip"
    archive.write_bytes(packed)
    assert sources.read_source(archive, f"{number}/new.py") == "A = 1\n"
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None


def test_outside_a_repository_files_beside_the_script_are_taken(tmp_path: Path) -> None:
    for name in (
        "go.py",
        "package/__init__.py",
        "package/part.py",
        ".hidden/no.py",
        "others/no.py",
        "package/data/no.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found, _ = collect_sources(None, tmp_path)
    # A module that another test has left loaded may come from a folder above this one: then files lie below that.
    kept = {Path(found.roots[int(name.partition("/")[0])], name.partition("/")[2]) for name in found.files}
    mine = {path.relative_to(tmp_path).as_posix() for path in kept if path.is_relative_to(tmp_path)}
    assert mine == {"go.py", "package/__init__.py", "package/part.py"}


def test_there_is_a_limit_to_what_is_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "large.py").write_text("#" * 5000)
    monkeypatch.setattr(sources, "MOST_FILE_BYTES", 4000)
    found, _ = collect_sources(repository, None)
    assert not any(name.endswith("large.py") for name in found.files)
    assert found.left_out >= 1


def test_values_that_sound_like_secrets_leave_the_command_line() -> None:
    given = ["go.py", "--api-key", "abc", "--token=xyz", "--lr", "0.1", "PASSWORD=pw", "x"]
    assert without_secrets(given) == ["go.py", "--api-key", "***", "--token=***", "--lr", "0.1", "PASSWORD=***", "x"]


def test_resources_are_kept_once_for_each_content(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "a.txt").write_text("same")
    (data / "deep" / "b.txt").write_text("same")
    (data / "link.txt").symlink_to("/etc/passwd")
    pool = tmp_path / "pool"
    first = keep_resources(check_resources([data]), tmp_path / "one", pool, tmp_path)
    second = keep_resources(check_resources([data / "a.txt"]), tmp_path / "two", pool, tmp_path)
    assert [one.name for one in first] == ["data/a.txt", "data/deep/b.txt"]
    assert {one.sha256 for one in (*first, *second)} == {first[0].sha256}
    assert (tmp_path / "one" / first[0].sha256).samefile(tmp_path / "two" / first[0].sha256)
    assert copy_out(tmp_path / "one", first[1], tmp_path / "out").read_text() == "same"
    for name in ("one", "two"):
        os.unlink(tmp_path / name / first[0].sha256)
    sweep_pool(pool)
    assert list(pool.iterdir()) == []


def test_resources_that_cannot_be_kept_are_named_all_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match=r"(?s)missing.*No such file.*pipe.*neither"):
        check_resources([tmp_path / "missing", tmp_path / "pipe"])
    with pytest.raises(InvalidInputError, match="must be a list"):
        check_resources("data.csv")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a\\b", "a\x00b", "a\nb"])
def test_hostile_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="refused"):
        safe_name(name)
    with pytest.raises(InvalidInputError, match="refused"):
        copy_out(tmp_path, Resource(name=name, path="", sha256="0", size_bytes=0), tmp_path / "out")


def test_a_program_that_was_installed_launches_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These tests run in pytest: the launcher is the file of the train function, not pytest's."""
    monkeypatch.delitem(vars(sys.modules["__main__"]), "In", raising=False)  # of a notebook in another test
    folder = ExperimentFolder(tmp_path / "experiments" / "x")
    found = take_snapshot(folder, function_file=__file__, directory=str(tmp_path))
    assert found.launcher is not None
    assert found.launcher.path == __file__
    nothing = take_snapshot(folder, function_file="<stdin>", directory=str(tmp_path))
    assert nothing.launcher is not None
    assert nothing.launcher.kind == "interactive"
    assert nothing.git is None


def test_equal_sources_of_several_experiments_need_room_once(tmp_path: Path) -> None:
    places = [ExperimentFolder(tmp_path / "experiments" / name) for name in ("x", "y")]
    for place in places:
        take_snapshot(place, function_file=__file__, directory=str(tmp_path))
    first, second = (place.code / "sources.zip" for place in places)
    assert first.samefile(second)
    take_snapshot(places[0], function_file=__file__, directory=str(tmp_path))
    assert first.samefile(second)
