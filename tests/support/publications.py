"""Made-up publications, for tests of catalogues and what reads them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.records import Column, File, Manifest, Note, Signed, sign

NETWORK = "lab"


def identity_of(name: str) -> Identity:
    """Return a publisher that is the same in every run."""
    return Identity.from_bytes(hashlib.sha256(name.encode()).digest())


def manifest(publisher: Identity, sequence: int = 1, /, **changes: Any) -> Manifest:
    """Return a manifest that is fine, but for what is changed."""
    content = f"{changes.get('name', 'higgs')} {sequence}".encode()
    fields: dict[str, Any] = {
        "format": 1,
        "network": NETWORK,
        "publisher": publisher.publisher,
        "name": "higgs",
        "version": 1,
        "supersedes": None,
        "sequence": sequence,
        "created": "2026-11-18T00:00:00Z",
        "description": "Collisions with and without a Higgs boson",
        "license": "CC-BY-4.0",
        "tags": ("physics",),
        "kind": "table",
        "size": 3000,
        "rows": 10,
        "columns": (Column(name="lepton_pt", type="double"), Column(name="label", type="int64")),
        "sample": ({"lepton_pt": 0.5, "label": 1},),
        "piece_size": 65536,
        "files": (File(path="part-0.parquet", size=3000, root=hashlib.sha256(content).hexdigest()),),
        "web_seeds": (),
        "infohash_v1": "",
        "infohash_v2": "",
    }
    return Manifest(**{**fields, **changes})


def opinion(author: Identity, about: Identity, sequence: int = 1, /, **changes: Any) -> Note:
    """Return what an author thinks of the publication above."""
    fields: dict[str, Any] = {
        "format": 1,
        "network": NETWORK,
        "publisher": author.publisher,
        "sequence": sequence,
        "created": "2026-11-18T00:00:00Z",
        "what": "opinion",
        "about": about.publisher,
        "name": "higgs",
        "version": 1,
        "rating": 4,
    }
    return Note(**{**fields, **changes})


def signed_manifest(publisher: Identity, sequence: int = 1, /, **changes: Any) -> Signed:
    """Return a signed manifest."""
    return sign(manifest(publisher, sequence, **changes), publisher)


def new_catalogue(folder: Path) -> Catalogue:
    """Return an empty catalogue."""
    return Catalogue(folder / "catalogue.sqlite", NETWORK)
