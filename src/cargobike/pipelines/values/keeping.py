"""Keeping what a step returned, in the journal or in a file of its run, and reading it back."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import Kept, open_kept
from cargobike.core.values.exact import pack_exactly, unpack_exactly
from cargobike.pipelines.values import formats, pickling
from cargobike.pipelines.values.pickling import Promise
from cargobike.pipelines.values.value import MOST_INLINE_BYTES, Form, Value, digest_of, shortened

_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_MOST_INT: Final = 2**63
_SUFFIXES: Final[dict[Form, str]] = {
    "json": "json",
    "numpy": "npy",
    "arrow": "arrow",
    "frame": "arrow",
    "pickle": "pickle",
}


def keep(value: Any, root: Path, place: str) -> Value:
    """Keep a value: small plain data in what is returned, everything else in a file of the run.

    Args:
        value: What to keep.
        root: The folder of the run.
        place: Where a file goes, in that folder, without its suffix.

    Raises:
        InvalidInputError: If it cannot be kept, naming the part that cannot.
    """
    if pickling.is_kept(value):
        thing = value.kept_as()
        return Value("kept", digest_of(thing.kind.encode(), thing.id.encode()), thing=(thing.kind, thing.id))
    if is_plain(value):
        packed = pack_exactly(value)
        data = msgspec.json.encode(packed)
        if len(data) <= MOST_INLINE_BYTES:
            return Value("plain", digest_of(data), packed)
        return _written("json", data, root, place, text=words_for(value))
    form, data = _encoded(value)
    if form == "pickle" and len(data) <= MOST_INLINE_BYTES:
        return Value("pickle", digest_of(data), base64.b64encode(data).decode(), text=words_for(value))
    return _written(form, data, root, place, text=words_for(value))


def restore(value: Value, root: Path, project: ProjectFolder) -> Any:
    """Return what was kept.

    Raises:
        StoreError: If its file is gone or damaged.
        NotFoundError: If a thing of the project is not there any more.
    """

    def opened(thing: Kept) -> Any:
        return open_kept(thing, project)

    if value.thing is not None:
        return opened(Kept(*value.thing))
    if value.form == "plain":
        return unpack_exactly(value.data)
    data = base64.b64decode(value.data) if not value.path else _read(root / value.path, value)
    return _READERS[value.form](data, opened)


def is_plain(value: Any) -> bool:
    """Tell whether a value is made of nothing but numbers, text, bytes, lists, tuples and dicts."""
    kind = type(value)
    if kind is int:
        return bool(-_MOST_INT <= value < _MOST_INT)
    if kind is str:
        return _is_text(value)
    if kind in _PLAIN:
        return True
    if kind is list or kind is tuple:
        return all(map(is_plain, value))
    if kind is dict:
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return False


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(form: Form, data: bytes, root: Path, place: str, text: str) -> Value:
    path = f"{place}.{_SUFFIXES[form]}"
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    aside.write_bytes(data)
    aside.replace(target)
    return Value(form, digest_of(data), path=path, size_bytes=len(data), text=text)


def _read(path: Path, value: Value) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"The result in {path} cannot be read: {error.strerror}. Run the pipeline again, without this run."
        ) from error
    if digest_of(data) != value.digest:
        raise StoreError(f"The result in {path} was changed after it was kept. Run the pipeline again.")
    return data


def _encoded(value: Any) -> tuple[Form, bytes]:
    """Return a value as bytes in the most open form that keeps it exactly."""
    for form, encode in formats.ENCODERS:
        data = encode(value)
        if data is not None:
            return form, data
    if isinstance(value, (Iterator, Promise)):
        raise unkeepable(value, "")
    try:
        return "pickle", pickling.dump(value)
    except Exception as error:
        raise unkeepable(value, f"{type(error).__name__}: {error}") from error


_READERS: Final[dict[str, Callable[[bytes, Callable[[Kept], Any]], Any]]] = {
    "json": lambda data, _: unpack_exactly(msgspec.json.decode(data)),
    "numpy": lambda data, _: formats.read_numpy(data),
    "arrow": lambda data, _: formats.read_arrow(data),
    "frame": lambda data, _: formats.read_arrow(data).to_pandas(),
    "pickle": pickling.load,
}


def unkeepable(value: Any, reason: str, name: str = "What it returned") -> InvalidInputError:
    """Return the error for a value that cannot be kept, naming the part of it that cannot."""
    path, culprit = _culprit(value)
    part = f"{name}{path}" if path else name
    why = f" ({reason})" if reason else ""
    return InvalidInputError(
        f"{part} is a {type(culprit).__module__}.{type(culprit).__qualname__}, which cannot be kept{why}. "
        "A step may return plain data, NumPy arrays, Arrow tables, data frames, what Cargobike keeps (models, "
        "experiments, tables …), and objects that can be pickled. Return what is needed to make it again, such as a "
        "path or a list, and make it where it is used."
    )


def _culprit(value: Any, path: str = "", depth: int = 0) -> tuple[str, Any]:
    """Return where in a value the part lies that cannot be kept, and that part."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        items = [(f"[{index}]", item) for index, item in enumerate(value)]
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        items = [(f".{key}", item) for key, item in vars(value).items()]
    if depth < 8:
        for name, item in items:
            if not _can_be_kept(item):
                return _culprit(item, path + name, depth + 1)
    return path, value


def _can_be_kept(value: Any) -> bool:
    if isinstance(value, (Iterator, Promise)):
        return False
    try:
        pickling.dump(value)
    except Exception:  # noqa: BLE001 - any failure means that this is the part
        return False
    return True


def words_for(value: Any) -> str:
    """Describe a value in a few words."""
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    if isinstance(shape, tuple) and shape:
        kind = getattr(value, "dtype", "")
        return f"{name} {'x'.join(map(str, shape))} {kind}".rstrip()
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"{name} of {len(value)}"
    try:
        return shortened(repr(value))
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return name
