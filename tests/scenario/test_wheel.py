"""The wheel: what it holds, and that a fresh environment with it does what the README says."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.snippets import find_snippets

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 600.0
FRAMEWORKS = {"demo", "keras", "torch"}
"""Extras that bring frameworks of deep learning: users have theirs, and the wrong build is gigabytes."""


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (path,) = folder.glob("cargobike-*.whl")
    return path


def test_all_is_every_extra_but_frameworks() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    names = re.fullmatch(r"cargobike\[([a-z0-9,]+)\]", everything)
    assert names
    assert names[1].split(",") == sorted(set(extras) - FRAMEWORKS - {"all"})


@pytest.mark.slow
def test_it_holds_every_file_of_the_package(wheel: Path) -> None:
    tracked = run("git", "ls-files", "src/cargobike", cwd=ROOT).split()
    held = set(zipfile.ZipFile(wheel).namelist())
    assert len(tracked) > 1000
    assert [name for name in tracked if name.removeprefix("src/") not in held] == []


@pytest.mark.slow
def test_a_fresh_environment_runs_the_smallest_program(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    program = next(snippet for snippet in find_snippets((ROOT / "README.md").read_text()) if snippet.mark == "launch")
    (tmp_path / "program.py").write_text(program.code)
    assert "layers" in run(python, "-I", "program.py", cwd=tmp_path)
    assert "30/30" in run(tmp_path / "venv" / "bin" / "cargobike", "ls", cwd=tmp_path)
    installed = {line.partition("==")[0].lower() for line in run(python, "-m", "pip", "freeze", cwd=tmp_path).split()}
    assert not installed & {"torch", "pyarrow", "pandas", "pyspark", "fastapi", "optuna", "plotly", "duckdb"}


@pytest.mark.slow
def test_all_extras_fit_together_and_every_door_opens(wheel: Path, tmp_path: Path) -> None:
    """Everything that `all` asks for is in the environment of the tests, so that pip has nothing to fetch."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(python, "-m", "pip", "install", "--no-index", f"cargobike[all] @ {wheel.as_uri()}", cwd=tmp_path)
    doors = "data, experiment, features, models, monitoring, pipelines, serving, sharing"
    code = f"import cargobike; from cargobike import {doors}; print(cargobike.__file__)"
    assert str(site) in run(python, "-I", "-c", code, cwd=tmp_path)
