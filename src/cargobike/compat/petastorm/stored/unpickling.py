"""Read the pickles in which petastorm kept schemas and indexes, without unpickling anything.

A pickle is a program. This machine knows the opcodes that such pickles consist of, and builds nothing but text, bytes,
numbers, tuples, lists, dicts, sets and records of its own. A global is looked up in a table and becomes a record of its
name: nothing is imported, and nothing that a pickle names is ever called.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, Final

from cargobike.compat.petastorm.stored.known import (
    FUNCTIONS,
    Global,
    Made,
    PickleError,
    class_of,
    expected,
    key_of,
    known_global,
    put_pairs,
    shown,
    text_in,
)
from cargobike.core.errors import UntrustedError

LARGEST: Final = 64 << 20
_MOST_OPENED: Final = 1000


def read_pickle(data: bytes) -> Any:
    """Return what a pickle of petastorm's holds: plain values, dicts and `Made`.

    Raises:
        UntrustedError: If it names anything else than petastorm's schemas and indexes do.
        PickleError: If it is broken.
    """
    if len(data) > LARGEST:
        raise PickleError(f"It has {len(data):,} bytes; those of petastorm have at most {LARGEST:,}.")
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.result()
            machine.run(opcode.name, argument)
    except (PickleError, UntrustedError):
        raise
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, ArithmeticError, AttributeError) as error:
        raise PickleError(f"It cannot be read: {error}") from None
    raise PickleError("It has no end.")


class _Machine:
    """A stack, what was put aside, and one small function for each opcode."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def result(self) -> Any:
        """Return what is left."""
        if self._below or len(self._stack) != 1:
            raise PickleError("It ends in the middle.")
        return self._stack[0]

    def run(self, name: str, argument: Any) -> None:
        """Carry out one opcode."""
        if name in _PUSHED:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name]())
        else:
            step = _STEPS.get(name)
            if step is None:
                raise UntrustedError(f"It has the opcode {name}, which no schema and no index of petastorm's has.")
            step(self, argument)

    def nothing(self, argument: Any) -> None:
        """Ignore the version and frames."""

    def mark(self, argument: Any) -> None:
        """Begin a group."""
        if len(self._below) >= _MOST_OPENED:
            raise PickleError("It is nested too deeply.")
        self._below.append(self._stack)
        self._stack = []

    def group(self) -> list[Any]:
        """End a group, and return it."""
        if not self._below:
            raise PickleError("It ends a group that it has not begun.")
        group, self._stack = self._stack, self._below.pop()
        return group

    def pop(self) -> Any:
        """Take the topmost value."""
        if not self._stack:
            raise PickleError("It takes a value that is not there.")
        return self._stack.pop()

    def top(self) -> Any:
        """Return the topmost value."""
        if not self._stack:
            raise PickleError("It uses a value that is not there.")
        return self._stack[-1]

    def tuple_of(self, count: int) -> None:
        """Make a tuple of the last values."""
        values = [self.pop() for _ in range(count)]
        self._stack.append(tuple(reversed(values)))

    def tuple_of_group(self, argument: Any) -> None:
        """Make a tuple of a group."""
        group = self.group()
        self._stack.append(tuple(group))

    def list_of_group(self, argument: Any) -> None:
        """Make a list of a group."""
        group = self.group()
        self._stack.append(group)

    def dict_of_group(self, argument: Any) -> None:
        """Make a dict of a group."""
        group = self.group()
        made: dict[Any, Any] = {}
        put_pairs(made, group)
        self._stack.append(made)

    def append(self, argument: Any) -> None:
        """Add one value to a list."""
        value = self.pop()
        expected(self.top(), list).append(value)

    def appends(self, argument: Any) -> None:
        """Add a group to a list."""
        group = self.group()
        expected(self.top(), list).extend(group)

    def set_item(self, argument: Any) -> None:
        """Add one pair to a dict."""
        value, key = self.pop(), self.pop()
        put_pairs(expected(self.top(), dict), [key, value])

    def set_items(self, argument: Any) -> None:
        """Add the pairs of a group to a dict."""
        group = self.group()
        put_pairs(expected(self.top(), dict), group)

    def add_items(self, argument: Any) -> None:
        """Add a group to a set."""
        group = self.group()
        expected(self.top(), set).update(map(key_of, group))

    def name(self, argument: Any) -> None:
        """Look up a global that stands in one line."""
        module, _, name = str(argument).partition(" ")
        self._stack.append(known_global(module, name))

    def name_from_stack(self, argument: Any) -> None:
        """Look up a global whose names are values."""
        name, module = self.pop(), self.pop()
        self._stack.append(known_global(expected(module, str), expected(name, str)))

    def new_object(self, argument: Any) -> None:
        """Note that an object of a class is made of some values."""
        values, kind = self.pop(), self.pop()
        self._stack.append(Made(class_of(kind), expected(values, tuple)))

    def call(self, argument: Any) -> None:
        """Do what one of a few known functions would have done."""
        values, function = self.pop(), self.pop()
        if not isinstance(function, Global) or function not in FUNCTIONS:
            raise UntrustedError(f"It calls {shown(function)}, which no schema and no index of petastorm's does.")
        self._stack.append(FUNCTIONS[function](expected(values, tuple)))

    def build(self, argument: Any) -> None:
        """Note the attributes of an object."""
        state = self.pop()
        made = expected(self.top(), Made)
        if made.kind == "dtype" or state is None:
            return
        for key, value in expected(state, dict).items():
            made.state[text_in(key)] = value

    def put(self, argument: Any) -> None:
        """Put a value aside under a number."""
        self._memo[int(argument)] = self.top()

    def memoize(self, argument: Any) -> None:
        """Put a value aside under the next number."""
        self._memo[len(self._memo)] = self.top()

    def get(self, argument: Any) -> None:
        """Take up what was put aside."""
        if int(argument) not in self._memo:
            raise PickleError("It takes up what it has not put aside.")
        self._stack.append(self._memo[int(argument)])


_PUSHED: Final = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_CONSTANTS: Final[dict[str, Callable[[], Any]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}
_STEPS: Final[dict[str, Callable[[_Machine, Any], None]]] = {
    "PROTO": _Machine.nothing,
    "FRAME": _Machine.nothing,
    "MARK": _Machine.mark,
    "TUPLE": _Machine.tuple_of_group,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "LIST": _Machine.list_of_group,
    "DICT": _Machine.dict_of_group,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "ADDITEMS": _Machine.add_items,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name_from_stack,
    "NEWOBJ": _Machine.new_object,
    "REDUCE": _Machine.call,
    "BUILD": _Machine.build,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.memoize,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
}
