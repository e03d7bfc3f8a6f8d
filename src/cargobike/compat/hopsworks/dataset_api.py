"""Files of the project under the names of Hopsworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cargobike.compat.hopsworks.paths import inner_path, storage
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError

_API = "hopsworks.core.dataset_api.DatasetApi"


class DatasetApi:
    """Brings files into the project, and out of it."""

    @formerly(f"{_API}.upload")
    def upload(self, local_path: str, upload_path: str, overwrite: bool = False, **more: Any) -> str:
        """Copy a file or folder of this machine into a folder of the project, and return its path there."""
        source = Path(local_path)
        if not source.exists():
            raise InvalidInputError(f"There is no file or folder {local_path!r}.")
        files = [path for path in sorted(source.rglob("*")) if path.is_file()] if source.is_dir() else [source]
        target = "/".join(filter(None, (inner_path(upload_path), source.name)))
        for file in files:
            below = file.relative_to(source).as_posix() if source.is_dir() else ""
            place = "/".join(filter(None, (target, below)))
            if not overwrite and storage().stat(place) is not None:
                raise InvalidInputError(f"{place} is there already; say overwrite=True.")
            storage().write(place, file)
        return target

    @formerly(f"{_API}.download")
    def download(self, path: str, local_path: str | None = None, overwrite: bool = False, **more: Any) -> str:
        """Copy a file of the project to a folder of this machine, and return its path there."""
        inner = inner_path(path)
        data = storage().read(inner)
        if data is None:
            raise InvalidInputError(f"There is no file {inner!r} in the project.")
        target = Path(local_path or ".", Path(inner).name)
        if target.exists() and not overwrite:
            raise InvalidInputError(f"{target} is there already; say overwrite=True.")
        target.write_bytes(data)
        return str(target.absolute())

    def exists(self, path: str) -> bool:
        """Tell whether the project has a file or folder."""
        inner = inner_path(path)
        return storage().stat(inner) is not None or any(True for _ in storage().list(inner, deep=True))

    def mkdir(self, path: str) -> str:
        """Return a path: folders are there as soon as they hold files."""
        return inner_path(path)

    def remove(self, path: str) -> None:
        """Delete a file or folder."""
        inner = inner_path(path)
        if not inner:
            raise InvalidInputError("The project itself is not removed; name a file or folder in it.")
        storage().delete(inner)
