"""A model in a folder of this machine, with what was said about it: registered now, or later by another process.

```
<folder>/packed.json          what was said
<folder>/model/…              the files of the model
<folder>/example.json         the example, if one was given
<folder>/requirements.lock    the packages
```
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import REQUIREMENTS
from cargobike.core.plain_files import read_plain
from cargobike.core.signatures import Signature
from cargobike.core.values.numbers import read_metrics
from cargobike.core.values.packed_numbers import Number, pack_numbers
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.models.files import folder_files, given_files
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save
from cargobike.models.naming import check_name, read_tags
from cargobike.models.record import EXAMPLE, FILES_ONLY, MODEL, is_plain
from cargobike.store.history.environment import read_environment

PACKED: Final = "packed.json"
_MOST_EXAMPLE_BYTES: Final = 16 << 20


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about a model in a folder."""

    name: str
    saved: Saved
    signature: Signature | None = None
    metrics: dict[str, Number] = {}
    description: str = ""
    tags: tuple[str, ...] = ()


def pack(
    folder: Path,
    name: str,
    model: Any = None,
    *,
    files: Any = None,
    factory: Any = None,
    metrics: Mapping[str, float] | None = None,
    signature: Any = None,
    example: Any = None,
    description: str = "",
    tags: Any = (),
    requirements: str = "",
) -> Packed:
    """Write a model and what is said about it into a folder, whole or not at all; what lay there is replaced.

    Raises:
        InvalidInputError: If it cannot be kept.
        PredictionError: If the model fails on the example.
    """
    check_name(name)
    if (model is None) == (files is None):
        raise InvalidInputError("Give either model=… or files=…, what is to be kept.")
    measured = read_metrics(metrics or {})
    said = Packed(
        name=name,
        saved=Saved(flavour=FILES_ONLY),
        signature=_read_signature(signature),
        metrics=pack_numbers(measured),
        description=_read_description(description),
        tags=read_tags(tags),
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        made = Path(temporary, "packed")
        inner = made / MODEL.rstrip("/")
        inner.mkdir(parents=True)
        rows = _write_example(made, example)
        if files is not None:
            _copy(given_files(files), made)
        else:
            said = _save(said, model, inner, factory=factory, example=example, rows=rows)
        lock = requirements or read_environment().lock()
        (made / REQUIREMENTS).write_text(lock, encoding="utf-8")
        (made / PACKED).write_bytes(msgspec.json.encode(said))
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        made.rename(folder)
    return said


def read_packed(folder: Path) -> tuple[Packed, dict[str, Path]]:
    """Return what a folder says and its files, by their paths in a version; no link in it is followed.

    Raises:
        StoreError: If it holds no packed model, or one that cannot be kept.
    """
    try:
        said = msgspec.json.decode(read_plain(folder / PACKED), type=Packed)
    except (OSError, *UNDECODABLE) as error:
        raise StoreError(f"{folder} holds no packed model: {error}") from error
    files = {path: file for path, file in folder_files(folder, links=False).items() if path != PACKED}
    wrong = [path for path in files if not is_plain(path)]
    if wrong:
        raise StoreError(f"{folder} holds files that cannot be kept: {', '.join(map(repr, wrong[:5]))}.")
    check_name(said.name)
    return said, files


def _save(said: Packed, model: Any, inner: Path, *, factory: Any, example: Any, rows: list[Any] | None) -> Packed:
    saved = save(model, inner, factory=factory, example=rows)
    signature = said.signature
    if signature is None and rows is not None:
        # Signatures need NumPy, which a function that takes lists does not.
        from cargobike.models.signing import infer_signature  # noqa: PLC0415

        signature = infer_signature(load(saved, inner), example)
    return msgspec.structs.replace(said, saved=saved, signature=signature)


def _write_example(folder: Path, example: Any) -> list[Any] | None:
    if example is None:
        return None
    from cargobike.models.flavours.rows import rows_of  # noqa: PLC0415 - needs NumPy

    rows = rows_of(example)
    try:
        data = json.dumps(rows).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"The example cannot be kept as JSON: {error}. Give rows of plain values.") from error
    if len(data) > _MOST_EXAMPLE_BYTES:
        raise InvalidInputError(
            f"The example has {math.ceil(len(data) / 2**20)} MiB as JSON; {_MOST_EXAMPLE_BYTES >> 20} are allowed. "
            "Give fewer rows: a few are enough to try the model with."
        )
    (folder / EXAMPLE).write_bytes(data)
    return rows


def _copy(files: dict[str, Path], folder: Path) -> None:
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _read_signature(signature: Any) -> Signature | None:
    if signature is None or isinstance(signature, Signature):
        return signature
    try:
        return msgspec.convert(signature, Signature)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"signature={signature!r} was given: {error}. Give a Signature, or let example=… say what the model takes."
        ) from error


def _read_description(description: str) -> str:
    if not isinstance(description, str):
        raise InvalidInputError(f"description={description!r} was given; a description is a text.")
    return description
