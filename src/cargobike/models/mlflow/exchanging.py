"""Versions written as folders of MLflow, and such folders registered as versions."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import REQUIREMENTS
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.files import folder_files
from cargobike.models.flavours.flavour import Saved
from cargobike.models.front import get
from cargobike.models.mlflow.exporting import export_mlflow as write_folder
from cargobike.models.mlflow.importing import import_mlflow as read_folder
from cargobike.models.naming import check_name
from cargobike.models.record import EXAMPLE, FILES_ONLY, MODEL, is_plain
from cargobike.models.version import ModelVersion
from cargobike.models.writing import Draft, commit_draft
from cargobike.store.files import project


def export_mlflow(reference: str, folder: str | os.PathLike[str]) -> Path:
    """Write a version as a folder of MLflow, which loads it as a Python function, and natively where it can.

    Args:
        reference: The version: `digits:3`, `digits@champion`, or the newest, `digits`.
        folder: Where to; made if it is not there, and empty.

    Returns:
        The folder.

    Raises:
        NotFoundError: If there is no such version.
        InvalidInputError: If the folder is not empty, or the version only holds files.
    """
    version, target = get(reference), Path(folder)
    if version.flavour == FILES_ONLY:
        raise InvalidInputError(f"{version.reference} holds files and cannot predict; MLflow could do nothing with it.")
    manifest = version.manifest
    saved = Saved(
        flavour=manifest.flavour, details=manifest.details, libraries=manifest.libraries, runs_code=manifest.runs_code
    )
    write_folder(
        target,
        files=version.folder() / MODEL.rstrip("/"),
        saved=saved,
        title=version.reference,
        signature=version.signature,
        example=version.example,
        requirements=_packages(version.requirements),
        about={
            "fingerprint": version.fingerprint,
            "metrics": {name: value for name, value in manifest.metrics.items() if isinstance(value, int | float)},
            "description": version.description,
        },
    )
    return target


def import_mlflow(folder: str | os.PathLike[str], name: str) -> ModelVersion:
    """Register a folder of MLflow as the next version of a model; no code of it is run.

    scikit-learn, torch, Keras and ONNX need no MLflow; other folders are kept whole, and MLflow runs them.

    Args:
        folder: The folder, which holds a file `MLmodel`.
        name: What the model is called in this project.

    Returns:
        The version. If loading it runs code, `predict` and `predictor` ask for `trust=True`.

    Raises:
        InvalidInputError: If that is no folder of MLflow, or one that cannot be kept.
    """
    check_name(name)
    source = Path(folder)
    with tempfile.TemporaryDirectory(prefix="cargobike-model-") as temporary:
        made = Path(temporary)
        read = read_folder(source, made / MODEL.rstrip("/"))
        if read.example is not None:
            (made / EXAMPLE).write_text(json.dumps(read.example), encoding="utf-8")
        if read.requirements:
            (made / REQUIREMENTS).write_text(read.requirements, encoding="utf-8")
        files = folder_files(made, links=False)
        if unfit := [path for path in files if not is_plain(path)]:
            raise InvalidInputError(f"{source} holds files that cannot be kept: {', '.join(map(repr, unfit[:5]))}.")
        draft = Draft(
            name=name,
            saved=read.saved,
            files=files,
            signature=read.signature,
            imported_from=os.path.abspath(source),
        )
        catalogue = Catalogue(project.prepare())
        manifest = commit_draft(catalogue, draft)
    return ModelVersion(catalogue, catalogue.model(name), manifest.version, manifest=manifest)


def _packages(lock: str) -> str:
    """Return the lines of a lock file that pip can install anywhere: no folders of this machine, no comments."""
    lines = (line.strip() for line in lock.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("#", "-", "/", ".")))
