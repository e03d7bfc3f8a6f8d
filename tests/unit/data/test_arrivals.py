"""What counts as data that arrived."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cargobike import data
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Seen
from cargobike.data import arrivals
from cargobike.data.arrivals import look


class Place:
    """A folder that is looked at, with a clock of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.at, self.mark, self.glob = root, 1000.0, "", "**/*"
        monkeypatch.setattr("cargobike.data.arrivals.time.time", lambda: self.at)

    def put(self, name: str, text: str = "rows") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def look(self, after_s: float = 0.0) -> list[str]:
        self.at += after_s
        trigger = data.arrived(f"{self.root}/{self.glob}")
        seen: Seen = look(trigger, self.mark, ProjectFolder(self.root))
        self.mark = seen.mark
        return [] if seen.cause is None else [os.path.relpath(name, self.root) for name in seen.cause["files"]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_a_file_counts_when_it_has_not_changed_for_a_while(place: Place) -> None:
    place.look()
    place.put("a.csv", "1")
    assert [place.look(), place.look(4.9)] == [[], []]
    place.put("a.csv", "1,2")  # it was still being written
    assert [place.look(4.9), place.look(4.9)] == [[], []]
    assert place.look(0.2) == ["a.csv"]
    assert place.look(100) == []


def test_a_file_that_is_written_again_counts_again_and_one_that_goes_does_not(place: Place) -> None:
    place.put("a.csv", "1")
    place.look()
    place.put("a.csv", "other")
    place.look()
    assert place.look(6) == ["a.csv"]
    (place.root / "a.csv").unlink()
    assert [place.look(6), place.look(6)] == [[], []]


def test_a_clock_that_is_set_back_delays_a_file_and_does_not_lose_it(place: Place) -> None:
    place.look()
    place.put("a.csv")
    place.look()
    assert [place.look(-3600), place.look(6)] == [[], ["a.csv"]]


def test_hidden_and_unfinished_files_do_not_count(place: Place) -> None:
    place.look()
    for name in (".a", "_SUCCESS", "_temporary/0/part.csv", "b.csv.tmp", "c.part", "d._COPYING_", "in/e.csv"):
        place.put(name)
    place.look()
    assert place.look(6) == ["in/e.csv"]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.csv", ["a.csv"]),
        ("**/*.csv", ["a.csv", "x/b.csv", "x/y/c.csv"]),
        ("x/*.csv", ["x/b.csv"]),
        ("*/*/?.csv", ["x/y/c.csv"]),
        ("[!b]*.csv", ["a.csv"]),
        ("x/**", ["x/b.csv", "x/y/c.csv"]),
    ],
)
def test_globs(place: Place, glob: str, names: list[str]) -> None:
    place.glob = glob
    place.look()
    for name in ("a.csv", "x/b.csv", "x/y/c.csv", "d.txt"):
        place.put(name)
    place.look()
    root = place.root if glob[0] != "x" else place.root / "x"
    found = [os.path.relpath(place.root / name, place.root) for name in place.look(6)]
    assert root.exists()
    assert found == names


def test_too_many_files_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_FILES", 2)
    for name in "abc":
        place.put(name)
    with pytest.raises(StoreError, match=r"more than 2 such files.*narrower glob"):
        place.look()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a glob, a folder, an address or a table's name"),
        ("s3://me:secret@bucket/in/*.csv", "with a password, which would be kept"),
        ("two words", "is no name of a table; write a folder with a slash: './two words'"),
    ],
)
def test_what_cannot_be_a_place_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        data.arrived(text)
    assert "secret" not in str(caught.value)


def test_a_relative_path_means_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data.arrived("in/*.csv").subject == str(tmp_path / "in" / "*.csv")
