"""The snapshot of an experiment: the code, the environment and the files that it was launched with.

It lies in the experiment's `code` folder. `snapshot.json` is written last but one and atomically (a file is either
whole or not there), so that a reader never sees half of it; versioned resources, which may be large, follow.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.plain_files import read_plain
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.resources import Resource, keep_bytes, keep_resources
from cargobike.store.history.environment import Environment, read_environment
from cargobike.store.history.git_state import GitState, read_git
from cargobike.store.history.sources import Sources, collect_sources, is_own

_SECRET: Final = re.compile(r"(?i)(pass(word|wd|phrase)?|secret|token|api[-_]?key|credential)")
_NOTEBOOK_BYTES: Final = 16 << 20
_log = logging.getLogger(__name__)


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """What launched the experiment; `file` is the name of its copy in the code folder, empty if there is none."""

    kind: Literal["script", "notebook", "interactive"]
    path: str = ""
    file: str = ""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to say what was run, and to run it again.

    Attributes:
        at: When it was taken, seconds since the epoch.
        directory: The working directory of the launch.
        arguments: The command line, values that look like secrets left out.
        problems: What could not be kept, and why.
        is_complete: Whether the versioned resources are there, too.
    """

    at: float
    version: int = 1
    directory: str = ""
    arguments: tuple[str, ...] = ()
    launcher: Launcher | None = None
    git: GitState | None = None
    sources: Sources = Sources()
    environment: Environment = Environment()
    resources: tuple[Resource, ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True


def read_snapshot(folder: ExperimentFolder) -> Snapshot | None:
    """Return the snapshot of an experiment; `None` if there is none or it cannot be understood."""
    try:
        return msgspec.json.decode(read_plain(folder.snapshot), type=Snapshot)
    except (OSError, *UNDECODABLE):
        return None


def take_snapshot(
    folder: ExperimentFolder,
    *,
    function_file: str,
    directory: str,
    resources: tuple[Path, ...] = (),
    remark: str = "",
) -> Snapshot:
    """Keep the code and the environment of this process in an experiment's folder.

    Args:
        folder: Whose snapshot this is.
        function_file: File that the train function is defined in, if it is in one.
        directory: The working directory at launch.
        resources: Files and folders to keep.
        remark: Recorded among the problems.
    """
    code = folder.code
    code.mkdir(parents=True, exist_ok=True)
    problems: list[str] = [remark] if remark else []
    launcher, start = _keep_launcher(code, function_file, problems)
    home = start.parent if start is not None else Path(directory)
    state, diff = read_git(home) or (None, b"")
    if state is not None:
        _write(folder.git_diff, diff)
    repository = Path(state.root) if state is not None else None
    sources, packed = collect_sources(repository, None if start is None else home)
    keep_bytes(packed, folder.sources, folder.project.resource_pool)
    environment = read_environment()
    _write(folder.requirements, environment.lock().encode())
    snapshot = Snapshot(
        at=time.time(),
        directory=directory,
        arguments=tuple(without_secrets(sys.argv)),
        launcher=launcher,
        git=state,
        sources=sources,
        environment=environment,
        problems=tuple(problems),
        is_complete=not resources,
    )
    _write(folder.snapshot, _encode(snapshot))
    if resources:
        snapshot = _with_resources(snapshot, folder, resources)
        _write(folder.snapshot, _encode(snapshot))
    return snapshot


def without_secrets(arguments: list[str]) -> list[str]:
    """Return a command line with the values of options that sound like secrets replaced by `***`."""
    words: list[str] = []
    hide_next = False
    for one in arguments:
        name, separator, _ = one.partition("=")
        sounds_secret = one.startswith("-") and bool(_SECRET.search(name))
        if hide_next and not one.startswith("-"):
            words.append("***")
        elif separator and (sounds_secret or _SECRET.search(name)):
            words.append(f"{name}=***")
        else:
            words.append(one.encode("utf-8", "backslashreplace").decode())
        hide_next = sounds_secret and not separator
    return words


def _with_resources(snapshot: Snapshot, folder: ExperimentFolder, paths: tuple[Path, ...]) -> Snapshot:
    project = folder.project
    try:
        kept = keep_resources(paths, folder.resources, project.resource_pool, Path(snapshot.directory))
    except (OSError, CargobikeError) as error:
        problem = f"versioned_resources could not be kept: {error}"
        _log.warning("%s: %s", folder.id, problem)
        return msgspec.structs.replace(snapshot, problems=(*snapshot.problems, problem))
    return msgspec.structs.replace(snapshot, resources=tuple(kept), is_complete=True)


def _keep_launcher(code: Path, function_file: str, problems: list[str]) -> tuple[Launcher | None, Path | None]:
    """Copy the script or notebook that launched; returns it and the file from which own modules are looked for."""
    main = vars(sys.modules["__main__"])
    if isinstance(main.get("In"), list):
        return _keep_notebook(code, main, problems)
    for file in (main.get("__file__"), function_file):
        path = Path(os.path.abspath(file)) if isinstance(file, str) else None
        # An installed program (pytest, torchrun, our own command) is not the user's launcher.
        if path is not None and path.is_file() and is_own(path) and path.suffix:
            kept = _copy(path, code / "launcher.py", problems)
            return Launcher(kind="script", path=str(path), file="launcher.py" if kept else ""), path
    return Launcher(kind="interactive"), None


def _keep_notebook(code: Path, main: Mapping[str, Any], problems: list[str]) -> tuple[Launcher, Path | None]:
    """Keep the cells as they were run and, where its name is known, the notebook as it was last saved."""
    cells = [str(cell) for cell in main["In"]]
    text = "".join(f"# %% [{number}]\n{cell.rstrip()}\n\n" for number, cell in enumerate(cells) if cell.strip())
    _write(code / "cells.py", text.encode("utf-8", "backslashreplace"))
    name = main.get("__vsc_ipynb_file__") or main.get("__session__") or os.environ.get("JPY_SESSION_NAME") or ""
    path = Path(os.path.abspath(name)) if name else None
    if path is not None and path.suffix == ".ipynb" and path.is_file():
        kept = _copy(path, code / "launcher.ipynb", problems)
        return Launcher(kind="notebook", path=str(path), file="launcher.ipynb" if kept else "cells.py"), path
    return Launcher(kind="notebook", path=str(name), file="cells.py"), None


def _copy(source: Path, target: Path, problems: list[str]) -> bool:
    try:
        if source.stat().st_size > _NOTEBOOK_BYTES:
            problems.append(f"{source} is too large to be kept ({source.stat().st_size >> 20} MiB)")
            return False
        _write(target, source.read_bytes())
    except OSError as error:
        problems.append(f"{source} could not be kept: {error.strerror}")
        return False
    return True


def _encode(snapshot: Snapshot) -> bytes:
    return msgspec.json.format(msgspec.json.encode(snapshot), indent=1)


def _write(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)
