"""An experiment whose folder is deleted or moved while it runs does not end as if all were well."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.core.errors import StoreError


def experiments() -> Path:
    return Path(os.environ["CARGOBIKE_PROJECT"]) / "experiments"


def delete_all(x: int) -> float:
    shutil.rmtree(experiments(), ignore_errors=True)
    return float(x)


def move_and_wait(x: int) -> float:
    for folder in experiments().iterdir():
        folder.rename(folder.parent.parent / folder.name)
    time.sleep(600)  # longer than a test may take
    return float(x)


def test_a_search_in_a_deleted_folder_is_not_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    with pytest.raises(StoreError, match=r"project/experiments/.*journal\.jsonl was deleted"):
        experiment.launch(delete_all, {"x": [1, 2, 3]}, workers=1, quiet=True)


def test_a_folder_that_is_moved_ends_the_search_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    with pytest.raises(StoreError, match=r"project/experiments/.*journal\.jsonl was deleted or moved"):
        experiment.launch(move_and_wait, {"x": [1]}, workers=1, quiet=True)
    (moved,) = (tmp_path / "project").glob("2*/journal.jsonl")
    assert b'"state":"failed"' in moved.read_bytes().splitlines()[-1]


def remove_project(x: int) -> float:
    shutil.rmtree(experiments().parent, ignore_errors=True)
    return float(x)


def journal() -> Path:
    (path,) = experiments().glob("*/journal.jsonl")
    return path


def replace_by_text(x: int) -> float:
    journal().with_name("other").write_text("my thesis\n")
    journal().with_name("other").replace(journal())
    return float(x)


def cut(x: int) -> float:
    os.truncate(journal(), 10)
    return float(x)


def overwrite(x: int) -> float:
    with journal().open("r+b") as file:
        file.seek(-40, os.SEEK_END)
        file.write(b"#" * 39)
    return float(x)


def add_to(x: int) -> float:
    with journal().open("ab") as file:
        file.write(b"my thesis\n")
    return float(x)


@pytest.mark.parametrize(
    ("disturb", "said"),
    [
        (remove_project, "deleted or moved"),
        (replace_by_text, "replaced by another"),
        (cut, "cut short by another program"),
        (overwrite, "changed by another program"),
        (add_to, "written to by another program"),
    ],
)
def test_a_journal_that_another_program_changes_ends_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturb: Callable[[int], float], said: str
) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    with pytest.raises(StoreError, match=rf"journal\.jsonl was {said}"):
        experiment.launch(disturb, {"x": [1]}, workers=1, quiet=True)
