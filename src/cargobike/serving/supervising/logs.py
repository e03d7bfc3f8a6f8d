"""What the processes of a deployment printed: one file for each, in the deployment's folder."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from cargobike.core.errors import NotFoundError
from cargobike.serving.record import DeploymentFolder

KEPT: Final = 50
"""How many files of replicas are kept."""
_TAIL_BYTES: Final = 1 << 20


def read_logs(folder: DeploymentFolder, *, replica: int | None = None, lines: int = 200) -> str:
    """Return the last lines that processes printed, each process under its name."""
    paths = sorted(folder.logs.glob("*.log"), key=_order)
    if replica is not None:
        paths = [path for path in paths if path.stem == f"replica-{replica}"]
        if not paths:
            raise NotFoundError(f"Replica {replica} of {folder.id} has printed nothing.", wanted=replica)
    texts = []
    for path in paths:
        text = _tail(path, lines)
        if text:
            texts.append(text if replica is not None else f"--- {path.stem}\n{text}")
    return "\n".join(texts)


def forget_old_logs(folder: DeploymentFolder) -> None:
    """Delete what replicas printed long ago."""
    paths = sorted(folder.logs.glob("replica-*.log"), key=_order)
    for path in paths[:-KEPT]:
        with contextlib.suppress(OSError):
            path.unlink()


def _tail(path: Path, lines: int) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    return ""


def _order(path: Path) -> tuple[str, int]:
    kind, _, number = path.stem.partition("-")
    return kind, int(number) if number.isdigit() else 0
