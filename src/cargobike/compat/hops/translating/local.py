"""Files of the project for libraries that read local ones only."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.core import settings


def local_file(files: ProjectFiles, path: str) -> Path:
    """Return a local file with the content of one in the project: the file itself, or a copy that is reused."""
    item = files.find(path)
    own = files.local(item.path)
    if own is not None:
        return own
    entry = files.storage.stat(item.path)
    key = hashlib.sha256(f"{files.root}\n{entry}".encode()).hexdigest()[:32]
    copy = Path(settings.cache_folder(), "files", key, os.path.basename(item.path))
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        files.download(item, copy)
    return copy
