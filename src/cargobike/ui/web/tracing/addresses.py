"""Addresses of pages with lineage."""

from __future__ import annotations

from urllib.parse import quote

from cargobike.core.registering.tracing import Thing


def lineage_address(thing: Thing) -> str:
    """Return the address of the page with the lineage of a thing."""
    version = f"?version={quote(thing.version)}" if thing.version else ""
    return f"/lineage/{quote(thing.kind)}/{quote(thing.name)}{version}"
