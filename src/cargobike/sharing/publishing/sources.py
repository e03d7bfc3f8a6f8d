"""Find what a user means by a source: a path, an address, or something that the project keeps."""

from __future__ import annotations

import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.keeping import table_keeper
from cargobike.core.registering.lazy import load
from cargobike.core.registering.modelling import model_keeper
from cargobike.core.registering.products import products
from cargobike.core.registering.steps import Keepable
from cargobike.core.registering.tracing import Thing
from cargobike.sharing.checks import check_web_seed
from cargobike.sharing.places import sharing_folder
from cargobike.sharing.publishing.content import Content, of_path, of_storage, opened_from
from cargobike.store.files.storages import open_storage

_KINDS: Final = ("table", "dataset", "model")
_WAIT_S: Final = 60.0
_CHUNK: Final = 1 << 20
_ROWS: Final = (".parquet", ".csv", ".jsonl", ".ndjson", ".tfrecord", ".feather", ".arrow")


def open_content(source: Any, project: ProjectFolder, *, hidden: bool = False) -> Content:
    """Return what a source holds.

    Args:
        source: A path; an address (`https://…`, `s3://…`, `hdfs://…`); `table:NAME`, `dataset:NAME:VERSION`,
            `model:NAME:VERSION`, or only the name, if the project has one thing of that name; or such a thing itself.
        project: Where names are looked up.
        hidden: Whether hidden files of a folder are taken along.

    Raises:
        NotFoundError: If there is no such thing.
        InvalidInputError: If it is none of these, or several.
    """
    if isinstance(source, Keepable):
        return _kept(*source.kept_as(), project)
    if isinstance(source, os.PathLike):
        return _with_rows(of_path(Path(source), hidden=hidden))
    if not isinstance(source, str) or not source:
        raise InvalidInputError(
            f"{source!r:.100} was given as a source; give a path, an address, the name of a table, dataset or model, "
            f"or such a thing itself. Rows in memory are written first: data.write(rows, 'name')."
        )
    kind, colon, name = source.partition(":")
    if "://" in source:
        return _at_address(source, project)
    if colon and kind in _KINDS:
        return _kept(kind, name, project)
    if os.path.lexists(source):
        return _with_rows(of_path(Path(source), hidden=hidden))
    return _named(source, project)


def _named(name: str, project: ProjectFolder) -> Content:
    """Return the only thing of a project that has a name."""
    found: dict[str, Content] = {}
    for kind in _KINDS:
        try:
            found[kind] = _kept(kind, name, project)
        except (CargobikeError, ImportError):
            continue
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        kinds = " and ".join(f"{kind}:{name}" for kind in found)
        raise InvalidInputError(f"{name!r} is several things: write {kinds.replace(' and ', ' or ')}.")
    raise NotFoundError(
        f"{name!r} is neither a path nor a table, training dataset or model of the project {project.root}.", wanted=name
    )


def _kept(kind: str, name: str, project: ProjectFolder) -> Content:
    if kind == "model":
        return _model(name, project)
    opener: Callable[..., Any] | None = next(
        (load(product.opened[kind]) for product in products() if kind in product.opened), None
    )
    if opener is None or kind not in _KINDS:
        raise InvalidInputError(f"A {kind} cannot be published; what can: {', '.join(_KINDS)}, files and addresses.")
    return _table(name, opener, project) if kind == "table" else _dataset(name, opener, project)


def _table(name: str, opener: Callable[..., Any], project: ProjectFolder) -> Content:
    table = opener(name, project)
    return Content(
        kind="table",
        place=table.url,
        files=opened_from(open_storage(table.url), [file.path for file in table.files]),
        rows=table.source,
        made_from=Thing("table", table.name, str(table.version)),
    )


def _dataset(name: str, opener: Callable[..., Any], project: ProjectFolder) -> Content:
    """Return all parts of a training dataset: their files lie side by side in the project's storage."""
    dataset = opener(name, project)
    tables = [part.table() for part in dataset]
    place = os.path.commonpath([table.url for table in tables]) if "://" not in tables[0].url else ""
    if not place:
        place = tables[0].url.rpartition("/")[0]
    paths = [
        f"{table.url[len(place) :].strip('/')}/{file.path}".lstrip("/") for table in tables for file in table.files
    ]
    return Content(
        kind="dataset",
        place=place,
        files=opened_from(open_storage(place), paths),
        rows=dataset.source,
        num_rows=sum(table.num_rows for table in tables),
        made_from=Thing("dataset", dataset.name, str(dataset.version)),
    )


def _model(name: str, project: ProjectFolder) -> Content:
    """Return a version with what is known of it: without its flavour and signature, files would be no model."""
    version = model_keeper().get(name)
    folder = sharing_folder(project) / "models" / f"{version.name}-{version.version}-{version.fingerprint[-16:]}"
    if not folder.exists():
        model_keeper().export_to(f"{version.name}:{version.version}", folder)
    plain = of_path(folder, hidden=True)
    return Content(
        kind="model",
        place=plain.place,
        files=plain.files,
        made_from=Thing("model", version.name, str(version.version)),
        remarks=["Who loads a model may run code that is part of it; others are asked whether they trust it."],
    )


def _at_address(address: str, project: ProjectFolder) -> Content:
    scheme = address.partition("://")[0].lower()
    if scheme in {"http", "https"}:
        return _downloaded(check_web_seed(address), project)
    if scheme == "file":
        return _with_rows(of_path(Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path)), hidden=False))
    return of_storage(open_storage(address), address)


def _downloaded(address: str, project: ProjectFolder) -> Content:
    """Read what a web server has, so that it can be hashed and given to others; the server remains a source, too."""
    base, _, last = address.partition("?")[0].rpartition("/")
    name = urllib.parse.unquote(last)
    if not name or base.endswith(":/"):
        raise InvalidInputError(
            f"{address!r} names no file; write the address of one file, such as https://host/a.csv."
        )
    folder = sharing_folder(project) / "downloaded" / urllib.parse.quote(base, safe="")[:150]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target, part = folder / name, folder / f".{name}.part"
    try:
        with urllib.request.urlopen(address, timeout=_WAIT_S) as answer, part.open("wb") as file:  # noqa: S310 - checked
            while data := answer.read(_CHUNK):
                file.write(data)
    except (OSError, urllib.error.URLError, ValueError) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{address} cannot be read: {error}.") from error
    part.replace(target)
    content = of_path(target, hidden=True)
    seeds = () if "?" in address else (base,)
    return _with_rows(Content(kind="url", place=content.place, files=content.files, web_seeds=seeds))


def _with_rows(content: Content) -> Content:
    """Return content with its rows, if all of its files are tables."""
    if not all(name.lower().endswith(_ROWS) for name in content.files):
        return content
    one = Path(content.place) / next(iter(content.files)) if len(content.files) == 1 else Path(content.place)
    return Content(
        kind=content.kind,
        place=content.place,
        files=content.files,
        rows=lambda: table_keeper().open_source(str(one)),
        made_from=content.made_from,
        web_seeds=content.web_seeds,
        remarks=content.remarks,
    )
