"""Remember beside the key which number it has signed last, so that a lost catalogue repeats none."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cargobike.core.layout import ProjectFolder
from cargobike.sharing.identity.keys import short
from cargobike.sharing.places import check_network, identity_folder


def next_number(project: ProjectFolder, network: str, publisher: str) -> int:
    """Return the smallest number that the key may sign next in a network."""
    try:
        text = _file(project, network, publisher).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return 1
    return int(text) + 1 if text.isdecimal() and len(text) < 10 else 1


def note_number(project: ProjectFolder, network: str, publisher: str, number: int) -> None:
    """Note that the key has signed a number."""
    path = _file(project, network, publisher)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    temporary.write_text(f"{number}\n", encoding="ascii")
    os.replace(temporary, path)


def _file(project: ProjectFolder, network: str, publisher: str) -> Path:
    return identity_folder(project) / f"signed.{check_network(network)}.{short(publisher)}"
