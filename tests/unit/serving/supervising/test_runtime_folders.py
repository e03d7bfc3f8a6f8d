"""The folder where the processes of a deployment meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.errors import DeploymentError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.supervising.runtime import prepare_folder, remove_folder, runtime_folder, secret_of


def test_each_deployment_of_each_project_has_a_short_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in (str(tmp_path), str(tmp_path / ("x" * 100)), ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", run)
        names = [(ProjectFolder(Path("/a")), "m"), (ProjectFolder(Path("/a")), "n"), (ProjectFolder(Path("/b")), "m")]
        folders = [runtime_folder(project, name) for project, name in names]
        assert len(set(folders)) == 3
        assert all(len(str(folder)) < 80 for folder in folders)


def test_it_is_closed_to_others_and_its_secret_stays_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "abc"
    prepare_folder(folder)
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    secret = secret_of(folder)
    assert secret_of(folder) == secret
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    remove_folder(folder)
    assert not folder.parent.exists()


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "abc"
    folder.mkdir(parents=True, mode=0o755)
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(DeploymentError, match="must be yours alone"):
        prepare_folder(folder)
    (tmp_path / "run").chmod(0o700)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(DeploymentError, match="must be yours alone"):
        prepare_folder(folder)
