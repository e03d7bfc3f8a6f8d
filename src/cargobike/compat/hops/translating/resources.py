"""Versioned resources by the paths that scripts of hops use: in the project, or on this machine."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cargobike.compat.hops.translating.files import ProjectFiles


@contextlib.contextmanager
def fetched(resources: Sequence[str] | None) -> Iterator[list[str]]:
    """Yield local paths of resources; what lies on shared storage is fetched for as long as it is entered."""
    if not resources:
        yield []
        return
    files = ProjectFiles()
    with tempfile.TemporaryDirectory(prefix="cargobike-") as folder:
        paths = []
        for number, resource in enumerate([resources] if isinstance(resources, str) else resources):
            if Path(resource).exists():
                paths.append(resource)
                continue
            item = files.find(resource)
            local = files.local(item.path)
            if local is None:
                local = Path(folder, str(number), item.path.rpartition("/")[2])
                local.parent.mkdir()
                files.download(item, local)
            paths.append(str(local))
        yield paths
