"""A folder from which an image is built and a cluster is told: manifests, Dockerfile, packages, the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import EXPERIMENTS, ProjectFolder
from cargobike.core.registering.modelling import KeptModel
from cargobike.serving.kubernetes.asked import Target
from cargobike.serving.kubernetes.dockerfile import PACKAGES, REQUIREMENTS, clean_lock, dockerfile
from cargobike.serving.kubernetes.pods import Manifest
from cargobike.serving.kubernetes.wheel import write_wheel

_IGNORED: Final = (
    "# Nothing but what the Dockerfile copies reaches the image.\n*\n!packages\n!project\n!requirements.txt\n"
)
_MARK: Final = ".cargobike-render"


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """Return manifests as one file for `kubectl apply -f`."""
    return yaml.safe_dump_all(manifests, sort_keys=False, explicit_start=True, width=100)


def write(
    folder: Path, manifests: Sequence[Manifest], model: KeptModel, *, target: Target, extras: tuple[str, ...]
) -> list[Path]:
    """Write everything into a folder, and return the files to look at; what an earlier call wrote is replaced.

    Args:
        folder: Made if it is not there.
        manifests: What the cluster is to run.
        model: The version that the image holds.
        target: What the manifests are for, which names their file.
        extras: What of Cargobike the image needs.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise InvalidInputError(f"{folder} is not empty, and not from here; choose a new folder with --output.")
    (folder / PACKAGES).mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    (folder / PACKAGES / "README").write_text("Wheels that no index has go here; pip looks into this folder too.\n")
    write_wheel(folder / PACKAGES, extras)
    project = ProjectFolder(folder / "project")
    # The image's file system cannot be written to, so what a project needs must be there.
    (project.root / EXPERIMENTS).mkdir(parents=True, exist_ok=True)
    (project.root / EXPERIMENTS / ".keep").touch()
    model.copy_to(project)
    files = {
        f"{target}.yaml": as_yaml(manifests),
        "Dockerfile": dockerfile(model.requirements, extras=extras),
        REQUIREMENTS: clean_lock(model.requirements).text,
        ".dockerignore": _IGNORED,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files if not name.startswith(".")]
