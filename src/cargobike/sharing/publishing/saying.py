"""Say something in a network, signed: an opinion, a withdrawal, that a key was replaced."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain
from cargobike.sharing.catalogue.entry import Entry, Reference
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.identity.counting import next_number, note_number
from cargobike.sharing.identity.keys import Identity, load_identity, replace_identity, write_identity
from cargobike.sharing.places import catalogue_file, identity_folder, known_networks
from cargobike.sharing.records import FORMAT, Note, replacement_message


def give_opinion(project: ProjectFolder, catalogue: Catalogue, about: Reference, rating: int, text: str) -> None:
    """Rate a publication, comment on it, or both; what is not said now stays as it was said before.

    Raises:
        InvalidInputError: If it is this project's own.
    """
    entry, identity = catalogue.entry(*about), load_identity(project)
    if entry.head == catalogue.head(identity.publisher):
        raise InvalidInputError(f"{entry.reference} is this project's own; others rate it.")
    for before in catalogue.opinions(entry):
        if (before.author, before.version) == (identity.publisher, entry.version):
            rating, text = rating or before.rating, text.strip() or before.text
    _say(
        project,
        catalogue,
        identity,
        what="opinion",
        about=entry.publisher,
        name=entry.name,
        version=entry.version,
        rating=rating,
        text=text.strip(),
    )


def withdraw(project: ProjectFolder, catalogue: Catalogue, which: Reference, why: str) -> Entry:
    """Take back a version of this project, and return what it was.

    Raises:
        InvalidInputError: If it is another publisher's, or was signed with a key that was replaced since.
    """
    identity = load_identity(project)
    name, publisher, version = which
    entry = catalogue.entry(name, publisher or identity.publisher, version)
    if entry.publisher != identity.publisher:
        raise InvalidInputError(
            f"{entry.reference} was signed with another key than this project's; only it can do that."
        )
    _say(
        project,
        catalogue,
        identity,
        what="withdrawn",
        about=identity.publisher,
        name=name,
        version=entry.version,
        text=why.strip(),
    )
    return entry


def replace_key(project: ProjectFolder) -> tuple[str, str, Path]:
    """Sign with a new key from now on, in all networks that the project knows.

    Returns:
        The old key, the new one, and the file that the old one is kept in. If this is interrupted, calling it again
        goes on with the same new key.
    """
    old, waiting = load_identity(project), identity_folder(project) / "key.next"
    if not waiting.exists():
        write_identity(waiting, Identity.new())
    new = Identity.from_bytes(read_plain(waiting))
    for network in known_networks(project):
        with Catalogue(catalogue_file(project, network), network) as catalogue:
            if catalogue.head(old.publisher) == old.publisher:
                proof = new.sign(replacement_message(old.publisher, network))
                _say(project, catalogue, old, what="replaced", successor=new.publisher, proof=proof)
    kept = replace_identity(project, new)
    os.unlink(waiting)
    return old.publisher, new.publisher, kept


def _say(project: ProjectFolder, catalogue: Catalogue, identity: Identity, **fields: Any) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record = catalogue.append(
        identity,
        lambda sequence: Note(
            format=FORMAT,
            network=catalogue.network,
            publisher=identity.publisher,
            sequence=sequence,
            created=now,
            **fields,
        ),
        least=next_number(project, catalogue.network, identity.publisher),
    )
    note_number(project, catalogue.network, identity.publisher, record.sequence)
