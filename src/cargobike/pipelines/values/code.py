"""Fingerprints of code: a function, and everything of the user's own that it reaches.

A step's fingerprint changes when its source changes, that of a function, class or constant of its file that it names,
a value that it closes over, or any file of the user's own that it imports, directly or through another. Installed
libraries count by their version. What is looked up by a name that is made at run time is not seen.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from cargobike.experiments.asking.own_modules import file_of, imported_by, is_own_file, source_of
from cargobike.pipelines.values import pickling
from cargobike.pipelines.values.value import digest_of


def fingerprints(function: Callable[..., Any], files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the fingerprint of each part of a function's code and of what it reaches, by name.

    Args:
        function: The function.
        files: What is in the files of the user's modules, by their names; what is on the disk by default.
    """
    walk = _Walk(files or {})
    walk.add(getattr(function, "__name__", "function"), function)
    return {name: digest_of(*sorted(texts)) for name, texts in sorted(walk.parts.items())}


def fingerprint(function: Callable[..., Any], files: Mapping[str, str] | None = None) -> str:
    """Return one fingerprint of a function's code and of what it reaches."""
    return joined(fingerprints(function, files))


def joined(parts: dict[str, str]) -> str:
    """Return one fingerprint of many."""
    return digest_of(*(text.encode() for pair in sorted(parts.items()) for text in pair))


class _Walk:
    """Adds one part after the other, each once."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.parts: dict[str, list[bytes]] = {}
        self._seen: set[int] = set()
        self._files: set[str] = set()
        self._home = ""

    def add(self, name: str, value: Any) -> None:
        """Add something that the code reaches by a name."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        while isinstance(value, functools.partial):
            self._value(f"{name} args", (value.args, value.keywords))
            value = value.func
        if isinstance(value, MethodType):
            self._value(f"{name} self", value.__self__)
            value = value.__func__
        unwrapped = inspect.unwrap(value) if callable(value) else value
        if unwrapped is not value:
            self.add(name, unwrapped)
            return
        if isinstance(value, ModuleType):
            self._module(value.__name__)
        elif isinstance(value, FunctionType):
            self._function(name, value)
        elif isinstance(value, type):
            self._class(name, value)
        else:
            self._value(name, value)

    def _function(self, name: str, function: FunctionType) -> None:
        if self._is_elsewhere(function):
            return
        # Both: the file may have been edited since it was loaded.
        self._part(name, f"{_source(function)}\0{_compiled(function.__code__)}")
        for default in (function.__defaults__, function.__kwdefaults__):
            self._value(f"{name} defaults", default)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.add(f"{name} {variable}", cell.cell_contents)
            except ValueError:
                continue  # not bound yet
        for code in _codes(function.__code__):
            for global_name in code.co_names:
                if global_name in function.__globals__:
                    self.add(global_name, function.__globals__[global_name])
            for module in _imports(code):
                self._module(module)

    def _class(self, name: str, kind: type) -> None:
        if self._is_elsewhere(kind):
            return
        self._part(name, _source(kind) or repr(sorted(vars(kind))))
        for parent in kind.__mro__[1:]:
            self.add(parent.__name__, parent)
        for key, member in vars(kind).items():
            inner = getattr(member, "__func__", member)
            inner = getattr(inner, "fget", inner) or inner
            if isinstance(inner, FunctionType):
                self.add(f"{name}.{key}", inner)

    def _is_elsewhere(self, thing: Any) -> bool:
        """Tell whether a function or class comes from another file than the step, which then counts as a whole."""
        module = getattr(thing, "__module__", None) or ""
        if not self._home:
            self._home = module
        if module == self._home:
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        if isinstance(file, str) and is_own_file(file):
            self._module(module)
        else:
            self._library(module)
        return True

    def _module(self, name: str) -> None:
        """Add the file of one of the user's modules and of all that it imports; a library by its version."""
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in self._files:
                continue
            self._files.add(name)
            file, _ = file_of(name)
            if file is None:
                self._library(name)
                continue
            source = self._sources.get(name) or source_of(file)
            self._part(f"file {name}", source)
            waiting += imported_by(source)

    def _library(self, name: str) -> None:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top != "cargobike":
            self._part(f"library {top}", str(getattr(sys.modules.get(top), "__version__", "")))

    def _value(self, name: str, value: Any) -> None:
        try:
            data = pickling.to_compare(value)
        except Exception:  # noqa: BLE001 - what cannot be pickled cannot be compared; its class can
            data = f"{type(value).__module__}.{type(value).__qualname__}".encode()
        self._part(name, hashlib.blake2b(data, digest_size=16).hexdigest())

    def _part(self, name: str, text: str) -> None:
        self.parts.setdefault(
            name.partition(" ")[0] if not name.startswith(("file ", "library ")) else name, []
        ).append(f"{name}\0{text}".encode("utf-8", "replace"))


def _source(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""


def _compiled(code: CodeType) -> str:
    constants = [_constant(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    inner = [_compiled(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return "\0".join([code.co_code.hex(), *code.co_names, *constants, *inner])


def _constant(constant: Any) -> str:
    """Return a constant as text that is the same in every process; sets have another order in each."""
    return repr(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imports(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME" and isinstance(instruction.argval, str) and instruction.argval:
            yield instruction.argval


def function_place(function: Callable[..., Any]) -> str:
    """Return where a function can be found again: `file.py:name`; empty if it is not at the top of a file."""
    plain = inspect.unwrap(function)
    name = getattr(plain, "__qualname__", "")
    file = getattr(getattr(plain, "__code__", None), "co_filename", "")
    if not name.isidentifier() or not os.path.isfile(file) or not file.endswith(".py"):
        return ""
    return f"{os.path.abspath(file)}:{name}"
