"""A project on another machine, from Python: the rooms of a server of `cargobike ui`, with a token.

Example:
    >>> from cargobike import client
    >>> project = client.connect("http://127.0.0.1:8520", token="a-token-that-the-server-knows")
    >>> project
    RemoteProject('http://127.0.0.1:8520')

What it answers with are records with named, typed fields: `project.models.list().models[0].metrics`.
"""

from __future__ import annotations

from cargobike.remote.project import RemoteProject, connect

__all__ = ["RemoteProject", "connect"]
