"""The names of hopsworks, hsfs and hsml over our own calls: no server, no key; the project in use."""

from __future__ import annotations

from typing import Any

from cargobike.compat.noticing import formerly
from cargobike.core.registering.lazy import load

__version__ = "5.1"


@formerly("hopsworks.login")
def login(*args: Any, **said: Any) -> Any:
    """Return the project in use; there is no server, so addresses and keys mean nothing."""
    return load("cargobike.compat.hopsworks.project:current_project")()


def logout() -> None:
    """Do nothing: there is no server."""


def get_current_project() -> Any:
    """Return the project in use."""
    return load("cargobike.compat.hopsworks.project:current_project")()


def connection(*args: Any, **said: Any) -> Any:
    """Return what has `get_project`, as before `login`."""
    return load("cargobike.compat.hopsworks.project:Connection")()


@formerly("hopsworks.udf")
def udf(return_type: Any, drop: Any = None, mode: str = "default", **more: Any) -> Any:
    """Make a function a transformation of features: `@hopsworks.udf(float)`."""
    return load("cargobike.compat.hsfs.transformation_function:udf")(return_type, drop, mode)
