from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cargobike import project
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.testing.stores import JournalBuilder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARGOBIKE_PROJECT")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_by_default_it_is_in_the_working_directory(tmp_path: Path) -> None:
    assert project.current().root == tmp_path / ".cargobike"
    assert not project.current().root.exists()


def project_in(folder: Path) -> Path:
    (folder / ".cargobike" / "experiments").mkdir(parents=True)
    return folder / ".cargobike"


def below(folder: Path, *names: str) -> Path:
    inner = folder.joinpath(*names)
    inner.mkdir(parents=True)
    return inner


def test_a_folder_finds_the_project_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parents = project_in(below(tmp_path, "work"))
    monkeypatch.chdir(below(tmp_path, "work", "models", "small"))
    assert project.current().root == parents
    assert caplog.text == ""
    assert (project.path("x"), project.path("y")) == (str(parents / "x"), str(parents / "y"))
    assert caplog.text.count(f"This is kept in {parents}, the project of a folder above") == 1
    own = project_in(tmp_path / "work" / "models" / "small")
    assert project.current().root == own


def test_the_nearest_project_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_in(below(tmp_path, "a"))
    nearer = project_in(below(tmp_path, "a", "b"))
    monkeypatch.chdir(below(tmp_path, "a", "b", "c"))
    assert project.current().root == nearer


def test_the_search_ends_with_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_in(below(tmp_path, "work"))
    below(tmp_path, "work", "repository", ".git")
    inner = below(tmp_path, "work", "repository", "src")
    monkeypatch.chdir(inner)
    assert project.current().root == inner / ".cargobike"
    own = project_in(tmp_path / "work" / "repository")
    assert project.current().root == own


def test_the_home_folder_is_no_project_for_everything_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project_in(below(tmp_path, "home"))
    inner = below(tmp_path, "home", "work")
    monkeypatch.chdir(inner)
    assert project.current().root == inner / ".cargobike"
    monkeypatch.chdir(tmp_path / "home")
    assert project.current().root == home


def test_a_project_of_another_user_above_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_in(below(tmp_path, "shared"))
    inner = below(tmp_path, "shared", "mine")
    monkeypatch.chdir(inner)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert project.current().root == inner / ".cargobike"


def test_a_folder_above_that_only_has_the_name_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below(tmp_path, "work", ".cargobike")
    inner = below(tmp_path, "work", "inner")
    monkeypatch.chdir(inner)
    assert project.current().root == inner / ".cargobike"


def test_the_environment_comes_before_the_default_and_a_choice_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", "from-environment")
    assert project.current().root == tmp_path / "from-environment"
    project.use("chosen")
    os.chdir("/")
    assert project.current().root == tmp_path / "chosen"
    project.use(None)
    assert project.current().root == Path("/from-environment")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("~/searches", "home/searches"),
        ("file://{here}/a%20b", "a b"),
        ("file://localhost{here}/c", "c"),
        ("x/../y", "y"),
    ],
)
def test_folders_can_be_written_in_several_ways(tmp_path: Path, url: str, expected: str) -> None:
    project.use(url.format(here=tmp_path))
    assert project.current().root == tmp_path / expected


@pytest.mark.parametrize("url", ["s3://bucket/x", "hdfs://node/x", "s3://bucket/x/"])
def test_shared_storage_has_a_local_copy(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "cache"))
    project.use(url)
    place = project.current()
    assert place.root.parent == tmp_path / "cache" / "projects"
    assert place.remote_url.read_text().strip() == url.rstrip("/")
    project.use(url.rstrip("/"))
    assert project.current() == place
    project.use("s3://bucket/y")
    assert project.current() != place


@pytest.mark.parametrize("url", ["file://server/share", "file://"])
def test_a_file_url_must_be_local(url: str) -> None:
    with pytest.raises(InvalidInputError, match="file:///absolute/path"):
        project.use(url)


def test_a_new_project_is_kept_out_of_version_control(tmp_path: Path) -> None:
    made = project.prepare()
    assert (made.root / ".gitignore").read_text() == "*\n"
    assert made.experiments.is_dir()
    (made.root / ".gitignore").unlink()
    assert project.prepare() == made
    assert not (made.root / ".gitignore").exists()


def test_a_folder_with_other_things_in_it_gets_no_gitignore(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    project.use("mine")
    project.prepare()
    assert not (tmp_path / "mine" / ".gitignore").exists()


def test_a_project_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    project.use("file")
    with pytest.raises(InvalidInputError, match="cannot be created: Not a directory"):
        project.prepare()


def test_paths_stay_inside(tmp_path: Path) -> None:
    assert project.path("data", "digits.npz") == str(tmp_path / ".cargobike" / "data" / "digits.npz")
    assert project.path() == str(tmp_path / ".cargobike")
    assert (tmp_path / ".cargobike").is_dir()
    for parts in (("..", "x"), ("/etc/passwd",), ("a", "../../..")):
        with pytest.raises(InvalidInputError, match="leads out of the project"):
            project.path(*parts)


def test_experiments_are_found_without_an_index() -> None:
    place = project.prepare()
    for number, name in enumerate(["digits", "mnist"]):
        JournalBuilder(place, f"2027010{number + 1}-000000-{'ab'[number] * 4}", name=name).end()
    (place.experiments / ".removing-x").mkdir()
    first, second = "20270101-000000-aaaa", "20270102-000000-bbbb"
    assert project.find_experiment("last").id == second
    assert project.find_experiment("digits").id == first
    assert project.find_experiment("bbbb").id == second
    assert project.find_experiment(first).root == place.experiment(first).root
    with pytest.raises(NotFoundError, match="fits 2 experiments"):
        project.find_experiment("2027")
    with pytest.raises(NotFoundError, match="Did you mean 'mnist'"):
        project.find_experiment("mnits")
    assert not place.index.exists()


def test_the_door_is_light() -> None:
    program = "import sys; from cargobike import project; print(sorted({'sqlalchemy', 'zmq'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_threads_may_ask_for_a_new_copy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        monkeypatch.setenv("CARGOBIKE_PROJECT", f"s3://bucket/{number}")
        both_ask = threading.Barrier(4)

        def ask(_: int, both_ask: threading.Barrier = both_ask) -> Path:
            both_ask.wait(30)
            return project.current().root

        with ThreadPoolExecutor(4) as threads:
            assert len(set(threads.map(ask, range(4)))) == 1
