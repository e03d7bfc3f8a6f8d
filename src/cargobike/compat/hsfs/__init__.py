"""The names of hsfs, the feature store of Hopsworks, over our own calls."""

from __future__ import annotations

from typing import Any

from cargobike.compat.noticing import formerly
from cargobike.core.registering.lazy import load


class Connection:
    """What `hsfs.connection()` returns: the project in use; there is no server."""

    def get_feature_store(self, name: str | None = None) -> Any:
        """Return the feature store of the project in use."""
        return load("cargobike.compat.hopsworks.project:current_project")().get_feature_store(name)

    def close(self) -> None:
        """Do nothing: there is no server."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@formerly("hsfs.connection")
def connection(*args: Any, **said: Any) -> Connection:
    """Return a connection; there is no server, so addresses and keys mean nothing."""
    return Connection()
