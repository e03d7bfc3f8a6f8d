"""`cargobike doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated, Final, Literal

import typer

from cargobike.cli.printing import cell, print_json, print_table, table
from cargobike.core import layout, settings
from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.package import PACKAGE_FOLDER
from cargobike.core.records import ExperimentState
from cargobike.core.version import __version__
from cargobike.engines.local import devices
from cargobike.engines.local.leftovers import end_orphans
from cargobike.experiments.commands.opening import unread_folders
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.index.opening import open_index
from cargobike.store.files import project
from cargobike.store.history.environment import without_credentials
from cargobike.store.index.consent import allow, is_allowed
from cargobike.store.index.opening import rebuild_all, url_in_settings

_LIBRARIES: Final = (
    "msgspec",
    "pyzmq",
    "cloudpickle",
    "sqlalchemy",
    "rich",
    "typer",
    "torch",
    "numpy",
    "pandas",
)
_TIGHT_BYTES: Final = 1 << 30
_FULL_BYTES: Final = 100 << 20
_STALE_S: Final = 3600.0
_TEMPORARY: Final = (
    f"{layout.EXPERIMENTS}/.removing-*",
    f"{layout.EXPERIMENTS}/*/{layout.TRIALS}/*/{layout.CHECKPOINTS}/.saving.*",
)
_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked, and what came out."""

    name: str
    status: Literal["ok", "warning", "problem"]
    detail: str


def doctor(
    reindex: Annotated[bool, typer.Option("--reindex", help="Make the index anew from all journals.")] = False,
    allow_index: Annotated[
        bool, typer.Option("--allow-index", help="Use the index that the project's settings name, from now on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look for problems with this machine and this project; exits with 1 if there are any."""
    if allow_index:
        _allow_index(project.current())
    checks = list(_checks(project.current(), reindex=reindex))
    is_healthy = all(check.status != "problem" for check in checks)
    if as_json:
        items = [{"name": check.name, "status": check.status, "detail": check.detail} for check in checks]
        print_json({"healthy": is_healthy, "checks": items})
    else:
        grid = table("STATUS", "CHECK", "DETAIL")
        grid.show_header = False
        for check in checks:
            grid.add_row(cell(check.status, _STYLES[check.status]), cell(check.name), cell(check.detail))
        print_table(grid)
    if not is_healthy:
        raise typer.Exit(1)


def _allow_index(folder: ProjectFolder) -> None:
    url = url_in_settings(folder)
    if not url:
        raise InvalidInputError(f"{folder.settings} names no index, so there is nothing to allow.")
    allow(folder, url)


def _checks(folder: ProjectFolder, *, reindex: bool) -> Iterator[Check]:
    yield Check("cargobike", "ok", f"{__version__} in {PACKAGE_FOLDER}")
    yield Check("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield Check("libraries", "ok", ", ".join(_versions()))
    yield Check("cores", "ok", f"{devices.get_num_cpus()} of {os.cpu_count()}")
    yield Check("memory", "ok", _memory())
    yield Check("gpus", "ok", _gpus())
    yield from _folder_checks(folder)
    yield from _experiment_checks(folder, reindex=reindex)
    yield from _stale_checks(folder)
    if count := end_orphans():
        yield Check("processes", "ok", f"ended what trials of {count} killed drivers had left running")


def _folder_checks(folder: ProjectFolder) -> Iterator[Check]:
    if not folder.root.exists():
        yield Check("project", "ok", f"{folder.root}, not created yet")
        return
    try:
        with tempfile.NamedTemporaryFile(dir=folder.root, prefix=".doctor-"):
            yield Check("project", "ok", f"{folder.root}, writable")
    except OSError as error:
        yield Check("project", "problem", f"{folder.root} cannot be written to: {error.strerror}")
    free = shutil.disk_usage(folder.root).free
    status: Literal["ok", "warning", "problem"] = "ok"
    if free < _TIGHT_BYTES:
        status = "problem" if free < _FULL_BYTES else "warning"
    yield Check("disk", status, f"{free / 2**30:.1f} GiB free")


def _experiment_checks(folder: ProjectFolder, *, reindex: bool) -> Iterator[Check]:
    try:
        with open_index(folder) as index:
            if reindex:
                rebuild_all(folder)
            else:
                index.sync()
            rows = index.experiments()
    except CargobikeError as error:
        yield Check("index", "problem", str(error))
        return
    if not settings.index_url() and (url := url_in_settings(folder)) and not is_allowed(folder, url):
        detail = f"{folder.settings} names {without_credentials(url)}, which you have not allowed: --allow-index"
        yield Check("index", "warning", detail)
    word = "made anew" if reindex else "up to date"
    yield Check("index", "ok", f"{word}, {len(rows)} experiments, {sum(row.trials for row in rows)} trials")
    for row in rows:
        yield from _row_checks(row)
    for name, why in unread_folders(folder, {row.id for row in rows}):
        yield Check(name, "problem", why)


def _row_checks(row: ExperimentRow) -> Iterator[Check]:
    if row.problem:
        yield Check(row.id, "problem", row.problem)
    elif row.state is ExperimentState.LOST:
        torn = f", the last {row.torn_bytes} bytes of its journal are torn and ignored" if row.torn_bytes else ""
        detail = f"lost: its driver died{torn}; what it learned is kept: cargobike show {row.id}"
        yield Check(row.id, "problem", detail)
    elif row.torn_bytes and row.state is not ExperimentState.RUNNING:
        yield Check(row.id, "problem", f"{row.torn_bytes} torn bytes at the end of its journal are ignored")


def _stale_checks(folder: ProjectFolder) -> Iterator[Check]:
    before = time.time() - _STALE_S
    stale = [path for pattern in _TEMPORARY for path in folder.root.glob(pattern) if path.lstat().st_mtime < before]
    if stale:
        some = ", ".join(str(path.relative_to(folder.root)) for path in stale[:3])
        yield Check("leftovers", "warning", f"{len(stale)} temporary folders may be deleted: {some}")


def _versions() -> Iterator[str]:
    for name in _LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def _memory() -> str:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_AVPHYS_PAGES" in os.sysconf_names else 0
    return f"{total / 2**30:.1f} GiB" + (f", {free / 2**30:.1f} GiB free" if free else "")


def _gpus() -> str:
    try:
        process = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "none found (no nvidia-smi)"
    lines = [line.partition(" (UUID")[0] for line in process.stdout.splitlines()]
    return "; ".join(lines) or "none"
