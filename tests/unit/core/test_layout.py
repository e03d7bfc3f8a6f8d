"""Where things lie in a project."""

from __future__ import annotations

from pathlib import Path

from cargobike.core.layout import ProjectFolder


def test_an_experiment_knows_its_project_and_a_trial_its_files(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    experiment = project.experiment("20270115-080000-test")
    assert experiment.project == project
    trial = experiment.trial(7)
    assert trial.files == experiment.root / "files" / "0007"
    assert trial.output("stdout") == trial.stdout
    assert trial.output("stderr", 2).name == "stderr.rank2.log"


def test_journals_are_found_but_not_in_hidden_folders(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    assert list(project.journals) == []
    for name in ("a", "b", ".importing-c"):
        folder = project.experiment(name)
        folder.root.mkdir(parents=True)
        folder.journal.touch()
    assert sorted(path.parent.name for path in project.journals) == ["a", "b"]


def test_what_was_sent_and_kept_lies_beside_each_other(tmp_path: Path) -> None:
    folder = ProjectFolder(tmp_path).experiment("e")
    files = [folder.snapshot, folder.payload, folder.function, folder.sources, folder.requirements, folder.git_diff]
    assert {path.parent for path in files} == {folder.code}
    assert len({path.name for path in files}) == len(files)
