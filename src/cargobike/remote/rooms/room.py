"""What all rooms of a project elsewhere share."""

from __future__ import annotations

from cargobike.remote.asking.connection import Connection


class Room:
    """A part of a project elsewhere. Every call is one request, with the deadline of the connection.

    What only reads is asked again if the connection breaks; what changes something is asked once. Errors are those of
    `cargobike.errors`: `NotFoundError`, `InvalidInputError`, `ForbiddenError`, `AuthenticationError`, `WaitError`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
