"""Models of a project elsewhere."""

from __future__ import annotations

from cargobike.models.pages.answers import ModelDetails, ModelPage, VersionDetails
from cargobike.remote.rooms.room import Room


class Models(Room):
    """What `cargobike.models` is for a project here."""

    def list(self, words: str = "", *, offset: int = 0, limit: int = 50) -> ModelPage:
        """Return models by name, each in its newest version."""
        return self._connection.get(["models"], ModelPage, words=words, offset=offset, limit=limit)

    def history(self, name: str, *, offset: int = 0, limit: int = 50) -> ModelDetails:
        """Return a model: its versions, the newest first, its aliases and their moves."""
        return self._connection.get(["models", name], ModelDetails, offset=offset, limit=limit)

    def get(self, name: str, version: int) -> VersionDetails:
        """Return a version: its metrics, signature, files, card, what it was made from and what uses it."""
        return self._connection.get(["models", name, version], VersionDetails)
