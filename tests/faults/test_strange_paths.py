"""Strange paths, full disks, vanished directories, half characters: everything works, or one clear error says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app
from cargobike.core.errors import ExperimentFailedError, InvalidInputError
from support.scripts import environment

TRAIN = """
import os, sys
from cargobike import experiment

def train(x):
    return x
"""
LAUNCH = """
try:
    print("value", experiment.launch(train, {"x": [1.0]}, quiet=True, workers=1).best.value)
except experiment.CargobikeError as error:
    print("refused:", error)
""".replace("experiment.CargobikeError", "errors.CargobikeError").replace("try:", "from cargobike import errors\ntry:")
LISTING = """
from cargobike.cli.app import main
sys.argv = ["cargobike", "ls"]
main()
"""


def give_back(x: float) -> float:
    return x


def fail_with_half_a_character(x: float) -> float:
    raise ValueError("half a character: \ud800, and a byte: \udcff")


def run(text: str, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", text],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    "name",
    ["100%41 %zz ?mode=memory#part&x=1 'it' \"is\" $HOME \\ odd", "/".join(["d" * 200] * 4)],
    ids=["odd-characters", "very-long"],
)
def test_a_project_may_have_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    project = tmp_path / name
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(project))
    before = set(tmp_path.iterdir())
    result = experiment.launch(give_back, {"x": [1.0]}, quiet=True, workers=1)
    assert [trial.value for trial in result.trials] == [1.0]
    for command in (["ls"], ["show", "last"], ["doctor"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    assert result.id in CliRunner().invoke(app, ["ls"]).stdout
    assert (project / "index.sqlite").exists() or len(str(project)) > 480, "SQLite opens no longer paths"
    assert len(set(tmp_path.iterdir()) - before) == 1, "nothing lies elsewhere"


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", os.path.join(str(tmp_path), "caf\udce9"))
    with pytest.raises(InvalidInputError, match=r"caf\\udce9' is not UTF-8"):
        experiment.launch(give_back, {"x": [1.0]}, quiet=True, workers=1)
    listed = run("import sys" + LISTING, CARGOBIKE_PROJECT=os.path.join(str(tmp_path), "caf\udce9"))
    assert (listed.returncode, r"caf\udce9" in listed.stdout) == (0, True), listed
    folder = tmp_path / "th\udce9"
    folder.mkdir()
    (folder / "script.py").write_text(TRAIN + LAUNCH)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**environment(), "CARGOBIKE_PROJECT": str(tmp_path / "fine")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.startswith("refused: "), done
    assert "cannot be sent to workers" in done.stdout


def test_a_working_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = "import os, sys, tempfile\nhere = tempfile.mkdtemp()\nos.chdir(here)\nos.rmdir(here)\n"
    done = run(gone + TRAIN + LAUNCH, CARGOBIKE_PROJECT=str(tmp_path / "project"))
    assert "refused: The working directory of this process was deleted" in done.stdout, done
    listed = run(gone + LISTING, CARGOBIKE_PROJECT="")
    assert "The working directory of this process was deleted" in listed.stderr
    assert "Traceback" not in listed.stderr
    assert run(gone + LISTING, CARGOBIKE_PROJECT=str(tmp_path / "project")).returncode == 0


@pytest.mark.parametrize("size", ["full", "16k"])
def test_a_full_disk_at_the_start_is_said(tmp_path: Path, size: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    fill = 'dd if=/dev/zero of="$0/filler" 2> /dev/null;' if size == "full" else ""
    mount = f'mount -t tmpfs -o size={"16k" if size == "full" else size} tmpfs "$0" || exit 77; {fill} exec "$@"'
    mounted = ["unshare", "--mount", "sh", "-c", mount, str(disk)]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us mount")
    done = run(TRAIN + LAUNCH + LISTING, *mounted, CARGOBIKE_PROJECT=str(disk / "project"))
    assert done.stdout.startswith("refused: "), done
    assert "No space left on device" in done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr.count("\n") <= 2, done.stderr


def test_an_exception_with_half_a_character_is_shown_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    with pytest.raises(ExperimentFailedError) as caught:
        experiment.launch(fail_with_half_a_character, {"x": [1.0, 2.0]}, quiet=True, workers=1)
    assert r"ValueError: half a character: \ud800, and a byte: \udcff" in str(caught.value)
    shown = CliRunner().invoke(app, ["show", "last"])
    assert r"ValueError: half a character: \ud800" in shown.stdout


def test_a_text_with_half_a_character_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    with pytest.raises(InvalidInputError, match=r"'a\\ud800' holds half of a character"):
        experiment.launch(give_back, {"x": ["a\ud800", "b"]}, quiet=True, workers=1)
