"""Files of a saved model, and what is said of those that are missing or damaged."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cargobike.core.errors import CargobikeError, StoreError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name a file in every error that reading it raises.

    Raises:
        StoreError: If it is missing or damaged.
    """
    if not path.is_file():
        raise StoreError(f"The model in {path.parent} lacks its file {path.name}. Save it again.")
    try:
        yield
    except (CargobikeError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{path.name} of this model needs the module {error.name}, which is not installed here. Install what the "
            "model was saved with."
        ) from error
    except Exception as error:
        raise StoreError(
            f"{path.name} of the model in {path.parent} cannot be read: {type(error).__name__}: {error}. It is "
            "damaged, or needs other versions of its libraries."
        ) from error


def check_archive(path: Path) -> None:
    """Compare the content of a ZIP file with its checksums; raises `zipfile.BadZipFile` if they differ."""
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{name} in it is damaged")
