"""Deployments of a project elsewhere."""

from __future__ import annotations

from cargobike.remote.rooms.room import Room
from cargobike.serving.pages.answers import DeploymentDetails, DeploymentPage, LastRequests, Release, Tail

_HERE = "deployments"
_RELEASE_S = 60.0


class Serving(Room):
    """What `cargobike.serving` is for a project here."""

    def list_deployments(self, words: str = "", *, offset: int = 0, limit: int = 50) -> DeploymentPage:
        """Return deployments by name, and how they are doing."""
        return self._connection.get([_HERE], DeploymentPage, words=words, offset=offset, limit=limit)

    def deployment(self, name: str) -> DeploymentDetails:
        """Return a deployment: versions and their shares, replicas, traffic, what happened to it."""
        return self._connection.get([_HERE, name], DeploymentDetails)

    def output(self, name: str, *, lines: int = 100) -> str:
        """Return the last lines that the processes of a deployment printed."""
        return self._connection.get([_HERE, name, "output"], Tail, lines=lines).text

    def requests(self, name: str, *, limit: int = 20) -> LastRequests:
        """Return the last requests that were kept, without their content."""
        return self._connection.get([_HERE, name, "requests"], LastRequests, limit=limit)

    def roll(self, name: str, model: str) -> Release:
        """Bring a version in: `digits:4`; the state shows when it serves."""
        return self._connection.post([_HERE, name, "roll"], Release, {"model": model}, timeout_s=_RELEASE_S)

    def rollback(self, name: str) -> Release:
        """Take back the version that is being brought in, or go back to the one before."""
        return self._connection.post([_HERE, name, "rollback"], Release, timeout_s=_RELEASE_S)
