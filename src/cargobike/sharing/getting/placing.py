"""Where a publication goes: a folder, a storage such as S3 or HDFS, or the project, which then keeps it as data.

Files are put together and verified on a disk of this host, one by one, and each goes to its place when it is whole: a
storage takes files as a whole, so that its readers never see a part of one. What a publication came from, and under
which licence, is noted in the project for everything that it keeps.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain
from cargobike.core.registering.keeping import table_keeper
from cargobike.core.registering.modelling import model_keeper
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.identity.keys import short
from cargobike.sharing.places import check_network, sharing_folder
from cargobike.sharing.shapes import Manifest
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

_ROWS: Final = (".parquet", ".pq")
_GOT: Final = "got.jsonl"


class Place(NamedTuple):
    """Where the files of a publication go.

    Attributes:
        folder: Where they are put together; where they stay, if there is no storage.
        storage: Where each goes as soon as it is whole.
        finish: Called when all are in their places; returns what was made of them.
    """

    folder: Path
    storage: Storage | None
    finish: Callable[[], object]


class Got(msgspec.Struct, frozen=True, kw_only=True):
    """What was got: for lineage, and for people who ask what they may do with it."""

    at: float
    reference: str
    network: str
    publisher: str
    name: str
    version: int
    license: str
    kind: str
    into_kind: str = ""
    into_name: str = ""
    into_version: str = ""
    place: str = ""


def where_to(to: str | os.PathLike[str] | None, manifest: Manifest, project: ProjectFolder) -> Place:
    """Return where a publication goes.

    Args:
        to: A folder; an address such as `s3://bucket/higgs`; `None` for the project.
        manifest: What it is.
        project: The project.
    """
    path = f"{check_network(manifest.network)}/{manifest.name}@{short(manifest.publisher)}/{manifest.version}"
    own = sharing_folder(project) / "content" / path
    if to is None:
        url = shared_url(project)
        if not url or manifest.kind == "model":  # a model is brought in from a folder
            return Place(own, None, lambda: _kept(manifest, str(own), project))
        url = f"{url.rstrip('/')}/sharing/content/{path}"
        return Place(own, open_storage(url), lambda: _kept(manifest, url, project))
    text = os.fspath(to)
    if "://" in text and not text.startswith("file://"):
        storage = open_storage(text)  # now, so that a wrong address and a missing library are said at once
        return Place(own, storage, lambda: _noted(manifest, project, place=text, result=text))
    folder = Path(text.removeprefix("file://")).expanduser().absolute()
    return Place(folder, None, lambda: _noted(manifest, project, place=str(folder), result=folder))


def _kept(manifest: Manifest, place: str, project: ProjectFolder) -> object:
    """Keep it as what it is: rows as a table, a model as a model, anything else as files."""
    rows = [file.path for file in manifest.files if file.path.endswith(_ROWS)]
    try:
        if manifest.kind in {"table", "dataset"} or (rows and len(rows) == len(manifest.files)):
            return _tables(manifest, place, rows, project)
        if manifest.kind == "model":
            model = model_keeper().import_from(Path(place), manifest.name)
            into = Thing("model", model.name, str(model.version))
            return _noted(manifest, project, into=into, place=place, result=model)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{manifest.reference} is in {place}, but cannot be kept as a {manifest.kind}: {error}"
        ) from error
    return _noted(manifest, project, place=place, result=place if "://" in place else Path(place))


def _tables(manifest: Manifest, place: str, rows: Sequence[str], project: ProjectFolder) -> object:
    """Keep rows as a table; the parts of a training dataset as one each, so that none gets into another."""
    parts: dict[str, list[str]] = {}
    for path in rows:
        part = path.partition("/")[0] if manifest.kind == "dataset" else ""
        parts.setdefault(part, []).append(f"{place}/{path}")
    tables: dict[str, object] = {}
    for part, paths in parts.items():
        name = f"{manifest.name}-{part}" if len(parts) > 1 else manifest.name
        table = table_keeper().write(paths, name)
        into = Thing("table", name, str(table.version))
        tables[part] = _noted(manifest, project, into=into, place=place, result=table)
    return tables if len(tables) > 1 else next(iter(tables.values()))


def _noted(
    manifest: Manifest, project: ProjectFolder, *, place: str, result: object, into: Thing | None = None
) -> object:
    got = Got(
        at=time.time(),
        reference=manifest.reference,
        network=manifest.network,
        publisher=manifest.publisher,
        name=manifest.name,
        version=manifest.version,
        license=manifest.license,
        kind=manifest.kind,
        into_kind=into.kind if into else "",
        into_name=into.name if into else "",
        into_version=into.version if into else "",
        place=place,
    )
    path = sharing_folder(project) / _GOT
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(got) + b"\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from error
    return result


def everything_got(project: ProjectFolder) -> list[Got]:
    """Return what a project has got, in order; lines that are damaged are left out."""
    try:
        lines = read_plain(project.root / "sharing" / _GOT).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(*UNDECODABLE):
            found.append(msgspec.json.decode(line, type=Got))
    return found


def got_edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what in a project was made from publications of others."""
    for got in everything_got(project):
        if got.into_kind:
            source = Thing("publication", f"{got.name}@{short(got.publisher)}", str(got.version))
            detail = f"network {got.network}" + (f", licence {got.license}" if got.license else "")
            yield Edge(Thing(got.into_kind, got.into_name, got.into_version), source, detail=detail)
