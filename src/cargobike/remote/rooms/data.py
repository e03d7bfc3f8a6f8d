"""Tables of a project elsewhere."""

from __future__ import annotations

from cargobike.data.pages.answers import TableDetails, TablePage
from cargobike.remote.rooms.room import Room


class Data(Room):
    """What `cargobike.data` is for a project here."""

    def list(self, words: str = "", *, offset: int = 0, limit: int = 50) -> TablePage:
        """Return the tables of the project in all their versions, the newest first."""
        return self._connection.get(["data"], TablePage, words=words, offset=offset, limit=limit)

    def open(self, table: str) -> TableDetails:
        """Return a table (`name`, `name:version` or an id): its columns, files, versions and first rows."""
        return self._connection.get(["data", table], TableDetails)
