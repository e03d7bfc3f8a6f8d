"""Fills the placeholders of a command line: `--lr {lr}`, `lr={lr}`, `{flags}`, `{overrides}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cargobike.experiments.trial.command.overrides import write_overrides

SURROUNDINGS: Final = ("folder", "trial", "attempt", "seed", "rank")
"""Placeholders that stand for something about the trial; a parameter with the same name goes before."""
FLAGS: Final = "flags"
OVERRIDES: Final = "overrides"
ALL_PARAMETERS: Final = (FLAGS, OVERRIDES)
"""Placeholders that stand for all parameters, and are an argument of their own."""

_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Za-z_][\w.]*)\}\}|(?<!\$)\{(?P<name>[A-Za-z_][\w.]*)\}")


def placeholders(texts: Iterable[str]) -> list[str]:
    """Return the names in braces, each once; braces that are doubled mean themselves.

    Example:
        >>> placeholders(["--lr", "{lr}", "--out={folder}/{trial}", '{"json": 1}', "{{lr}}"])
        ['lr', 'folder', 'trial']
    """
    names = (match["name"] for text in texts for match in _PLACEHOLDER.finditer(text) if match["name"])
    return list(dict.fromkeys(names))


def fill(arguments: Sequence[str], params: Mapping[str, Any], surroundings: Mapping[str, Any]) -> list[str]:
    """Return the arguments with everything filled in.

    An argument with a parameter that does not exist in this trial is left out, and so is the option before it.

    Example:
        >>> fill(["--lr", "{lr}", "--momentum", "{momentum}", "--seed={seed}"], {"lr": 0.1}, {"seed": 7})
        ['--lr', '0.1', '--seed=7']
        >>> fill(["{overrides}"], {"lr": 0.1, "nesterov": True}, {})
        ['lr=0.1', 'nesterov=true']
    """
    known = {**surroundings, **params}
    filled: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == f"{{{FLAGS}}}" and FLAGS not in params:
            filled += _as_flags(params)
        elif argument == f"{{{OVERRIDES}}}" and OVERRIDES not in params:
            filled += write_overrides(params)
        elif all(name in known for name in placeholders([argument])):
            filled.append(_replace(argument, known))
        elif filled and position and argument.startswith("{") and arguments[position - 1].startswith("-"):
            filled.pop()
    return filled


def fill_variables(variables: Mapping[str, str], params: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables with everything filled in; without those whose parameter does not exist."""
    everything = {**known, **params}
    return {
        name: _replace(text, everything)
        for name, text in variables.items()
        if all(placeholder in everything for placeholder in placeholders([text]))
    }


def as_text(value: object) -> str:
    """Return a parameter as a program reads it: numbers and text as they are, anything else as JSON.

    Example:
        >>> [as_text(value) for value in (0.1, 3, "adam", True, None, (1, 2))]
        ['0.1', '3', 'adam', 'true', 'null', '[1, 2]']
    """
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _replace(text: str, known: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        return f"{{{match['literal']}}}" if match["literal"] else as_text(known[match["name"]])

    return _PLACEHOLDER.sub(value, text)


def _as_flags(params: Mapping[str, Any]) -> list[str]:
    """Return `--name value` for each parameter; for switches, `--name` if it is true and nothing otherwise."""
    flags: list[str] = []
    for name, value in params.items():
        text = as_text(value)
        if isinstance(value, bool):
            flags += [f"--{name}"] if value else []
        elif text.startswith("-"):  # argparse takes -1e-05 and -x for options, unless they are in one argument
            flags.append(f"--{name}={text}")
        else:
            flags += [f"--{name}", text]
    return flags
