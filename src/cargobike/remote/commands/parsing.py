"""Arguments of a command, read by the command line's own parser, and written again with other values.

Nothing is run, and no value is converted: only which parameter each word belongs to is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import typer

from cargobike.cli.app import find_command, load_command
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest, nearest_names
from cargobike.core.registering.products import commands, products


class Parsed(NamedTuple):
    """A command and what it was given.

    Attributes:
        words: What it is called: `("models", "promote")`.
        values: The texts of each parameter that was given, by its name; those of flags are empty.
        command: The command, as Typer made it.
        options: What its parser found.
    """

    words: tuple[str, ...]
    values: dict[str, list[str]]
    command: Any
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is called, in one line."""
        return " ".join(self.words)

    def rewritten(self, change: Callable[[str, str], str]) -> list[str]:
        """Return the whole command line, with each text replaced by what a function makes of parameter and text."""
        options: list[str] = []
        arguments: list[str] = []
        for parameter in self.command.params:
            given = self.options.get(parameter.name)
            if parameter.param_type_name == "argument":
                arguments += [change(parameter.name, text) for text in _texts(given)]
            elif getattr(parameter, "is_flag", False) or getattr(parameter, "count", False):
                options += _flags(parameter, given)
            else:
                name = max(parameter.opts, key=len)
                for text in (change(parameter.name, one) for one in _texts(given)):
                    options += [f"{name}={text}"] if name.startswith("--") else [name, text]
        return [*self.words, *options, *(["--", *arguments] if arguments else [])]


def parse(arguments: Sequence[str]) -> Parsed:
    """Find out which command a command line means, and what each of its parameters was given.

    Raises:
        NotFoundError: If there is no such command.
        InvalidInputError: If the command does not take these arguments.
    """
    if not arguments or arguments[0].startswith("-"):
        raise InvalidInputError("A command comes first, such as `ls`; options that all commands share cannot be given.")
    if find_command(arguments[0]) is None:
        names = list(commands(products()))
        raise NotFoundError(
            f"There is no command {arguments[0]!r}.{nearest(arguments[0], names)}",
            wanted=arguments[0],
            nearest=nearest_names(arguments[0], names),
        )
    words, rest, command = [arguments[0]], list(arguments[1:]), load_command(arguments[0])
    while inner := getattr(command, "commands", None):
        if not rest or rest[0].startswith("-"):
            break
        if rest[0] not in inner:
            raise NotFoundError(
                f"`{' '.join(words)}` has no command {rest[0]!r}.{nearest(rest[0], inner)} It has {', '.join(inner)}.",
                wanted=rest[0],
                nearest=nearest_names(rest[0], inner),
            )
        command = inner[rest[0]]
        words.append(rest.pop(0))
    options = _options(command, words, rest)
    values = {name: _texts(given) for name, given in options.items() if _is_given(given)}
    return Parsed(tuple(words), values, command, options)


def _options(command: Any, words: Sequence[str], rest: list[str]) -> dict[str, Any]:
    context = typer.Context(command, info_name=words[-1], **command.context_settings)
    try:
        found, left, _ = command.make_parser(context).parse_args(args=list(rest))
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        raise InvalidInputError(f"`cargobike {' '.join(words)}` was called wrongly: {message()}") from error
    if left and not getattr(command, "commands", None):
        raise InvalidInputError(f"`cargobike {' '.join(words)}` does not take {left[0]!r}.")
    options: dict[str, Any] = found
    return options


def _is_given(value: object) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, (list, tuple)) and len(value) > 0)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in _texts(one)]
    return []


def _flags(parameter: Any, value: object) -> list[str]:
    if isinstance(value, bool):
        names = parameter.opts if value else parameter.secondary_opts
        return [max(names, key=len)] if names else []
    if isinstance(value, int):
        return [parameter.opts[0]] * value
    return [parameter.opts[-1]] if _is_given(value) else []
