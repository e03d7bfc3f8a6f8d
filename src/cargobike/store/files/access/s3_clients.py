"""Clients of S3, kept while a process runs: to make one takes a tenth of a second, and each has connections of its own.

Every room opens the storage of its project for itself, some of them for each call. So they share a client, as long as
the environment says the same about where S3 is and who asks, and as long as nothing goes wrong with it.
"""

from __future__ import annotations

import os
from typing import Any, Final

from cargobike.core.running.forks import abandon_in_copies, never_free

CONNECT_S: Final = 10
READ_S: Final = 30
_CONNECTIONS: Final = 32
"""How many requests one client makes at once; what is kept open is as much as was needed."""
_MOST: Final = 8
"""How many environments are remembered; beyond, the one that was first is forgotten."""
_WHO_AND_WHERE: Final = ("AWS_", "BOTO", "FSSPEC_", "HOME")

Key = tuple[tuple[str, str], ...]


class Clients:
    """File systems of s3fs, one for each environment. Without a lock: a fork could copy one that is held."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[int, Any]] = {}

    def get(self) -> Any:
        """Return the client for the environment as it is now."""
        key = tuple(sorted((name, text) for name, text in os.environ.items() if name.startswith(_WHO_AND_WHERE)))
        pid, client = self._known.get(key, (0, None))
        if pid == os.getpid():
            return client
        if client is not None:  # of the process that this one is a copy of
            never_free(client)
        client = _make()
        while len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)), None)
        self._known[key] = os.getpid(), client
        abandon_in_copies(self)
        return client

    def forget(self, client: Any) -> None:
        """Hand a client out no more: what it knows of credentials or addresses may have changed."""
        for key, (_, known) in list(self._known.items()):
            if known is client:
                self._known.pop(key, None)

    def abandon(self) -> None:
        """Forget, in a copy of this process, the clients of the original, and never take them down."""
        for _, client in self._known.values():
            never_free(client)
        self._known.clear()


def _make() -> Any:
    import s3fs  # noqa: PLC0415 - optional, and only for S3

    # An instance of our own: others may have been made with other credentials, and have caches of listings.
    client = s3fs.S3FileSystem(
        skip_instance_cache=True,
        use_listings_cache=False,
        config_kwargs={
            "connect_timeout": CONNECT_S,
            "read_timeout": READ_S,
            "retries": {"total_max_attempts": 1},
            "max_pool_connections": _CONNECTIONS,
        },
    )
    client.retries = 1  # whoever calls us tries again, until a deadline
    return client


CLIENTS: Final = Clients()
