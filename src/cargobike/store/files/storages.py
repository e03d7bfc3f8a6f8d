"""Open shared storage by its address: S3, what fsspec knows, and what installed packages add.

A package adds a scheme by an entry point in the group `cargobike.storage`: a function that takes an address and returns
a file system of fsspec's kind and the path of the project on it.

```toml
[project.entry-points."cargobike.storage"]
vault = "my_package.storage:open_vault"
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.registering.registry import Registry
from cargobike.store.history.environment import without_credentials

Opener = Callable[[str], tuple[Any, str]]

STORAGES: Final = Registry(
    "storage",
    "cargobike.storage",
    {"s3": "cargobike.store.files.storages:open_s3", "s3a": "cargobike.store.files.storages:open_s3"},
)
"""Schemes that are opened in a way of their own; all others are fsspec's."""


def open_storage(url: str) -> tuple[Any, str]:
    """Return a file system and the path on it that an address names.

    Raises:
        MissingLibraryError: If the library for it is not installed.
        InvalidInputError: If the address cannot be understood.
    """
    scheme = url.partition("://")[0]
    opener = STORAGES.get(scheme)
    try:
        fs, root = cast("Opener", opener)(url) if opener is not None else _open_with_fsspec(url)
    except ImportError as error:
        words = f"{scheme}:// needs a library that is not installed: {error}"
        raise MissingLibraryError(words, name=error.name) from error
    except ValueError as error:
        raise InvalidInputError(f"The project {without_credentials(url)!r} cannot be opened: {error}") from error
    return fs, root.rstrip("/")


def open_s3(url: str) -> tuple[Any, str]:
    """Open S3 without a cache of listings: other machines write there too."""
    return _open_with_fsspec(url, use_listings_cache=False)


def _open_with_fsspec(url: str, **options: object) -> tuple[Any, str]:
    try:
        import fsspec  # noqa: PLC0415 - an extra, and only for projects on shared storage
    except ImportError as error:
        raise MissingLibraryError(
            f"A project on shared storage needs fsspec ({error}). Install it: pip install 'cargobike[s3]'",
            name="fsspec",
        ) from error
    fs, root = fsspec.core.url_to_fs(url, **options)
    return fs, str(root)
