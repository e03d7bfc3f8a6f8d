"""Where a publication goes: a folder, a storage such as S3 or HDFS, or the project, which then keeps it as data.

Everything is put together and verified in a folder of this host first. What it came from, and under which licence, is
noted in the project for everything that it keeps.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

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
from cargobike.store.files.storages import open_storage

_ROWS: Final = (".parquet", ".pq")
_GOT: Final = "got.jsonl"
Finish = Callable[[Path], tuple[object, str]]
"""Takes the folder with all files; returns what was made of it, and where the files lie then."""


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


def where_to(to: str | os.PathLike[str] | None, manifest: Manifest, project: ProjectFolder) -> tuple[Path, Finish]:
    """Return the folder that a publication is put together in, and what is done with it then.

    Args:
        to: A folder; an address such as `s3://bucket/higgs`; `None` for the project.
        manifest: What it is.
        project: The project.
    """
    own = sharing_folder(project) / "content" / check_network(manifest.network)
    own = own / f"{manifest.name}@{short(manifest.publisher)}" / str(manifest.version)
    if to is None:
        return own, lambda folder: (_kept(manifest, folder, project), str(folder))
    text = os.fspath(to)
    if "://" in text and not text.startswith("file://"):
        open_storage(text)  # now, so that a wrong address and a missing library are said at once
        return own, lambda folder: (_noted(manifest, project, place=text, result=_sent(manifest, folder, text)), text)
    folder = Path(text.removeprefix("file://")).expanduser().absolute()
    return folder, lambda folder: (_noted(manifest, project, place=str(folder), result=folder), str(folder))


def _sent(manifest: Manifest, folder: Path, url: str) -> str:
    """Write all files to a storage, and remove them here."""
    storage = open_storage(url)
    for file in manifest.files:
        storage.write(file.path, folder / file.path)
    shutil.rmtree(folder, ignore_errors=True)
    return url


def _kept(manifest: Manifest, folder: Path, project: ProjectFolder) -> object:
    """Keep it as what it is: rows as a table, a model as a model, anything else as files."""
    rows = [folder / file.path for file in manifest.files if file.path.endswith(_ROWS)]
    try:
        if manifest.kind in {"table", "dataset"} or (rows and len(rows) == len(manifest.files)):
            return _tables(manifest, folder, rows, project)
        if manifest.kind == "model":
            model = model_keeper().import_from(folder, manifest.name)
            into = Thing("model", model.name, str(model.version))
            return _noted(manifest, project, into=into, place=str(folder), result=model)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{manifest.reference} is in {folder}, but cannot be kept as a {manifest.kind}: {error}"
        ) from error
    return _noted(manifest, project, place=str(folder), result=folder)


def _tables(manifest: Manifest, folder: Path, rows: Sequence[Path], project: ProjectFolder) -> object:
    """Keep rows as a table; the parts of a training dataset as one each, so that none gets into another."""
    parts: dict[str, list[str]] = {}
    for path in rows:
        part = path.relative_to(folder).parts[0] if manifest.kind == "dataset" else ""
        parts.setdefault(part, []).append(os.fspath(path))
    tables: dict[str, object] = {}
    for part, paths in parts.items():
        name = f"{manifest.name}-{part}" if len(parts) > 1 else manifest.name
        table = table_keeper().write(paths, name)
        into = Thing("table", name, str(table.version))
        tables[part] = _noted(manifest, project, into=into, place=str(folder), result=table)
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
