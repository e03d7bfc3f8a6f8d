"""Puts a mutant in the place of functions that are loaded already."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType


def functions_of(path: str) -> list[FunctionType]:
    """Return the functions of a module that are loaded, also those that were wrapped or are methods."""
    # By type, not by isinstance: some objects answer questions about their class with code of their own.
    functions = [thing for thing in gc.get_objects() if type(thing) is FunctionType]
    return [function for function in functions if function.__code__.co_filename == path]


def swap(functions: list[FunctionType], path: str, source: str) -> bool:
    """Give functions the code that they have in the source of their module; tell whether any has changed.

    Whatever has imported such a function, wrapped it or bound it calls the new code from now on.
    """
    codes = {_key(code): code for code in _inner(compile(source, path, "exec"))}
    changed = False
    for function in functions:
        code = codes.get(_key(function.__code__))
        if code is None or code == function.__code__:
            continue
        if code.co_freevars != function.__code__.co_freevars:
            continue  # it would need other surroundings than the function has
        function.__code__ = code
        changed = True
    return changed


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)
