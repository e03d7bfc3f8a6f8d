"""Search spaces from elsewhere: files of three formats, and Python objects that stand for a space.

Our own format is a mapping of names to choices or ranges, by itself or under `space:` beside settings:

    num_trials: 20
    workers: 4
    direction: max
    metric: accuracy
    space:
      lr: {double: [1e-4, 1e-1], scale: log}
      layers: {integer: [1, 5]}
      optimizer: [sgd, adam]
      momentum: {double: [0.0, 0.9], step: 0.1, when: {optimizer: sgd}}
    constraints:
      - lr * layers < 0.2
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Params
from cargobike.core.values.numbers import describe
from cargobike.search.optimizers.listed import read_sets
from cargobike.search.spaces.cloudml import is_cloudml, read_cloudml
from cargobike.search.spaces.documents import SUFFIXES, looks_like_path, parse_document, read_document
from cargobike.search.spaces.file import Reader, SpaceFile
from cargobike.search.spaces.sagemaker import is_sagemaker, read_sagemaker
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import from_json, shown

__all__ = ["SpaceFile", "as_space", "read_space"]

_SETTINGS = ("num_trials", "workers", "direction", "metric")


def as_space(given: object) -> Searchspace | list[Params]:
    """Return what is meant by something given as a space.

    Args:
        given: A `Searchspace`; a dict of lists (or of other specifications); a list of dicts, which stands
            for exactly those trials; or a path to a YAML or JSON file.

    Example:
        >>> as_space({"lr": [0.1, 0.01], "act": ["relu"]})
        Searchspace(lr=('DISCRETE', [0.1, 0.01]), act=('CATEGORICAL', ['relu']))
        >>> as_space([{"lr": 0.1}, {"lr": 0.3}])
        [{'lr': 0.1}, {'lr': 0.3}]

    Raises:
        SpaceError: If it is not one of these, or a wrong one; lists all mistakes.
    """
    if isinstance(given, Searchspace):
        return given
    if isinstance(given, Mapping):
        return Searchspace(given)
    if isinstance(given, list | tuple):
        return read_sets(given)
    if isinstance(given, Path) or (isinstance(given, str) and looks_like_path(given)):
        return read_space(given).space
    raise SpaceError(
        f"{shown(given)} is not a search space; give a Searchspace, a dict of lists, a list of dicts, or the path "
        f"of a file that ends in {', '.join(SUFFIXES)}"
    )


def read_space(source: str | Path | Mapping[str, Any]) -> SpaceFile:
    """Read a space file: CloudML's YAML, SageMaker's JSON, or our own short form.

    Args:
        source: A path, the text of such a file, or its content as a mapping.

    Raises:
        SpaceError: If it cannot be read or used; lists all mistakes.
    """
    name = "this text"
    content: object = source
    if isinstance(source, Mapping):
        name = "this mapping"
    elif not isinstance(source, str | Path):
        raise SpaceError(f"a space is read from a path, a text or a dict; {describe(source)} was given")
    elif isinstance(source, Path) or looks_like_path(source):
        name, content = str(source), read_document(Path(source))
    else:
        content = parse_document(source, name)
    try:
        return _read_content(content, name)
    except RecursionError as error:
        raise SpaceError(f"{name}: is nested too deeply") from error


def _read_content(content: object, source: str) -> SpaceFile:
    if isinstance(content, list):
        try:
            return SpaceFile(space=read_sets(content))
        except SpaceError as error:
            raise SpaceError(f"{source}: this list of parameters cannot be used:", error.mistakes) from None
    if not isinstance(content, Mapping):
        raise SpaceError(
            f"{source}: must hold a mapping of names to choices or ranges, or a list of sets of parameters, "
            f"not {shown(content)}"
        )
    if is_cloudml(content):
        return read_cloudml(content, source)
    if is_sagemaker(content):
        return read_sagemaker(content, source)
    return _read_own(content, source)


def _read_own(content: Mapping[str, Any], source: str) -> SpaceFile:
    reader = Reader(source)
    settings: Mapping[str, Any] = {}
    space = content
    if isinstance(content.get("space"), Mapping):
        space, settings = content["space"], {key: value for key, value in content.items() if key != "space"}
        for key in settings:
            if key not in (*_SETTINGS, "constraints"):
                known = ("space", "constraints", *_SETTINGS)
                reader.mistakes.append(f"unknown key {key!r}; known are {', '.join(known)}.{nearest(str(key), known)}")
    reader.constraints = settings.get("constraints") or ()
    reader.specs.update((name, _with_tuples(spec)) for name, spec in space.items())
    return reader.finish(
        num_trials=reader.count("num_trials", settings.get("num_trials")),
        workers=reader.count("workers", settings.get("workers")),
        direction=reader.direction("direction", settings.get("direction")),
        metric=reader.text("metric", settings.get("metric")),
    )


def _with_tuples(spec: object) -> object:
    """Turn lists within choices into tuples, which YAML and JSON cannot write."""
    if isinstance(spec, list):
        return [from_json(item) for item in spec]
    if isinstance(spec, Mapping):
        return {key: _with_tuples(part) if isinstance(part, list | Mapping) else part for key, part in spec.items()}
    return spec
