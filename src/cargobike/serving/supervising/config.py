"""What a supervisor is started with, and what it keeps on this machine only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

import msgspec

from cargobike.serving.record import DeploymentFolder
from cargobike.serving.supervising.hosting import GRACE_S

Scope = Literal["predict", "administer"]


class Local(msgspec.Struct, frozen=True):
    """What must not be in the journal: secrets, and what is true on this machine only.

    Attributes:
        tokens: The SHA-256 of each token, and its scopes.
        environment: Environment variables of the replicas.
        paths: Where Python looks for modules, as it did in the process that deployed.
    """

    tokens: dict[str, list[Scope]] = {}
    environment: dict[str, str] = {}
    paths: tuple[str, ...] = ()


class SupervisorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor is started with, through a pipe: it holds secrets.

    Attributes:
        project: The project's folder.
        name: The name of the deployment.
        specification: What is asked for, as JSON; empty for what the journal says.
        local: What goes with it; `None` for what was kept.
        owner: The process with which the deployment ends; 0 for none.
        grace_s: How long front, hosts and replicas go on without a supervisor.
        step: Names the step of a pipeline that deploys; empty if none does.
    """

    project: str
    name: str
    specification: bytes = b""
    local: Local | None = None
    owner: int = 0
    grace_s: float = GRACE_S
    step: str = ""


class Started(msgspec.Struct, frozen=True):
    """What a supervisor says when the first version serves, or cannot."""

    url: str = ""
    error: str = ""


def keep_local(folder: DeploymentFolder, local: Local) -> None:
    """Write what must not be in the journal, for this user only."""
    folder.root.mkdir(parents=True, exist_ok=True)
    aside = folder.secrets.with_name(f".{folder.secrets.name}.{os.getpid()}")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(local))
    aside.replace(folder.secrets)


def read_local(folder: DeploymentFolder) -> Local:
    """Return what was kept; nothing if nothing was."""
    with contextlib.suppress(FileNotFoundError):
        return msgspec.json.decode(Path(folder.secrets).read_bytes(), type=Local)
    return Local()
