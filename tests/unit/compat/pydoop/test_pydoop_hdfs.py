"""`pydoop.hdfs` over the project's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.compat.hops import hdfs as hops
from cargobike.compat.pydoop import hdfs as pydoop
from cargobike.core import settings


def test_what_scripts_for_hops_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "local.txt").write_text("one\ntwo\n")
    root = hops.project_path()
    assert pydoop.path.abspath("Resources/a.txt") == root + "Resources/a.txt"
    pydoop.mkdir("Resources")
    pydoop.put("local.txt", "Resources")
    pydoop.put("local.txt", "Resources/b.txt")
    with pydoop.open(root + "Resources/local.txt", "rt") as file:
        assert file.readlines() == ["one\n", "two\n"]
    pydoop.get("Resources/b.txt", "back.txt")
    assert (tmp_path / "back.txt").read_text() == "one\ntwo\n"
    assert [pydoop.path.basename(path) for path in pydoop.ls("Resources")] == ["b.txt", "local.txt"]
    assert pydoop.path.getsize("Resources") == 16
    with pydoop.hdfs("default", 0) as handle:
        assert handle.exists("Resources/b.txt")
        assert [one["kind"] for one in handle.list_directory("Resources")] == ["file", "file"]
    pydoop.rmr("Resources/b.txt")
    pydoop.rename("Resources/local.txt", "Resources/c.txt")
    assert (pydoop.path.isfile("Resources/c.txt"), pydoop.path.isdir("Resources")) == (True, True)
    assert (pydoop.load("Resources/c.txt"), pydoop.stat("Resources/c.txt").st_size) == (b"one\ntwo\n", 8)
