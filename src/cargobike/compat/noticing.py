"""One quiet line for each older call that a program makes: what our own is called."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from cargobike.compat.translations import translation_of
from cargobike.core import settings
from cargobike.core.running import member

_P = ParamSpec("_P")
_R = TypeVar("_R")

_told: set[str] = set()


def notice(old: str) -> None:
    """Say on standard error, the first time only, what an older call is called here.

    Args:
        old: The call's full name, as in the library's `TRANSLATIONS`.
    """
    if old in _told:
        return
    _told.add(old)
    if os.environ.get(settings.COMPAT_QUIET) or member.is_inside():
        return
    translation = translation_of(old)
    if translation is not None and translation.new:
        sys.stderr.write(f"cargobike: {old} is called {translation.new} here\n")


def formerly(old: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function give its notice when it is called first."""

    def noticed(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            notice(old)
            return function(*args, **kwargs)

        return call

    return noticed
