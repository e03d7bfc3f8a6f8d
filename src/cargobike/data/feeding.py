"""What is given to `launch(data=…)`, described for workers: read where it lies, or written into the project.

What workers can read themselves (an address, a file on the same machine, a table) is not copied. What only this process
has (a DataFrame, an Arrow table, arrays) is written once into the project, from where workers elsewhere fetch it.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Final

import cloudpickle
import msgspec
from msgspec.structs import replace

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.origins import Origin
from cargobike.core.registering.feeding import Feed
from cargobike.core.values.words import count
from cargobike.data.loading.loader import Loader
from cargobike.data.loading.options import Options
from cargobike.data.materialize import described, keep
from cargobike.data.sources.listing import is_address
from cargobike.data.sources.memory import MemorySource
from cargobike.data.sources.opening import open_again, open_source, origin_of
from cargobike.data.sources.source import Source, SourceSpec
from cargobike.data.sources.table import TableSource
from cargobike.data.tables.addresses import ID
from cargobike.data.tables.table import Table
from cargobike.store.files.shared import shared_url
from cargobike.store.history.environment import without_credentials

_CHECKER: Final = "cargobike.data.feeding:check"
_SHARD: Final = "cargobike.data.shard:Shard"
_LOADER: Final = "cargobike.data.followed:open_loader"
_USUAL: Final = Options()


def describe(data: object, project: ProjectFolder, *, ranks: int = 1, travels: bool = False) -> Feed:
    """Describe what a train function is to be fed with, written into the project if workers cannot read it.

    Args:
        data: A `Loader`, or anything that has rows: a table that was written or its name, a path, glob, folder or
            address, a Spark, pandas or polars DataFrame, an Arrow table, a dict of arrays.
        project: Where to write what only this process has.
        ranks: How many ranks share it.
        travels: Whether workers may be on machines that do not see this one's files.

    Raises:
        InvalidInputError: If it cannot be used, or has no rows.
        NotFoundError: If there is no such file or table.
    """
    if isinstance(data, Loader):
        data.for_rank(0, ranks)  # refuses what cannot be shared among so many
        return _with_options(_describe(data.source, project, ranks, travels), data)
    if hasattr(data, "mapInArrow"):
        return _written(data, project, "a Spark DataFrame")
    return _describe(open_given(data), project, ranks, travels)


def open_given(data: object) -> Source:
    """Open what a user gives as `data`; what is nothing of the kind is refused with all that can be given."""
    if isinstance(data, Loader):
        return data.source
    try:
        return open_source(data)
    except InvalidInputError as error:
        if "cannot be read from" not in str(error):
            raise
        raise InvalidInputError(
            f"data={type(data).__name__} was given; give a data.Loader, a table or its name, a path, glob, folder or "
            "address, a Spark, pandas or polars DataFrame, an Arrow table, or a dict of arrays."
        ) from error


def _describe(source: Source, project: ProjectFolder, ranks: int, travels: bool) -> Feed:
    if not source.num_rows:
        raise InvalidInputError(f"{without_credentials(source.name)} has no rows.")
    if source.num_rows < ranks:
        raise InvalidInputError(
            f"{without_credentials(source.name)} has {count(source.num_rows, 'row')}, and {ranks} ranks cannot share "
            f"that: each needs a row. Use at most {count(source.num_rows, 'worker')} for a trial, or give more data."
        )
    if isinstance(source, MemorySource):
        return _written(source, project, source.name, source.fingerprint)
    if travels and not _is_far(source.spec()):
        table = getattr(source, "table", None)
        if isinstance(table, Table) and table.address.in_project:
            feed = _of_project(table, source.fingerprint)
        else:
            feed = _written(source, project, source.name, source.fingerprint)
    else:
        feed = _in_place(source)
    return _called(feed, source.name, origin_of(source))


def _in_place(source: Source) -> Feed:
    return Feed(
        folder="",
        names=[without_credentials(source.name)],
        rows=[source.num_rows],
        opener=_SHARD,
        checker=_CHECKER,
        fingerprint=source.fingerprint,
        details={"spec": msgspec.to_builtins(source.spec())},
    )


def _written(data: object, project: ProjectFolder, name: str, fingerprint: str = "") -> Feed:
    table = keep(data, project)
    if shared_url(project):
        return _called(_in_place(table.source()), name)  # it is there already, for workers anywhere
    return _called(_of_project(table, fingerprint), name)


def _of_project(table: Table, fingerprint: str) -> Feed:
    """Describe the files of a table of the project, which workers that do not see them fetch."""
    groups = [[(group.rows, group.size_bytes) for group in file.groups] for file in table.files]
    return replace(
        described(table), opener=_SHARD, checker=_CHECKER, fingerprint=fingerprint, details={"groups": groups}
    )


def _called(feed: Feed, name: str, origin: Origin | None = None) -> Feed:
    """Say what people call the data, and where it comes from, if it comes from more than the memory of this process."""
    if origin is None:
        return replace(feed, source=without_credentials(name))
    return replace(feed, kind=origin.kind, source=origin.name, version=origin.version, part=origin.part)


def _is_far(spec: SourceSpec) -> bool:
    """Tell whether a source is on storage that other machines reach, as far as its addresses tell."""
    addresses = [value for option in spec.options.values() for value in _texts(option)]
    return any(is_address(text) and not text.startswith("file://") for text in addresses)


def _texts(option: object) -> list[str]:
    if isinstance(option, str):
        return [option]
    return [text for text in option if isinstance(text, str)] if isinstance(option, list | tuple) else []


def _with_options(feed: Feed, loader: Loader) -> Feed:
    """Add how a loader reads: what is plain data as such, and what is not as pickled objects."""
    options = {field.name: getattr(loader.options, field.name) for field in dataclasses.fields(Options)}
    plain: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    for name, value in options.items():
        (plain if _is_plain(value) else objects)[name] = value
    shown = {name: value for name, value in options.items() if value != getattr(_USUAL, name)}
    try:
        pickled = cloudpickle.dumps(objects) if objects else b""
    except Exception as error:
        named = ", ".join(objects)
        raise InvalidInputError(
            f"The loader cannot be sent to workers: its {named} cannot be pickled ({error}). Make such things (locks, "
            "open files, connections) inside the function instead."
        ) from error
    return replace(
        feed,
        opener=_LOADER,
        options={name: _shown(value) for name, value in shown.items()},
        details={**feed.details, "options": plain, **_position(feed, loader)},
        objects=pickled,
    )


def _position(feed: Feed, loader: Loader) -> dict[str, Any]:
    """Return where a loader begins: where it is, or, of rows that were written anew, at the epoch in which it is.

    Raises:
        InvalidInputError: If it is in the middle of an epoch of rows that are written anew, in other groups.
    """
    state = loader.state_dict()
    is_copy = ID.fullmatch(feed.folder.rpartition("/")[2]) is not None
    if feed.fingerprint == state["source"] and not is_copy:
        return {"state": state}
    if state["stages"]:
        raise InvalidInputError(
            "The loader is in the middle of an epoch of rows that workers cannot read where they are. Give one that "
            "has not begun, or that stands before an epoch: loader.set_epoch(…)."
        )
    return {"epoch": state["epoch"]}


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _shown(value: object) -> Any:
    """Return an option as the record shows it: plain data as it is, functions by their names."""
    return value if _is_plain(value) else getattr(value, "__qualname__", None) or repr(value)[:200]


def check(feed: Feed, root: Path) -> None:
    """Refuse data that is gone or has changed since an experiment was launched with it.

    Raises:
        InvalidInputError: Saying what to do.
    """
    spec = feed.details.get("spec")
    if spec is None:
        missing = [name for name in feed.names if not os.path.exists(root / feed.folder / name)]
        if missing:
            raise InvalidInputError(
                f"The data of this experiment is gone: {feed.folder} lacks {count(len(missing), 'file')}, such as "
                f"{missing[0]}. Was it removed with `cargobike data rm`? Launch the experiment anew with its data."
            )
        return
    try:
        source = open_again(msgspec.convert(spec, SourceSpec))
        if isinstance(source, TableSource):
            source.check_files()
    except CargobikeError as error:
        raise InvalidInputError(
            f"The data of this experiment, {feed.label}, is not what it was: {error} Bring it back as it "
            "was, or launch the experiment anew with what it is now; trials that have ended are kept either way."
        ) from error
