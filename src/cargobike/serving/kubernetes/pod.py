"""What the container of a pod runs: the deployment of a specification file, until the pod is told to end."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError, DeploymentError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.modelling import model_keeper
from cargobike.serving.deploying import launch_deployment
from cargobike.serving.handle import Deployment
from cargobike.serving.specification import Specification
from cargobike.serving.supervising.config import Local, Scope
from cargobike.store.files import project
from cargobike.store.history.environment import without_credentials

_SCOPES: Final[dict[str, list[Scope]]] = {"predict": ["predict"], "administer": ["predict", "administer"]}
_SHORTEST: Final = 16


def start_in_pod(specification: Path, tokens: Path, pull: str = "") -> Deployment:
    """Serve what a file says, to callers whose tokens lie in a folder; ends with this process.

    Args:
        specification: A `Specification` as JSON.
        tokens: A mounted Secret: files `predict` and `administer`, with a token in each line.
        pull: The address of a project that the model is copied from first; empty if it is here.

    Raises:
        InvalidInputError: If the file cannot be understood, a token is too short, or there is none.
        DeploymentError: If the model cannot be served, or not be copied.
    """
    asked = read_specification(specification)
    missing = [name for name in asked.environment if name not in os.environ]
    if missing:
        raise InvalidInputError(
            f"{asked.name} needs the environment variables {', '.join(missing)}, which are not set."
        )
    local = Local(
        tokens=read_tokens(tokens),
        environment={name: os.environ[name] for name in asked.environment},
        paths=tuple(os.path.abspath(path) for path in sys.path),
    )
    here = project.prepare()
    if pull:
        _pull(asked.model, pull, here)
    return launch_deployment(here, asked, local, detach=False)


def _pull(model: str, source: str, here: ProjectFolder) -> None:
    """Copy a version of a model into the pod's own project; what a container that was restarted has, stays."""
    project.use(source)
    try:
        model_keeper().get(model).copy_to(here)
    except CargobikeError as error:
        raise DeploymentError(f"{model} cannot be taken from {without_credentials(source)}: {error}") from error
    finally:
        project.use(here.root)


def read_specification(path: Path) -> Specification:
    """Return what a file asks for.

    Raises:
        InvalidInputError: If it cannot be understood.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Specification)
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidInputError(f"{path} holds no specification of a deployment: {error}") from error


def read_tokens(folder: Path) -> dict[str, list[Scope]]:
    """Return the SHA-256 of all tokens of a folder, with what each allows.

    Raises:
        InvalidInputError: If there is none, or one is too short; none is shown.
    """
    tokens: dict[str, list[Scope]] = {}
    for name, scopes in _SCOPES.items():
        try:
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{folder / name} cannot be read: {type(error).__name__}.") from None
        for number, line in enumerate(map(str.strip, lines), 1):
            if 0 < len(line) < _SHORTEST:
                raise InvalidInputError(
                    f"Line {number} of {folder / name} is too short for a token: at least 16 letters."
                )
            if line:
                tokens[hashlib.sha256(line.encode()).hexdigest()] = scopes
    if not tokens:
        raise InvalidInputError(f"{folder} holds no tokens; write one in each line of {' or '.join(_SCOPES)} there.")
    return tokens
