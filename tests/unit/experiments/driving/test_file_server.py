"""What workers may write and read of a project that they do not see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.driving.served_files import NO_RIGHTS, Rights, ServedFiles, sweep_trials
from cargobike.workers.files.requests import FileRequest, Get, Listing, Put, Reply, Settle

TRIAL = "experiments/one/trials/0000"
FOREIGN = [
    "/etc/passwd",
    "",
    ".",
    f"{TRIAL}/../../../../etc/passwd",
    "index.sqlite",
    "experiments/two/trials/0000/x",
    "experiments/one/journal.jsonl",
    "experiments/one/code/recipe.pkl",
    "experiments/one/trials/0001/x",
    "experiments/one/files/0001/x",
    "experiments/one/trials/00000/x",
    f"{TRIAL}/a\0b",
    f"{TRIAL}/" + "d/" * 200,
    f"{TRIAL}/" + "d" * 3000,
]


class Served:
    """A project, and a worker of trial 0 that asks for its files."""

    def __init__(self, root: Path) -> None:
        for name in ("one", "two"):
            (root / "experiments" / name / "trials").mkdir(parents=True)
        (root / "data").mkdir()
        (root / "index.sqlite").write_text("secret")
        project = ProjectFolder(root)
        self.root = root
        self.files = ServedFiles(project, project.experiment("one"))
        self.rights = self.files.rights(0)

    def answer(self, request: FileRequest, rights: Rights | None = None) -> Reply:
        return self.files.answer(request, self.rights if rights is None else rights)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "project")


def test_what_is_put_in_pieces_is_read_back(served: Served) -> None:
    path = f"{TRIAL}/logs/events"
    served.answer(Put(1, path, 0, b"first "))
    served.answer(Put(2, path, 6, b"second"))
    assert served.answer(Get(3, path, 6)).data == b"second"
    (listed,) = served.answer(Listing(4, TRIAL)).files
    assert (listed.path, listed.size) == ("logs/events", 12)


def test_a_repeated_piece_cuts_off_what_came_after_it(served: Served) -> None:
    path = f"{TRIAL}/x"
    served.answer(Put(1, path, 0, b"a long line"))
    served.answer(Put(2, path, 0, b"short"))
    assert (served.root / path).read_bytes() == b"short"


def test_requests_may_be_repeated(served: Served) -> None:
    building = f"{TRIAL}/checkpoints/.saving.0.a"
    for _ in range(2):
        served.answer(Put(1, f"{building}/state.bin", data=b"abc"))
        served.answer(Put(2, f"{building}/state.bin", offset=3, data=b"def"))
    for _ in range(2):
        served.answer(Settle(3, building, "000001-step1"))
    checkpoints = served.root / TRIAL / "checkpoints"
    assert (checkpoints / "000001-step1/state.bin").read_bytes() == b"abcdef"
    served.answer(Put(4, f"{building}/state.bin", data=b"new"))
    served.answer(Settle(5, building, "000001-step1", alone=False))
    assert sorted(path.name for path in checkpoints.iterdir()) == ["000001-step1", "000002-step1"]


def test_a_hole_in_a_file_is_refused(served: Served) -> None:
    served.answer(Put(1, f"{TRIAL}/x", 0, b"four"))
    with pytest.raises(ValueError, match="has only 4 bytes"):
        served.answer(Put(2, f"{TRIAL}/x", 1 << 50, b"far away"))
    assert (served.root / TRIAL / "x").read_bytes() == b"four"


@pytest.mark.parametrize("path", FOREIGN)
def test_nothing_else_is_written_or_read(served: Served, path: str) -> None:
    requests = (Put(1, path, 0, b"x"), Put(1, path, link="x"), Get(1, path), Listing(1, path), Settle(1, path, "x"))
    for request in requests:
        with pytest.raises(ValueError, match="is not among the files of this worker's trial"):
            served.answer(request)


@pytest.mark.parametrize("path", [TRIAL, f"{TRIAL}/logs/x", "experiments/one/files/0000/x"])
def test_a_worker_without_a_trial_writes_and_reads_nothing(served: Served, path: str) -> None:
    for request in (Put(1, path, 0, b"x"), Get(1, path), Listing(1, path), Settle(1, path, "x")):
        with pytest.raises(ValueError, match="is not among the files of this worker's trial"):
            served.answer(request, NO_RIGHTS)


def test_the_folder_of_a_trial_is_not_replaced(served: Served) -> None:
    served.answer(Put(1, f"{TRIAL}/x", 0, b"x"))
    for request in (Put(2, TRIAL, link="."), Settle(2, TRIAL, "x", replaces=("0001",))):
        with pytest.raises(ValueError, match="but their folder"):
            served.answer(request)
    for name in ("..", "../0001", "", "a/b"):
        for request in (Settle(3, f"{TRIAL}/x", name), Settle(3, f"{TRIAL}/x", "x", replaces=(name,))):
            with pytest.raises(ValueError, match="is not a name"):
                served.answer(request)


def test_checkpoints_to_begin_with_are_read_and_never_written(served: Served) -> None:
    kept = "experiments/one/trials/0003/checkpoints/000001-step1/state.bin"
    served.answer(Put(1, kept, 0, b"state"), served.files.rights(3))
    rights = served.files.rights(0, source=3)
    assert served.answer(Get(2, kept), rights).data == b"state"
    with pytest.raises(ValueError, match="is not among the files"):
        served.answer(Put(3, kept, 0, b"other"), rights)
    with pytest.raises(ValueError, match="is not among the files"):
        served.answer(Get(4, "experiments/one/trials/0003/logs/x"), rights)


def test_data_is_read_and_never_written(served: Served) -> None:
    (served.root / "data" / "part").write_bytes(b"rows")
    assert served.answer(Get(1, "data/part", 0), NO_RIGHTS).data == b"rows"
    with pytest.raises(ValueError, match="is not among the files"):
        served.answer(Put(2, "data/part", 0, b"other"))


@pytest.mark.parametrize(
    "link",
    ["/etc/passwd", "..", "../../0001", "a/../../x", "d/..", "d/../x", "./x", "a//b", "../" * 4 + "index.sqlite"],
)
def test_a_link_that_could_lead_out_is_not_made(served: Served, link: str) -> None:
    with pytest.raises(ValueError, match="which is not in the trial's folder"):
        served.answer(Put(1, f"{TRIAL}/link", link=link))
    assert not os.path.lexists(served.root / TRIAL / "link")


def test_links_inside_are_kept_as_links_and_never_followed(served: Served) -> None:
    served.answer(Put(1, f"{TRIAL}/checkpoints/one/model", 0, b"model"))
    served.answer(Put(2, f"{TRIAL}/checkpoints/two/model", link="../one/model"))
    served.answer(Put(3, f"{TRIAL}/checkpoints/two/up", link="../.."))
    assert (served.root / TRIAL / "checkpoints/two/model").read_bytes() == b"model"
    listed = {file.path: file.link for file in served.answer(Listing(4, f"{TRIAL}/checkpoints/two")).files}
    assert listed == {"model": "../one/model", "up": "../.."}
    for path in ("model", "up/x", "up"):
        with pytest.raises(OSError, match="it is a link, which is not followed"):
            served.answer(Get(5, f"{TRIAL}/checkpoints/two/{path}"))
    with pytest.raises(OSError, match="it is a link, which is not followed"):
        served.answer(Put(6, f"{TRIAL}/checkpoints/two/up/x", 0, b"x"))
    served.answer(Put(7, f"{TRIAL}/checkpoints/two/model", 0, b"its own"))
    assert (served.root / TRIAL / "checkpoints/one/model").read_bytes() == b"model"


def test_links_that_are_there_lead_nowhere(served: Served, tmp_path: Path) -> None:
    """Whoever made them: a train function on this machine may have."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    folder = served.root / TRIAL
    folder.mkdir()
    (folder / "way").symlink_to(outside)
    (folder / "leaf").symlink_to(outside / "secret")
    os.mkfifo(folder / "pipe")
    requests: tuple[FileRequest, ...] = (
        Get(1, f"{TRIAL}/leaf"),
        Get(1, f"{TRIAL}/way/secret"),
        Get(1, f"{TRIAL}/pipe"),
        Listing(1, f"{TRIAL}/way"),
        Put(1, f"{TRIAL}/way/new", 0, b"x"),
        Put(1, f"{TRIAL}/way/secret", link="x"),
        Settle(1, f"{TRIAL}/way/.saving.0.a", "x", replaces=("secret",)),
    )
    for request in requests:
        with pytest.raises(OSError, match=r"it is a link|it is not a plain file"):
            served.answer(request)
    served.answer(Put(1, f"{TRIAL}/leaf", 0, b"mine"))
    served.answer(Put(1, f"{TRIAL}/.saving.0.a/state", 0, b"x"))
    (folder / ".saving.0.a/link").symlink_to(outside / "secret")
    served.answer(Settle(1, f"{TRIAL}/.saving.0.a", "kept", replaces=("way", "leaf")))
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_a_trial_that_is_a_link_leads_nowhere(served: Served) -> None:
    (served.root / TRIAL).symlink_to(served.root)
    for request in (Get(1, f"{TRIAL}/index.sqlite"), Put(1, f"{TRIAL}/index.sqlite", 0, b"x"), Listing(1, TRIAL)):
        with pytest.raises(OSError, match="it is a link, which is not followed"):
            served.answer(request)
    assert (served.root / "index.sqlite").read_text() == "secret"


def test_names_that_are_not_text_are_not_listed(served: Served) -> None:
    served.answer(Put(1, f"{TRIAL}/logs/good", 0, b"x"))
    (served.root / TRIAL / "logs" / os.fsdecode(b"bad\xff")).touch()
    assert [file.path for file in served.answer(Listing(2, f"{TRIAL}/logs")).files] == ["good"]


def half_sent(served: Served, trial: str = TRIAL) -> list[Path]:
    """Send the beginning of a checkpoint of a trial, and one of each of two servers; returns where they lie."""
    rights = served.files.rights(int(trial.rpartition("/")[2]))
    parents = [f"{trial}/checkpoints", f"{trial}/servers/0", f"{trial}/servers/1"]
    for parent in parents:
        served.answer(Put(1, f"{parent}/000001-step1/state.bin", data=b"whole"), rights)
        served.answer(Put(2, f"{parent}/.saving.0.ab.wire/state/part.bin", data=b"the beginn"), rights)
    return [served.root / parent / ".saving.0.ab.wire" for parent in parents]


def test_what_was_sent_in_part_to_a_dead_driver_is_removed(served: Served, tmp_path: Path) -> None:
    left = [*half_sent(served), *half_sent(served, "experiments/one/trials/0007")]
    other = half_sent(served, "experiments/one/trials/0008")
    elsewhere = (served.root / "experiments/one/trials/0008").rename(tmp_path / "elsewhere")
    (served.root / "experiments/one/trials/0008").symlink_to(elsewhere)
    logs = served.root / TRIAL / "logs/.saving.0.of-the-user"
    logs.mkdir(parents=True)
    sweep_trials(ProjectFolder(served.root).experiment("one"))
    assert not [path for path in left if path.exists()]
    assert all((path.parent / "000001-step1/state.bin").read_bytes() == b"whole" for path in left)
    assert all(path.exists() for path in other), "no link leads elsewhere"
    assert logs.exists()


def test_there_may_be_nothing_to_remove(served: Served) -> None:
    served.files.sweep(99)
    (served.root / "experiments/one/trials/a file").touch()
    sweep_trials(ProjectFolder(served.root).experiment("one"))
    sweep_trials(ProjectFolder(served.root).experiment("three"))
