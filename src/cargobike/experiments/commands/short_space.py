"""Search spaces in a word or two on the command line: `lr=1e-4..1e-1 log`, `layers=1..5`, `act=relu,gelu`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.search.spaces.documents import looks_like_path
from cargobike.search.spaces.formats import read_space
from cargobike.search.spaces.space import Searchspace

_RANGE = re.compile(
    r"(?P<low>[^\s,]+?)\.\.(?P<high>[^\s,]+)(?: (?P<scale>log|reverse-log|linear))?(?: step (?P<step>\S+))?"
)
_NAME = re.compile(r"[+~]{0,2}[^\W\d]\w*(?:[./@:]\w+)*")
"""Names of parameters, also those that lead into a configuration: `model.lr`, `+model.depth`, `db/engine`."""
_FORMS = "NAME=LOW..HIGH, NAME=LOW..HIGH log, NAME=LOW..HIGH step STEP, NAME=A,B,C or NAME=VALUE"


def read_spaces(space: str | None, params: Sequence[str]) -> Any:
    """Return the space that `--space` and `--param` describe: a file, YAML in the argument, or short forms.

    Raises:
        typer.BadParameter: If both or none are given, or one cannot be read.
    """
    if (space is None) == (not params):
        raise typer.BadParameter(f"give either --space FILE, or --param for each parameter: {_FORMS}")
    if space is None:
        return read_short(params)
    return Path(space) if looks_like_path(space) else read_space(space).space


def read_short(texts: Sequence[str]) -> Searchspace | dict[str, list[Any]]:
    """Read short forms of parameters; a grid if all of them are choices.

    Example:
        >>> read_short(["lr=1e-4..1e-1 log", "layers=1..5"])
        Searchspace(lr=('DOUBLE', [0.0001, 0.1], 'log'), layers=('INTEGER', [1, 5]))
        >>> read_short(["lr=0.1,0.2", "epochs=3"])
        {'lr': [0.1, 0.2], 'epochs': [3]}
    """
    specs: dict[str, Any] = {}
    for text in texts:
        name, separator, values = (part.strip() for part in text.partition("="))
        if not separator or _NAME.fullmatch(name) is None or not values:
            raise typer.BadParameter(f"{text!r} is none of {_FORMS}", param_hint="--param")
        if name in specs:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--param")
        specs[name] = _read_values(text, values)
    return specs if all(isinstance(spec, list) for spec in specs.values()) else Searchspace(specs)


def _read_values(text: str, values: str) -> Any:
    match = _RANGE.fullmatch(values)
    if match is None:
        return [_value(part.strip()) for part in values.split(",")]
    numbers = [_value(part) for part in (match["low"], match["high"], match["step"]) if part is not None]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        raise typer.BadParameter(f"{text!r}: a range has numbers at its ends, such as 1e-4..1e-1", param_hint="--param")
    kind = "INTEGER" if all(isinstance(number, int) for number in numbers) else "DOUBLE"
    spec: list[Any] = [kind, numbers[:2]]
    if match["scale"]:
        spec.append(match["scale"])
    if match["step"]:
        spec.append({"step": numbers[2]})
    return tuple(spec)


def _value(text: str) -> Any:
    """Read a value as JSON where it can be (`1e-3`, `true`), else as text."""
    try:
        return msgspec.json.decode(text)
    except UNDECODABLE:
        return text
