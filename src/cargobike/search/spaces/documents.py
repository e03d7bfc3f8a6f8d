"""Documents: YAML and JSON files read into plain data, or refused.

A space file may come from anywhere. Nothing in it is executed, its size is limited before and after aliases
are filled in, and everything wrong with it ends in a `SpaceError`.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.errors import SpaceError, nearest

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 256 * 1024
MAX_NODES = 50_000
SUFFIXES = (".yaml", ".yml", ".json")

# YAML 1.1 wants a dot and a signed exponent; people, and JSON, write 1e-4.
_FLOAT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")


def looks_like_path(text: str) -> bool:
    """Tell whether a string names a space file rather than being its content."""
    return "\n" not in text and text.lower().endswith(SUFFIXES)


def read_document(path: Path) -> object:
    """Read a file.

    Raises:
        SpaceError: If it cannot be read, is too large, or is not YAML or JSON.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SpaceError(f"{path}: a space file ends in {', '.join(SUFFIXES)}")
    try:
        if not path.is_file():
            there = path.parent.iterdir() if path.parent.is_dir() else ()
            guess = nearest(path.name, [other.name for other in there if other.suffix in SUFFIXES])
            raise SpaceError(f"{path}: there is no such file.{guess}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(f"{path}: cannot be read: {error}") from error
    if len(content) > MAX_BYTES:
        raise SpaceError(f"{path}: is larger than {MAX_BYTES // 1024} KiB, which no space file should be")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: is not UTF-8 text: {error}") from error
    return parse_document(text, str(path), is_json=path.suffix.lower() == ".json")


def parse_document(text: str, source: str, *, is_json: bool = False) -> object:
    """Turn a file's text into plain data.

    Args:
        text: The content.
        source: What to call it in messages.
        is_json: Whether it must be JSON; otherwise it is YAML, of which JSON is a part.

    Raises:
        SpaceError: If that is not possible.
    """
    if len(text) > MAX_BYTES:
        raise SpaceError(f"{source}: is longer than {MAX_BYTES // 1024} KiB, which no space file should be")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats) if is_json else _parse_yaml(text)
    except RecursionError as error:
        raise SpaceError(f"{source}: is nested too deeply") from error
    except SpaceError as error:
        raise SpaceError(f"{source}: {error}") from error
    except (ValueError, TypeError, OverflowError, AttributeError, LookupError) as error:
        # PyYAML's own constructors let several kinds escape for values that only look like dates or numbers
        raise SpaceError(f"{source}: is not valid {'JSON' if is_json else 'YAML'}: {error}") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise SpaceError(f"{key!r} is given twice")
        found[key] = value
    return found


def _parse_yaml(text: str) -> object:
    import yaml  # noqa: PLC0415 - most programs never read a space file and should not pay for this

    class Loader(yaml.SafeLoader):
        """Knows plain data only, and nothing of what other loaders learn or unlearn."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789"))
    Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
    try:
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _expanded_size(node, {}) > MAX_NODES:
                raise SpaceError(f"it grows to more than {MAX_NODES} entries once its aliases are filled in")
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise SpaceError(f"is not valid YAML: {error}") from error


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    value = str(loader.construct_scalar(node)).replace("_", "").lower()
    if value.lstrip("+-") in (".inf", ".nan"):
        return math.nan if "nan" in value else -math.inf if value.startswith("-") else math.inf
    if ":" in value:
        raise SpaceError(f"{value!r} looks like a time of day; write it in quotes, or as a number")
    return float(value)


def _expanded_size(node: Any, sizes: dict[int, int]) -> int:
    """Count what a node holds with all aliases filled in; refuse circles and keys that are given twice."""
    if id(node) in sizes:
        if sizes[id(node)] == 0:
            raise SpaceError("it contains itself through an alias")
        return sizes[id(node)]
    sizes[id(node)] = 0  # being counted
    children: list[Any] = []
    if node.id == "mapping":
        keys: set[str] = set()
        for key, _ in node.value:
            if key.id == "scalar" and key.value in keys:
                raise SpaceError(f"{key.value!r} is given twice")
            keys.add(str(key.value))
        children = [part for pair in node.value for part in pair]
    elif node.id == "sequence":
        children = node.value
    size = 1 + sum(_expanded_size(child, sizes) for child in children)
    sizes[id(node)] = size
    return size
