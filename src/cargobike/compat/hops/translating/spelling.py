"""The spellings of one call over the years: another first argument, other names of arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cargobike.compat.hops.translating.place import is_spark
from cargobike.compat.noticing import notice


def spelled(old: str, **renamed: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function take a call in any of its spellings, and give its notice.

    Before September 2018 a Spark session came first; it is handed on as `spark`.

    Args:
        old: The call's full name.
        **renamed: Earlier names of arguments, with what they are called in the function.
    """

    def known(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            notice(old)
            if args and is_spark(args[0]):
                kwargs["spark"], args = args[0], args[1:]
            for former, name in renamed.items():
                if former in kwargs:
                    kwargs[name] = kwargs.pop(former)
            return function(*args, **kwargs)

        return call

    return known
