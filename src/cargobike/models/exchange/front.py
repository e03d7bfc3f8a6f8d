"""Takes versions out of a project and into one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.packed_numbers import unpack_numbers
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.exchange.archives import read_archive, write_archive
from cargobike.models.flavours.flavour import Saved
from cargobike.models.front import get
from cargobike.models.mlflow.exchanging import export_mlflow, import_mlflow
from cargobike.models.naming import check_name
from cargobike.models.version import ModelVersion
from cargobike.models.writing import Draft, commit_draft
from cargobike.store.files import project

Format = Literal["cargobike", "mlflow"]
_MLMODEL = "MLmodel"


def export_to(reference: str, path: str | os.PathLike[str], *, format: Format = "cargobike") -> Path:
    """Write a version into one file (`.tar`, `.tar.gz`, `.zip`) or a folder, or as a folder of MLflow.

    Args:
        reference: The version: `digits:3`, `digits@champion`, `digits`.
        path: Where to; nothing may lie there.
        format: `"cargobike"`, which keeps everything, or `"mlflow"`.

    Raises:
        InvalidInputError: If something lies there already, or it cannot be written like that.
    """
    target = Path(path)
    if format == "cargobike":
        version = get(reference)
        write_archive(version.manifest, version.folder(), target)
        return target
    if format != "mlflow":
        raise InvalidInputError(f"format={format!r} was given; allowed are 'cargobike' and 'mlflow'.")
    return export_mlflow(reference, target)


def import_from(path: str | os.PathLike[str], name: str = "") -> ModelVersion:
    """Take a version from an archive or folder into the project, as the next version of its name.

    What was brought in is not trusted: code of it is loaded only by those who say `trust=True`.

    Args:
        path: What `export_to` wrote, or a folder of MLflow.
        name: What to call the model; by default what it was called, which a folder of MLflow does not say.

    Raises:
        StoreError: If it is no such archive or folder, or damaged.
    """
    source = Path(path)
    if name:
        check_name(name)
    if (source / _MLMODEL).is_file():
        if not name:
            raise InvalidInputError(f"{source} is a folder of MLflow, which does not name the model; give name=….")
        return import_mlflow(source, name)
    catalogue = Catalogue(project.prepare())
    with tempfile.TemporaryDirectory(prefix="cargobike-model-") as temporary:
        folder = Path(temporary, "files")
        folder.mkdir()
        manifest = commit_draft(catalogue, _from_archive(source, folder, name))
    return ModelVersion(catalogue, catalogue.model(manifest.name), manifest.version, manifest=manifest)


def _from_archive(source: Path, folder: Path, name: str) -> Draft:
    manifest = read_archive(source, folder)
    return Draft(
        name=name or manifest.name,
        saved=Saved(
            flavour=manifest.flavour,
            details=manifest.details,
            libraries=manifest.libraries,
            runs_code=manifest.runs_code,
        ),
        files={entry.path: folder / entry.path for entry in manifest.files},
        signature=manifest.signature,
        metrics=unpack_numbers(manifest.metrics),
        description=manifest.description,
        tags=manifest.tags,
        training=manifest.training,
        imported_from=f"{source.name} ({manifest.name}:{manifest.version} of {manifest.user or '?'}@{manifest.host})",
    )
