"""Sweeps what dead writers of a table left behind: files that no version lists."""

from __future__ import annotations

import re

from cargobike.data.tables.versions import all_versions
from cargobike.store.assets import claims
from cargobike.store.assets.claims import Claim
from cargobike.store.files.storage import Storage

_FOLDER = re.compile(r"[0-9]+")
_PART = re.compile(r"[0-9]+/part-[0-9]+-(?P<token>[0-9a-f]{12})-[0-9-]+\.parquet")


def sweep(storage: Storage) -> list[str]:
    """Delete what dead writers left behind, and return the paths."""

    def left_by(token: str, claim: Claim) -> list[str]:
        listed = _listed(storage)
        paths = (entry.path for entry in storage.list(claim.folder))
        return [path for path in paths if f"-{token}" in path and path not in listed]

    return claims.sweep(storage, left_by, _FOLDER)


def sweep_unlisted(storage: Storage) -> list[str]:
    """Delete files that no version lists and no writer claims, such as those of tasks that outlived their job.

    It lists everything, so it is done only now and then. The order matters: a writer that is not found among the claims
    has ended before, so that the manifests, read last, list what it committed.
    """
    parts = [match for entry in storage.list(deep=True) if (match := _PART.fullmatch(entry.path))]
    tokens = {token for token, _ in claims.read_claims(storage, _FOLDER)}
    listed = _listed(storage)
    unlisted = [part[0] for part in parts if part["token"] not in tokens and part[0] not in listed]
    storage.delete(*unlisted)
    for entry in storage.list(claims.FOLDER):
        token, _, kind = entry.path.removeprefix(f"{claims.FOLDER}/").partition(".")
        if kind == "end" and token not in tokens:
            storage.delete(entry.path)
    return unlisted


def _listed(storage: Storage) -> set[str]:
    return {file.path for manifest in all_versions(storage) for file in manifest.files}
