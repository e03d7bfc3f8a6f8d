"""Makes an environment from the packages that an experiment recorded, and repeats the experiment in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.records import Trial
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.results.reproduction import Reproduction
from cargobike.store.files import project
from cargobike.store.history.snapshot import Snapshot, read_snapshot

_INSTALL_S = 3600.0


def reproduce_in_fresh_environment(
    experiment_id: ExperimentLike,
    *,
    trial: Trial | int | str | None,
    tolerance: float,
    workers: int | None,
    engine: object,
    quiet: bool,
) -> Reproduction:
    """Make the environment, and repeat the experiment with its Python; the arguments are those of `reproduce`."""
    if not isinstance(engine, str):
        raise InvalidInputError("fresh_env=True needs the name of an engine, such as 'local': another process uses it.")
    folder = find_experiment(experiment_id)
    snapshot = read_snapshot(folder)
    if snapshot is None:
        raise StoreError(f"{folder.id} has no snapshot: which packages it ran with is unknown.")
    python = make_environment(folder, snapshot)
    command = [str(python), "-m", "cargobike.cli", "--project", str(project.current().root), "reproduce", folder.id]
    command += ["--json", "--tolerance", repr(tolerance)]
    command += [] if trial is None else ["--trial", str(trial.number if isinstance(trial, Trial) else trial)]
    command += [] if workers is None else ["--workers", str(workers)]
    process = subprocess.run(
        command,
        env=_variables(snapshot),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        check=False,
    )
    try:
        return msgspec.json.decode(process.stdout, type=Reproduction)
    except UNDECODABLE:
        output = (process.stderr or process.stdout).decode(errors="replace").strip()
        raise StoreError(f"{folder.id} could not be repeated in {python.parents[1]}:\n{output}") from None


def make_environment(folder: ExperimentFolder, snapshot: Snapshot) -> Path:
    """Make a virtual environment from the recorded packages, once; returns its Python.

    Raises:
        StoreError: If there is no such version of Python, or a package cannot be installed.
    """
    lock = folder.requirements.read_text("utf-8")
    packages = [line for line in lock.splitlines() if line and not line.startswith("#")]
    version = ".".join(snapshot.environment.python.split(".")[:2])
    key = hashlib.sha256("\n".join([version, *packages]).encode()).hexdigest()[:16]
    environment = project.prepare().environments / key
    python = environment / "bin" / "python"
    if (environment / "complete").exists():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    environment.parent.mkdir(exist_ok=True)
    _run([_find_python(version), "-m", "venv", "--without-pip", str(environment)], "the environment cannot be made")
    if packages:
        (environment / "requirements.txt").write_text("\n".join(packages) + "\n")
        install = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
        _run(
            [*install, "--no-deps", "--no-compile", "-r", str(environment / "requirements.txt")],
            "the recorded packages cannot be installed (for those that were built here, or are not offered any more, "
            f"edit {folder.requirements} by hand)",
        )
    (environment / "complete").touch()
    return python


def _find_python(version: str) -> str:
    if sysconfig.get_python_version() == version:
        return sys.executable
    path = shutil.which(f"python{version}")
    if path is None:
        raise StoreError(f"It ran with Python {version}, and there is no python{version} here; install it first.")
    return path


def _variables(snapshot: Snapshot) -> dict[str, str]:
    """Return the variables for the process: those of this one, and those that were recorded."""
    variables = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    variables |= snapshot.environment.variables
    if "cargobike" not in snapshot.environment.packages or "cargobike" in snapshot.environment.urls:
        variables["PYTHONPATH"] = PACKAGE_PARENT  # it was not installed from an index: ours is used
    return variables


def _run(command: list[str], problem: str) -> None:
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"{problem}: {error}") from error
    if process.returncode:
        output = "\n".join((process.stderr or process.stdout).strip().splitlines()[-8:])
        raise StoreError(f"{problem}:\n{output}")
