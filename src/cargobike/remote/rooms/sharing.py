"""What a project elsewhere shares."""

from __future__ import annotations

from collections.abc import Sequence

from cargobike.remote.asking.connection import Value
from cargobike.remote.rooms.commands import asked
from cargobike.remote.rooms.room import Room
from cargobike.sharing.pages.answers import Changed, NetworkDetails, NetworkList, PublicationDetails


class Sharing(Room):
    """What `cargobike.sharing` is for a project here."""

    def networks(self) -> NetworkList:
        """Return the networks that the project shares in, and its key."""
        return self._connection.get(["sharing"], NetworkList)

    def search(
        self,
        network: str,
        words: str = "",
        *,
        tag: str = "",
        column: str = "",
        publisher: str = "",
        kind: str = "",
        limit: int = 100,
    ) -> NetworkDetails:
        """Return what is published in a network, and what its daemon does."""
        query: dict[str, Value] = {
            "words": words,
            "tag": tag,
            "column": column,
            "publisher": publisher,
            "kind": kind,
            "limit": limit,
        }
        return self._connection.get(["sharing", network], NetworkDetails, **query)

    def publication(
        self, network: str, name: str, *, publisher: str = "", version: int | None = None
    ) -> PublicationDetails:
        """Return a publication: columns, sample, files, ratings and comments."""
        path = ["sharing", network, "publications", name]
        return self._connection.get(path, PublicationDetails, publisher=publisher, version=version)

    def pause(self, network: str) -> Changed:
        """Have the daemon give no pieces."""
        return self._connection.post(["sharing", network, "pause"], Changed)

    def resume(self, network: str) -> Changed:
        """Have the daemon give pieces again."""
        return self._connection.post(["sharing", network, "resume"], Changed)

    def limit(self, network: str, *, send: str | None = None, receive: str | None = None) -> Changed:
        """Limit how fast the daemon sends and receives: `20MB/s`, or `none`."""
        return self._connection.post(["sharing", network, "limits"], Changed, send=send, receive=receive)

    def publish(
        self,
        network: str,
        name: str,
        source: str,
        *,
        description: str = "",
        license: str = "",
        tags: Sequence[str] = (),
        sample_rows: int | None = None,
        redact: Sequence[str] = (),
        timeout_s: float = 3600.0,
    ) -> PublicationDetails:
        """Publish something of that project in a network: it becomes visible to all members.

        Args:
            network: The network.
            name: What others call it.
            source: `table:NAME`, `dataset:NAME:VERSION` or `model:NAME:VERSION`.
            description: A sentence or more.
            license: What others may do with it: `CC-BY-4.0`.
            tags: Words that it is found by.
            sample_rows: How many rows others may look at.
            redact: Columns that are left out of these rows.
            timeout_s: How long it may take; all its bytes are read once.
        """
        body: dict[str, object] = {"name": name, "source": source, "description": description, "tags": [*tags]}
        body |= {"license": license, "sample_rows": sample_rows, "redact": [*redact]}
        asked(self._connection, ["sharing", network, "publications"], body, timeout_s)
        return self.publication(network, name)
