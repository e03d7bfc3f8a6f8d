"""Models of the tests, and what ends deployments."""

from __future__ import annotations

from typing import Any


def cheap(rows: list[Any]) -> list[float]:
    return [100.0 * row for row in rows]


def dear(rows: list[Any]) -> list[float]:
    return [120.0 * row for row in rows]


def stop(name: str) -> None:
    from cargobike import serving

    serving.deployment(name).stop()


def predict(name: str, row: Any) -> Any:
    from cargobike import serving

    return serving.deployment(name).predict(row)


def version_of(name: str) -> str:
    from cargobike import serving

    status = serving.deployment(name).status()
    return f"{status.model.split('@')[0].split(':')[0]}:{status.version}"


def promote_another(name: str) -> str:
    """Move the champion to another version, and return which."""
    from cargobike import models

    champion = models.get(f"{name}@champion")
    other = next(version for version in models.list(name) if version.version != champion.version)
    other.promote("champion")
    return other.reference
