"""Deployments of a project elsewhere."""

from __future__ import annotations

from cargobike.remote.rooms.commands import asked
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

    def promote(self, name: str) -> Release:
        """Give all requests to the version that is watched."""
        return self._connection.post([_HERE, name, "promote"], Release, timeout_s=_RELEASE_S)

    def scale(self, name: str, least: int, most: int | None = None) -> Release:
        """Change how many replicas there are: the fewest and the most."""
        body = {"least": least, "most": least if most is None else most}
        return self._connection.post([_HERE, name, "scale"], Release, body, timeout_s=_RELEASE_S)

    def stop(self, name: str) -> Release:
        """Answer what is there, and end all its processes."""
        return self._connection.post([_HERE, name, "stop"], Release, timeout_s=_RELEASE_S)

    def deploy(
        self,
        name: str,
        model: str,
        *,
        replicas: int | tuple[int, int] = 1,
        host: str = "",
        port: int = 0,
        view: str = "",
        deadline_s: float | None = None,
        log: float | None = None,
        trust: bool = False,
        timeout_s: float = 600.0,
    ) -> DeploymentDetails:
        """Serve a model there, in the background: returns when it takes requests.

        Args:
            name: The deployment's name.
            model: `digits@champion`, `digits:3`, or `digits` for the newest version.
            replicas: How many processes predict: a number, or the fewest and the most.
            host: The address of that machine to listen on; by default only itself can reach it.
            port: The port; 0 for any that is free.
            view: A feature view: requests hold keys, and its features are looked up.
            deadline_s: How long a request may take.
            log: The share of requests that is kept.
            trust: Whether code of a model that was brought in from elsewhere may run.
            timeout_s: How long it may take until it serves.

        Raises:
            ServerRefusedError: If it cannot be served; says why.
            WaitError: If it takes longer.
        """
        least, most = (replicas, replicas) if isinstance(replicas, int) else replicas
        body = {"name": name, "model": model, "least": least, "most": most, "host": host, "port": port, "view": view}
        asked(self._connection, [_HERE], body | {"deadline_s": deadline_s, "log": log, "trust": trust}, timeout_s)
        return self.deployment(name)

    def start(self, name: str, *, timeout_s: float = 600.0) -> DeploymentDetails:
        """Start a deployment again that was stopped or lost: the same version, the same port."""
        asked(self._connection, [_HERE, name, "start"], {}, timeout_s)
        return self.deployment(name)
