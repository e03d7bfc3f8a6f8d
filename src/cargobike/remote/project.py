"""A project elsewhere: connecting to its server, and its rooms."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.remote.asking.address import check_private, parse_address, tls_context
from cargobike.remote.asking.connection import Connection
from cargobike.remote.asking.tokens import find_token
from cargobike.remote.rooms.commands import Commands
from cargobike.remote.rooms.data import Data
from cargobike.remote.rooms.experiments import Experiments
from cargobike.remote.rooms.features import Features
from cargobike.remote.rooms.models import Models
from cargobike.remote.rooms.monitoring import Monitoring
from cargobike.remote.rooms.pipelines import Pipelines
from cargobike.remote.rooms.serving import Serving
from cargobike.remote.rooms.sharing import Sharing
from cargobike.ui.answers import LineageAnswer, ServerInfo

_TIMEOUT_S: Final = 30.0


class RemoteProject:
    """A project that a server has; its rooms have the nouns and verbs of the doors.

    May be used from several threads, and as a context manager, which closes its connection.

    Attributes:
        experiments: Experiments and their trials.
        data: Tables.
        features: Feature groups, views and training datasets.
        models: Models and their versions.
        serving: Deployments.
        monitoring: Monitors and their alarms.
        pipelines: Runs and schedules.
        sharing: Networks and what is published in them.
        commands: Everything else that the command line can do.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.experiments = Experiments(connection)
        self.data = Data(connection)
        self.features = Features(connection)
        self.models = Models(connection)
        self.serving = Serving(connection)
        self.monitoring = Monitoring(connection)
        self.pipelines = Pipelines(connection)
        self.sharing = Sharing(connection)
        self.commands = Commands(connection)

    def __repr__(self) -> str:
        return f"RemoteProject({str(self.connection.address)!r})"

    def __enter__(self) -> RemoteProject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection; the next call opens another."""
        self.connection.close()

    def about(self) -> ServerInfo:
        """Return what there is to know about the server: its version, its project, what callers may do."""
        return self.connection.get(["server"], ServerInfo)

    def lineage(self, kind: str, name: str, *, version: str | int = "", limit: int = 1000) -> LineageAnswer:
        """Return what something came from, and what came from it, over all products."""
        path = ["lineage", kind, *name.split("/")]
        return self.connection.get(path, LineageAnswer, version=str(version), limit=limit)


def connect(
    server: str = "",
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca_file: str | Path | None = None,
    timeout_s: float = _TIMEOUT_S,
    allow_http: bool = False,
) -> RemoteProject:
    """Return the project that a server has. Nothing is asked yet; `about()` is a first question.

    Args:
        server: Where `cargobike ui` runs: `https://tower:8520`. By default `CARGOBIKE_SERVER`.
        token: The token that it asks for. By default the one in `token_file`, or else in `CARGOBIKE_TOKEN` or the file
            that `CARGOBIKE_TOKEN_FILE` names.
        token_file: A file with the token, of mode 600.
        ca_file: Certificates of the authorities that the server is checked against, in PEM form; by default
            `CARGOBIKE_CA_FILE`, or those of this machine. A server is always checked.
        timeout_s: How long one call may take, repeated attempts included.
        allow_http: Send the token to another machine unencrypted.

    Raises:
        InvalidInputError: If no server is named, the address is none, or the token cannot be used.

    Example:
        >>> project = connect("http://127.0.0.1:8520")
        >>> project
        RemoteProject('http://127.0.0.1:8520')
    """
    named = server or settings.server()
    if not named:
        raise InvalidInputError(f"No server is named; give its address, or set {settings.SERVER}: https://tower:8520")
    address = parse_address(named)
    secret = find_token(token, token_file)
    check_private(address, has_token=secret is not None, allow_http=allow_http or settings.allows_http())
    context = tls_context(ca_file or settings.ca_file() or None) if address.is_tls else None
    return RemoteProject(Connection(address, secret, timeout_s=timeout_s, context=context))
