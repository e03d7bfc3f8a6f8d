"""Parameters that are given on the command line."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from cargobike.core.values.undecodable import UNDECODABLE


def read_parameters(texts: list[str], option: str = "--param") -> dict[str, Any]:
    """Read `NAME=VALUE` pairs; a value is JSON where it can be (`1e-3`, `true`, `[1, 2]`), else text."""
    params: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE, such as lr=0.01", param_hint=option)
        if name in params:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint=option)
        try:
            params[name] = msgspec.json.decode(value)
        except UNDECODABLE:
            params[name] = value
    return params
