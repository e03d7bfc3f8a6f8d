"""`hops.hdfs` over a project in a folder, and over one on a storage without folders."""

from __future__ import annotations

import os
import stat
import sys
import uuid
from pathlib import Path

import pytest

from cargobike import project
from cargobike.compat.hops import hdfs
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, StoreError


@pytest.fixture(params=["folder", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = str(tmp_path / "team") if request.param == "folder" else f"memory://bucket-{uuid.uuid4().hex}/team"
    monkeypatch.setenv(settings.PROJECT, url)
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")
    monkeypatch.chdir(tmp_path)
    return url


def test_a_file_is_found_by_each_of_its_paths(root: str) -> None:
    assert hdfs.project_path() == root + "/"
    assert hdfs.project_name() == "team"
    assert hdfs.dump("beans", "Resources/a.txt") == 5
    paths = [
        "Resources/a.txt",
        "/Resources/a.txt",
        "/Projects/team/Resources/a.txt",
        "hdfs:///Projects/team/Resources/a.txt",
        "hopsfs://10.0.2.15:8020/Projects/team/Resources/a.txt",
        hdfs.project_path() + "Resources/a.txt",
        hdfs.project_path() + "/Resources/a.txt",
        hdfs.abs_path("Resources/a.txt"),
    ]
    for path in paths:
        assert hdfs.load(path) == b"beans", path
        assert hdfs.exists(path)
        assert hdfs.isfile(path)
        assert not hdfs.isdir(path)
        assert hdfs.get_plain_path(path) == "/Projects/team/Resources/a.txt"


def test_other_projects_and_storages_are_refused(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="HOPSWORKS_PROJECT_NAME=demo if it is the same one"):
        hdfs.load("/Projects/demo/x")
    with pytest.raises(OSError, match="is not in the project"):
        hdfs.load("s3://elsewhere/x")
    with pytest.raises(StoreError, match="leads out of the project"):
        hdfs.dump("x", "Resources/../../x")
    with pytest.raises(FileNotFoundError, match="no file 'nothing'"):
        hdfs.load("nothing")
    monkeypatch.setenv("HOPSWORKS_PROJECT_NAME", "demo")
    hdfs.dump("x", "/Projects/demo/x")
    assert hdfs.load("x") == b"x"


def test_folders_are_there_while_they_are_empty(root: str) -> None:
    hdfs.mkdir("Logs/deep")
    assert hdfs.isdir("Logs/deep")
    assert hdfs.ls("Logs/deep") == []
    assert hdfs.ls("Logs") == [f"{root}/Logs/deep"]
    hdfs.dump("1", "Logs/deep/one.txt")
    hdfs.rmr("Logs/deep/one.txt")
    assert hdfs.ls("Logs/deep") == []
    assert hdfs.isdir("Logs/deep"), "a folder that was emptied stays"
    hdfs.delete("Logs/deep")
    assert not hdfs.exists("Logs/deep")
    with pytest.raises(StoreError, match="not deleted as a whole"):
        hdfs.rmr(hdfs.project_path())


def test_what_is_in_a_folder(root: str) -> None:
    for name in ("b.json", "a.json", "c.txt", "deep/d.json"):
        hdfs.dump("xy", f"data/{name}")
    assert hdfs.ls("data") == [f"{root}/data/{name}" for name in ("a.json", "b.json", "c.txt", "deep")]
    assert hdfs.ls("data", recursive=True)[-1] == f"{root}/data/deep/d.json"
    assert hdfs.glob("data/*.json") == [f"{root}/data/a.json", f"{root}/data/b.json"]
    assert hdfs.glob("data/[ab].*") == hdfs.glob("data/*.json")
    listed = {os.path.basename(one["name"]): (one["kind"], one["size"]) for one in hdfs.lsl("data")}
    assert listed["a.json"] == ("file", 2)
    assert listed["deep"][0] == "directory"
    assert hdfs.stat("data/a.json").st_size == 2
    assert stat.S_ISDIR(hdfs.stat("data").st_mode)
    with pytest.raises(OSError, match="no file or folder 'nowhere'"):
        hdfs.ls("nowhere")


def test_local_files_go_into_a_folder_and_back(root: str, tmp_path: Path) -> None:
    (tmp_path / "set" / "inner").mkdir(parents=True)
    (tmp_path / "set" / "inner" / "x.bin").write_bytes(b"\0" * 100)
    (tmp_path / "one.csv").write_text("a,b\n")
    hdfs.copy_to_hdfs("one.csv", "Resources")
    hdfs.copy_to_project("set", "/Resources")
    assert hdfs.load("Resources/one.csv") == b"a,b\n"
    assert hdfs.stat("Resources/set/inner/x.bin").st_size == 100
    with pytest.raises(StoreError, match="overwrite=True replaces it"):
        hdfs.copy_to_hdfs("one.csv", "Resources")
    (tmp_path / "one.csv").write_text("c\n")
    hdfs.copy_to_hdfs("one.csv", "Resources", overwrite=True)
    (tmp_path / "back").mkdir()
    copied = hdfs.copy_to_local("Resources/set", "back")
    assert copied == str(tmp_path / "back" / "set")
    assert (tmp_path / "back" / "set" / "inner" / "x.bin").read_bytes() == b"\0" * 100
    path = Path(hdfs.copy_from_project("Resources/one.csv", "back"))
    assert path.read_text() == "c\n"
    before = path.stat().st_mtime_ns
    hdfs.copy_to_local("Resources/one.csv", "back")
    assert path.stat().st_mtime_ns == before, "what is there is not copied again"
    path.write_text("changed, and longer")
    hdfs.copy_to_local("Resources/one.csv", "back")
    assert path.read_text() == "c\n"
    with pytest.raises(OSError, match="no local folder"):
        hdfs.copy_to_local("Resources/one.csv", "nowhere")


def test_copying_and_moving(root: str) -> None:
    hdfs.dump("1", "a/x.txt")
    hdfs.mkdir("b")
    hdfs.cp("a/x.txt", "b")
    hdfs.cp("a", "c")
    assert hdfs.load("b/x.txt") == hdfs.load("c/x.txt") == b"1"
    with pytest.raises(StoreError, match="is there already"):
        hdfs.cp("a/x.txt", "b")
    hdfs.dump("2", "a/x.txt")
    hdfs.cp("a/x.txt", "b", overwrite=True)
    assert hdfs.load("b/x.txt") == b"2"
    hdfs.move("a/x.txt", "d/y.txt")
    assert hdfs.ls("a") == []
    hdfs.rename("d", "e")
    assert (hdfs.load("e/y.txt"), hdfs.exists("d")) == (b"2", False)
    with pytest.raises(StoreError, match="into itself"):
        hdfs.move("e", "e/inner")
    assert hdfs.load("e/y.txt") == b"2"


def test_files_are_opened_in_each_mode(root: str) -> None:
    with hdfs.open_file("notes.txt", flags="wt") as file:
        file.write("one\n")
    with hdfs.open_file("notes.txt", flags="at") as file:
        file.write("two\n")
    with hdfs.open_file("notes.txt", flags="rt") as file:
        assert file.readlines() == ["one\n", "two\n"]
    with hdfs.get_fs().open_file("notes.txt", mode="r") as raw:
        raw.seek(4)
        assert raw.read() == b"two\n"
    with pytest.raises(InvalidInputError, match="allowed are 'r', 'w' and 'a'"):
        hdfs.open_file("notes.txt", flags="x")
    assert hdfs.get().list_directory("")[-1]["size"] == 8
    hdfs.get().delete("notes.txt")
    assert not hdfs.exists("notes.txt")


def test_modes_are_those_of_the_disk(root: str) -> None:
    hdfs.dump("x", "secret")
    if root.startswith("memory"):
        with pytest.raises(InvalidInputError, match="needs a project on a disk"):
            hdfs.chmod("secret", 700)
        assert hdfs.access("secret", os.W_OK)
        return
    for written, meant in ((700, 0o700), (0o700, 0o700), ("640", 0o640), (0o644, 0o644), (0o660, 0o660), (755, 0o755)):
        hdfs.chmod("secret", written)
        assert stat.S_IMODE(hdfs.stat("secret").st_mode) == meant, written
    assert hdfs.access("secret", os.X_OK)
    with pytest.raises(InvalidInputError, match="give one such as 700"):
        hdfs.chmod("secret", "rwx")


def test_a_module_of_the_project_is_imported(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = f"kept_{uuid.uuid4().hex}"
    hdfs.dump('{"cells": [{"cell_type": "code", "source": ["x = 41 + 1"]}]}', f"Resources/{name}.ipynb")
    path = hdfs.add_module(f"Resources/{name}.ipynb")
    assert path.endswith(f"localized_deps/{name}.py")
    assert __import__(name).x == 42
    with pytest.raises(InvalidInputError, match="neither a script nor a notebook"):
        hdfs.add_module("Resources")


def test_the_project_of_a_working_folder_is_called_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.PROJECT, raising=False)
    (tmp_path / "garden").mkdir()
    monkeypatch.chdir(tmp_path / "garden")
    assert hdfs.project_name() == "garden"
    assert project.current().root.name == ".cargobike"
