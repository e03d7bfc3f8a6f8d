"""Asks a cluster that is fed by a stream to end it, from another process of the same user.

The driver listens for that, and refuses callers that do not know its secret, which it keeps in a file that only its
user can read; from another machine, or as another user, the key has to be given.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cargobike.core.errors import InvalidInputError
from cargobike.core.settings import cache_folder
from cargobike.data.pushing.receiving import Receiver
from cargobike.data.pushing.sending import Node, tell_to_end

__all__ = ["Client"]


class Desk:
    """The driver's end.

    Attributes:
        address: Host and port.
        key: What those must know who ask.
    """

    def __init__(self, host: str) -> None:
        self._receiver = Receiver(host, queues=())
        reached, _, port = self._receiver.address.rpartition(":")
        self.address = (reached, int(port))
        self.key = self._receiver.secret.hex()
        self._file = _key_file(self.address)
        with contextlib.suppress(OSError):  # without a cache, keys have to be given
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(self.key)

    @property
    def stop_wanted(self) -> bool:
        """Whether the end was asked for."""
        return self._receiver.end_wanted.is_set()

    def close(self) -> None:
        """Stop listening."""
        self._file.unlink(missing_ok=True)
        self._receiver.close()


class Client:
    """Speaks with the driver of a cluster.

    Args:
        server_addr: `cluster.cluster_meta["server_addr"]`: host and port.
        key: `cluster.cluster_meta["server_key"]`; not needed by the same user on the same machine.

    Raises:
        InvalidInputError: If no key is known.
    """

    def __init__(self, server_addr: tuple[str, int], key: str | None = None) -> None:
        host, port = server_addr
        try:
            secret = bytes.fromhex(key if key is not None else _key_file((host, int(port))).read_text())
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"No key is known for {host}:{port}. Is the cluster still there? From another machine, or as another "
                'user, give it: Client(address, key=…), as cluster.cluster_meta["server_key"] says.'
            ) from error
        self._node = Node("the driver", f"{host}:{port}", secret)

    def request_stop(self) -> None:
        """Have the stream that feeds the cluster end; `shutdown(ssc)` returns then."""
        tell_to_end(self._node)

    def close(self) -> None:
        """Do nothing: no connection is kept."""


def _key_file(address: tuple[str, int]) -> Path:
    host, port = address
    return Path(cache_folder()) / "clusters" / f"{host.replace('/', '_')}-{port}.key"
