"""Writes parameters as overrides, in the notation that Hydra and OmegaConf share: `model.lr=0.1`, `name='a=b'`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_/+.%*@?|:-]+(?: +[A-Za-z0-9_/+.%*@?|:-]+)*")
"""Text that Hydra reads as it is written."""
_OTHER_THING = re.compile(r"(?i)null|true|false|on|off|yes|no|[+-]?(inf|nan)|[+-]?[0-9][0-9_]*|~")
"""Text that is read as something else than text unless it is quoted; so are all other numbers."""
_OWN_NOTATION = re.compile(r"(?s)\[.*\]|\{.*\}|'.*'|\".*\"|.*\$\{.*\}.*")
"""Lists, dicts, quoted texts and interpolations that a user has written in Hydra's notation."""


def write_overrides(params: Mapping[str, Any]) -> list[str]:
    """Return `name=value` for each parameter.

    Example:
        >>> write_overrides({"model.lr": 0.1, "amp": True, "name": "a=b", "hidden": [8, 8]})
        ['model.lr=0.1', 'amp=true', "name='a=b'", 'hidden=[8, 8]']
    """
    return [f"{name}={as_override(value)}" for name, value in params.items()]


def as_override(value: object) -> str:
    """Return a value so that Hydra reads the same value; text that is in its notation already stays as it is.

    Example:
        >>> [as_override(value) for value in ("adam", "1", None, {"depth": 2}, "${seed}")]
        ['adam', "'1'", 'null', '{depth: 2}', '${seed}']
    """
    if isinstance(value, str):
        return value if _OWN_NOTATION.fullmatch(value) or _reads_as_itself(value) else _quoted(value)
    if isinstance(value, Mapping):
        pairs = (f"{key}: {_inside(each)}" for key, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inside(each) for each in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def _inside(value: object) -> str:
    """Return a value inside of a list or a dict, where all text is quoted."""
    return _quoted(value) if isinstance(value, str) else as_override(value)


def _reads_as_itself(text: str) -> bool:
    if _PLAIN.fullmatch(text) is None or _OTHER_THING.fullmatch(text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _quoted(text: str) -> str:
    """Return text in quotes; in those that do not occur in it, if there are such, which YAML then reads alike."""
    quote = '"' if "'" in text and '"' not in text else "'"
    escaped = re.sub(rf"(\\*)({quote}|\Z)", lambda m: m[1] * 2 + ("\\" + quote if m[2] else ""), text)
    return f"{quote}{escaped}{quote}"
