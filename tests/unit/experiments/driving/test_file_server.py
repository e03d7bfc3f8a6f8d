"""What workers may write and read of a project that they do not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.driving.file_server import ServedFiles
from cargobike.workers.files.requests import Get, Listing, Put

TRIAL = "experiments/one/trials/0000"


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    (tmp_path / "experiments" / "one").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    return ProjectFolder(tmp_path)


@pytest.fixture
def files(project: ProjectFolder) -> ServedFiles:
    return ServedFiles(project, project.experiment("one"))


def test_what_is_put_in_pieces_is_read_back(files: ServedFiles) -> None:
    path = f"{TRIAL}/logs/events"
    files.answer(Put(1, path, 0, b"first "))
    files.answer(Put(2, path, 6, b"second"))
    assert files.answer(Get(3, path, 6)).data == b"second"
    (listed,) = files.answer(Listing(4, TRIAL)).files
    assert (listed.path, listed.size) == ("logs/events", 12)


def test_a_repeated_piece_cuts_off_what_came_after_it(files: ServedFiles, project: ProjectFolder) -> None:
    path = f"{TRIAL}/x"
    files.answer(Put(1, path, 0, b"a long line"))
    files.answer(Put(2, path, 0, b"short"))
    assert (project.root / path).read_bytes() == b"short"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        f"{TRIAL}/../../../../etc/passwd",
        "experiments/two/trials/0000/x",
        "experiments/one/journal.jsonl",
    ],
)
def test_nothing_else_is_written_or_read(files: ServedFiles, path: str) -> None:
    with pytest.raises(ValueError, match="is not among the files of this experiment"):
        files.answer(Put(1, path, 0, b""))
    with pytest.raises(ValueError, match="is not among the files of this experiment"):
        files.answer(Get(1, path, 0))


def test_data_is_read_and_never_written(files: ServedFiles, project: ProjectFolder) -> None:
    (project.root / "data" / "part").write_bytes(b"rows")
    assert files.answer(Get(1, "data/part", 0)).data == b"rows"
    with pytest.raises(ValueError, match="is not among the files"):
        files.answer(Put(2, "data/part", 0, b"other"))


def test_a_link_leads_nowhere_else(files: ServedFiles, project: ProjectFolder, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside"
    outside.mkdir(exist_ok=True)
    files.answer(Put(1, f"{TRIAL}/link", link=str(outside)))
    assert (project.root / TRIAL / "link").is_symlink()
    with pytest.raises(ValueError, match="leads out of the project through a link"):
        files.answer(Put(2, f"{TRIAL}/link/x", 0, b""))
    assert not (outside / "x").exists()
