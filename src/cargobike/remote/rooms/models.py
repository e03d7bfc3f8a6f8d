"""Models of a project elsewhere."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping

from cargobike.models.pages.answers import ModelDetails, ModelPage, Promoted, VersionDetails, VersionRemarks
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

    def promote(self, name: str, version: int, alias: str, *, when: str = "") -> Promoted:
        """Let an alias point at a version, if it passes a gate: `accuracy >= champion.accuracy`.

        Raises:
            ServerRefusedError: If it does not pass; with the figures.
        """
        return self._connection.post(["models", name, version, "promote"], Promoted, {"alias": alias, "when": when})

    def tag(self, name: str, version: int, *tags: str, remove: Iterable[str] = ()) -> VersionRemarks:
        """Add tags to a version, and take some away."""
        return self._annotate(name, version, {"add": tags, "remove": builtins.list(remove)})

    def note(self, name: str, version: int, text: str) -> VersionRemarks:
        """Write something down about a version."""
        return self._annotate(name, version, {"note": text})

    def _annotate(self, name: str, version: int, body: Mapping[str, object]) -> VersionRemarks:
        return self._connection.post(["models", name, version, "annotations"], VersionRemarks, body)
