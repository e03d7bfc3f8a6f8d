"""The names of hsml, the models and deployments of Hopsworks, over our own calls."""

from __future__ import annotations

from typing import Any

from cargobike.compat.noticing import formerly
from cargobike.core.registering.lazy import load


class Connection:
    """What `hsml.connection()` returns: the project in use; there is no server."""

    def get_model_registry(self, project: str | None = None) -> Any:
        """Return the models of the project in use."""
        return load("cargobike.compat.hsml.model_registry:ModelRegistry")()

    def get_model_serving(self) -> Any:
        """Return the deployments of the project in use."""
        return load("cargobike.compat.hsml.model_serving:ModelServing")()

    def close(self) -> None:
        """Do nothing: there is no server."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@formerly("hsml.connection")
def connection(*args: Any, **said: Any) -> Connection:
    """Return a connection; there is no server, so addresses and keys mean nothing."""
    return Connection()
