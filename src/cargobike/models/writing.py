"""One version on its way: its files first, under a token; then the manifest, which makes it a version."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final

from msgspec.structs import replace

from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.core.registering.modelling import Training
from cargobike.core.registering.steps import step_token
from cargobike.core.running.accounts import user_name
from cargobike.core.signatures import Signature
from cargobike.core.values.packed_numbers import pack_numbers
from cargobike.core.version import __version__
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.catalogue.summary import decode_summary
from cargobike.models.files import entry_of
from cargobike.models.flavours.flavour import Saved
from cargobike.models.record import (
    FileEntry,
    Manifest,
    Source,
    files_of,
    fingerprint_of,
    folder_of,
    path_of,
)
from cargobike.store.assets.claims import Claim, Writing, read_claims, sweep
from cargobike.store.assets.manifests import encode_manifest
from cargobike.store.assets.numbering import create_next

_TOKEN: Final = re.compile("[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A version before it has a number.

    Attributes:
        name: The model.
        saved: How the model is kept.
        files: Files of this machine, by their paths in the version.
        imported_from: Where it comes from, if it was not made here.
    """

    name: str
    saved: Saved
    files: dict[str, Path]
    signature: Signature | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    description: str = ""
    tags: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    training: Training = field(default_factory=Training)
    imported_from: str = ""


def commit_draft(catalogue: Catalogue, draft: Draft) -> Manifest:
    """Make a draft the next version of its model.

    The files are uploaded under a token that nothing else has; the version is there when its manifest is. However this
    ends, nothing is left behind that the next writer does not sweep.
    """
    storage, name, token = catalogue.storage, draft.name, token_hex(6)
    catalogue.announce(name)
    with contextlib.suppress(StoreError):  # that something else is damaged is no reason to refuse this
        sweep_dead(catalogue, name)
    writing = Writing(storage, token, token, _claims(name))
    place, is_committed = files_of(name, token), False
    try:
        entries = tuple(_upload(catalogue, place, path, file, writing) for path, file in draft.files.items())
        manifest = _manifest(draft, token, entries)
        model = catalogue.find(name)
        writing.begin_commit()
        version = create_next(
            storage,
            lambda number: path_of(name, number),
            lambda number: encode_manifest(replace(manifest, version=number)),
            (model.versions if model else 0) + 1,
        )
        is_committed = True
        return replace(manifest, version=version)
    finally:
        if not is_committed:
            with contextlib.suppress(CargobikeError):  # what failed is what the user wants to know
                storage.delete(place)
        with contextlib.suppress(CargobikeError):
            writing.end()


def sweep_dead(catalogue: Catalogue, name: str) -> list[str]:
    """Delete what killed writers of a model left behind, and return the paths."""

    def left_by(token: str, _: Claim) -> list[str]:
        return [] if token in _listed(catalogue, name) else [files_of(name, token)]

    return sweep(catalogue.storage, left_by, _TOKEN, _claims(name))


def sweep_unlisted(catalogue: Catalogue, name: str) -> list[str]:
    """Delete files that no version lists and no writer claims, those of removed versions too; returns the folders.

    It lists all files of the model, so it is done only where versions are removed. The order matters: a writer that is
    not found among the claims has ended before, so that the manifests, read last, list what it committed.
    """
    folder = f"{folder_of(name)}/files"
    paths = (entry.path.removeprefix(f"{folder}/") for entry in catalogue.storage.list(folder, deep=True))
    tokens = {token for path in paths if _TOKEN.fullmatch(token := path.partition("/")[0])}
    if tokens:
        tokens -= {token for token, _ in read_claims(catalogue.storage, _TOKEN, _claims(name))}
    if tokens:
        tokens -= _listed(catalogue, name)
    left = [files_of(name, token) for token in sorted(tokens)]
    catalogue.storage.delete(*left)
    return left


def _listed(catalogue: Catalogue, name: str) -> set[str]:
    """Return the tokens of all versions that were not removed; of one whose manifest cannot be read, none is known.

    Raises:
        StoreError: If a manifest cannot be read: what it lists must not be deleted.
    """
    model = catalogue.find(name)
    if model is None or not model.versions:
        return set()
    model, summaries = catalogue.summaries(name)
    tokens = set()
    for version, data in summaries:
        if version not in model.state.removed:
            tokens.add(decode_summary(data).token or catalogue.manifest(name, version).token)
    return tokens


def _upload(catalogue: Catalogue, place: str, path: str, file: Path, writing: Writing) -> FileEntry:
    entry = entry_of(path, file)
    before = os.stat(file)
    catalogue.storage.write(f"{place}/{path}", file)
    after = os.stat(file)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or after.st_size != entry.size_bytes:
        raise InvalidInputError(f"{file} changed while it was being kept; register it when it is complete.")
    writing.renew()
    return entry


def _manifest(draft: Draft, token: str, entries: tuple[FileEntry, ...]) -> Manifest:
    saved = draft.saved
    return Manifest(
        name=draft.name,
        version=1,
        fingerprint=fingerprint_of(saved.flavour, saved.details, draft.signature, entries),
        flavour=saved.flavour,
        details=saved.details,
        libraries=saved.libraries,
        runs_code=saved.runs_code,
        signature=draft.signature,
        metrics=pack_numbers(draft.metrics),
        description=draft.description,
        tags=draft.tags,
        files=entries,
        token=token,
        sources=draft.sources,
        training=draft.training,
        imported_from=draft.imported_from,
        at=time.time(),
        user=user_name(),
        host=socket.gethostname(),
        cargobike=__version__,
        step=step_token(),
    )


def _claims(name: str) -> str:
    return f"{folder_of(name)}/writing"
