"""Engines by name, address or object."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.registry import Registry
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.engines.local.engine import LocalEngine

ENGINES: Final = Registry(
    "engine",
    "cargobike.engines",
    {
        "local": "cargobike.engines.local.engine:LocalEngine",
        "spark": "cargobike.engines.spark.engine:SparkEngine",
    },
    aliases={"k8s": "spark"},
    otherwise="give the address of a Spark master such as spark://host:7077, or an engine object",
)
"""What `engine="…"` understands: to add one, add a line."""


def resolve_engine(engine: object, boot: Boot | None = None) -> Engine:
    """Return the engine that is meant by a name, an address such as `spark://host:7077`, or an object.

    Args:
        engine: What was given. The scheme of an address names the engine, which is made by its `at(address)`.
        boot: The first process of local workers, if it has been started already.

    Raises:
        InvalidInputError: If there is no such engine, or it takes no address.
    """
    if isinstance(engine, Engine):
        return engine
    if not isinstance(engine, str):
        raise InvalidInputError(f"engine={engine!r} is neither a name nor an engine object; {ENGINES.unknown(engine)}")
    if engine == LocalEngine.name:
        return LocalEngine(boot=boot)
    scheme, separator, _ = engine.partition("://")
    kind = ENGINES.find(scheme)
    if not (isinstance(kind, type) and issubclass(kind, Engine)):
        raise InvalidInputError(f"engine={engine!r} stands for {kind!r}, which is not an Engine")
    return kind.at(engine) if separator else kind()
