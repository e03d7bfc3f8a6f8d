"""Tags and notes are added by anybody, at any time, and none is lost."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.store.history.annotations import annotate, read_annotations


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    (tmp_path / "x").mkdir()
    return ExperimentFolder(tmp_path / "x")


def test_tags_are_a_set_and_notes_a_list(folder: ExperimentFolder) -> None:
    assert read_annotations(folder).tags == ()
    annotate(folder, add=["good", "päper"], note="  first\nline ")
    annotate(folder, add=["good"], remove=["päper", "unknown"], note="second")
    found = read_annotations(folder)
    assert found.tags == ("good",)
    assert [one.text for one in found.notes] == ["first\nline", "second"]
    assert found.notes[0].at <= found.notes[1].at


def test_a_torn_line_costs_nothing_but_itself(folder: ExperimentFolder) -> None:
    annotate(folder, add=["one"])
    with folder.annotations.open("ab") as file:
        file.write(b'{"at":1.0,"add":["torn')
    annotate(folder, add=["two"])
    assert read_annotations(folder).tags == ("one", "two")


def _tag(folder: ExperimentFolder, number: int) -> None:
    annotate(folder, add=[f"tag{number}"], note=f"note {number}")


def test_many_can_write_at_once(folder: ExperimentFolder) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        list(pool.map(_tag, [folder] * 40, range(40)))
    found = read_annotations(folder)
    assert set(found.tags) == {f"tag{number}" for number in range(40)}
    assert len(found.notes) == 40


@pytest.mark.parametrize("tag", ["", " x", "a\nb", "x" * 101, "\x1b[2J"])
def test_a_tag_that_would_be_trouble_is_refused(folder: ExperimentFolder, tag: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be a tag"):
        annotate(folder, add=[tag])
    with pytest.raises(InvalidInputError, match="as a list"):
        annotate(folder, add="good")
    assert not folder.annotations.exists()


def test_a_note_has_a_limit(folder: ExperimentFolder) -> None:
    with pytest.raises(InvalidInputError, match="20000 are allowed"):
        annotate(folder, note="x" * 20_001)


def test_marks_of_trials_are_kept_and_taken_away(folder: ExperimentFolder) -> None:
    assert annotate(folder, marks={3: "star", 1: "hidden"}).marks == {1: "hidden", 3: "star"}
    annotate(folder, add=["x"])
    assert annotate(folder, marks={1: None, 3: "hidden"}).marks == {3: "hidden"}
    with folder.annotations.open("ab") as file:
        file.write(b'{"at":1.0,"by":"a later version","marks":{"3":"blue"}}\n')
    assert read_annotations(folder).marks == {3: "hidden"}
