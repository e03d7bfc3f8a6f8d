"""Windows, lengths of time and hooks as users write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import read_count
from cargobike.monitoring.facts import Hooks, WindowChoice
from cargobike.monitoring.hooks.command import check_command
from cargobike.monitoring.hooks.mail import check_mail
from cargobike.monitoring.hooks.webhook import check_webhook

_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SHORTEST_S: Final = 1.0


def read_window(given: Any, lateness: Any = "1min") -> WindowChoice:
    """Return how rows are gathered: `1000` rows, or `"1h"`.

    Raises:
        InvalidInputError: If it is neither.

    Example:
        >>> read_window("1h").seconds, read_window(500).rows
        (3600.0, 500)
    """
    lateness_s = read_length("lateness", lateness)
    if isinstance(given, str) and not given.strip().isdigit():
        seconds = read_length("window", given)
    elif isinstance(given, timedelta):
        seconds = given.total_seconds()
    else:
        return WindowChoice(rows=read_count("window", int(given) if isinstance(given, str) else given, least=1))
    if seconds < _SHORTEST_S:
        raise InvalidInputError(f"window={given!r} is shorter than a second; give rows or a longer time.")
    return WindowChoice(rows=0, seconds=seconds, lateness_s=lateness_s)


def read_length(name: str, given: Any) -> float:
    """Return a length of time in seconds: `"30min"`, a `timedelta`, or a number of seconds.

    Raises:
        InvalidInputError: If it is none.
    """
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    match = _AGE.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None:
        raise InvalidInputError(
            f"{name}={given!r} is no length of time; write '90s', '30min', '1h', '7d'"
            + (", or a number of rows." if name == "window" else ".")
        )
    return float(match[1]) * _UNITS[match[2]]


def read_hooks(hooks: Hooks) -> Hooks:
    """Return what is told of alarms, checked.

    Raises:
        InvalidInputError: If one of them cannot be told; names all mistakes.
    """
    checks: tuple[tuple[object, Callable[[], None]], ...] = (
        (hooks.webhook, lambda: check_webhook(hooks.webhook)),
        (hooks.email, lambda: check_mail(hooks.email, hooks.smtp)),
        (hooks.command, lambda: check_command(hooks.command)),
    )
    mistakes = []
    for is_wanted, check in checks:
        try:
            if is_wanted:
                check()
        except InvalidInputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("These hooks cannot be told of alarms.", mistakes)
    return msgspec.structs.replace(hooks, command=tuple(hooks.command))
