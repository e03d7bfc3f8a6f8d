"""What pickles of petastorm's may name and call, and what is done instead: records of ours and plain values."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cargobike.core.errors import UntrustedError

NUMPY_TYPES: Final[dict[str, Any]] = {
    **{name: np.dtype(name).type for sign in ("int", "uint") for name in (f"{sign}{8 << at}" for at in range(4))},
    **{f"float{bits}": np.dtype(f"float{bits}").type for bits in (16, 32, 64)},
    **dict.fromkeys(("bool_", "bool"), np.bool_),
    **dict.fromkeys(("str_", "unicode_"), np.str_),
    **dict.fromkeys(("bytes_", "string_"), np.bytes_),
    "datetime64": np.datetime64,
}
"""Names of NumPy's types; some are gone from NumPy 2."""

SPARK_TYPES: Final = tuple(
    f"{name}Type"
    for name in (
        *("Byte", "Short", "Integer", "Long", "Float", "Double", "Boolean"),
        *("String", "Binary", "Decimal", "Date", "Timestamp"),
    )
)

CODECS: Final = ("ScalarCodec", "NdarrayCodec", "CompressedNdarrayCodec", "CompressedImageCodec")
INDEXERS: Final = ("SingleFieldIndexer", "FieldNotNullIndexer")

_FORMER_PACKAGES: Final = ("av.experimental.deepdrive.dataset_toolkit.", "av.ml.dataset_toolkit.")
_MODULES: Final = {"copyreg": "copy_reg", "builtins": "__builtin__", "numpy._core.multiarray": "numpy.core.multiarray"}


class PickleError(Exception):
    """A pickle is broken, or none of those that petastorm wrote."""


class Global(NamedTuple):
    """The name of something that a pickle refers to; only a name."""

    module: str
    name: str


class Made:
    """What an object would have been: its class by name, the values that it was made of, and its attributes."""

    __slots__ = ("kind", "state", "values")

    def __init__(self, kind: str, values: tuple[Any, ...] = ()) -> None:
        self.kind = kind
        self.values = values
        self.state: dict[str, Any] = {}


_CLASSES: Final = {
    **{("petastorm.unischema", name): name for name in ("Unischema", "UnischemaField")},
    **{("petastorm.codecs", name): name for name in CODECS},
    **{("pyspark.sql.types", name): name for name in SPARK_TYPES},
    **{("petastorm.etl.rowgroup_indexers", name): name for name in INDEXERS},
}
"""Classes that objects may be of; they become a `Made`."""

_VALUES: Final = {("numpy", name) for name in NUMPY_TYPES} | {("decimal", "Decimal")}
"""What stands in a schema as itself: types."""

_Scalar = str | bytes | int | float | decimal.Decimal | None


def known_global(module: str, name: str) -> Global:
    """Return the name of something that is known, as it is called today."""
    for former in _FORMER_PACKAGES:
        if module.startswith(former):
            module = "petastorm." + module.removeprefix(former)
    found = Global(_MODULES.get(module, module), name)
    if found not in _CLASSES and found not in _VALUES and found not in FUNCTIONS and found not in _NAMES:
        raise UntrustedError(
            f"It names {module[:80]}.{name[:80]}, which no schema and no index of petastorm's does. Nothing of it was "
            "run. If it is a codec of your own, write the data set again with one of petastorm's codecs."
        )
    return found


def class_of(kind: Any) -> str:
    """Return the name of a class that objects may be of."""
    if not isinstance(kind, Global) or kind not in _CLASSES:
        raise UntrustedError(f"It makes an object of {shown(kind)}, which no schema of petastorm's has.")
    return _CLASSES[kind]


def _reconstructed(values: tuple[Any, ...]) -> Made:
    kind, base, state = values
    if base == Global("__builtin__", "object") and state is None:
        return Made(class_of(kind))
    if base == Global("__builtin__", "tuple"):
        return Made(class_of(kind), tuple(expected(state, tuple | list)))
    raise PickleError("It makes an object in an unknown way.")


def _restored(values: tuple[Any, ...]) -> Made:
    name, names, given = values
    if name != "UnischemaField":
        raise UntrustedError(f"It makes a tuple called {shown(name)}; only UnischemaField is known.")
    made = Made("UnischemaField")
    for key, value in zip(expected(names, tuple | list), expected(given, tuple | list), strict=True):
        made.state[text_in(key)] = value
    return made


def _ordered(values: tuple[Any, ...]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for pair in expected(values[0], list) if values else ():
        put_pairs(made, list(expected(pair, list | tuple)))
    return made


def _defaulting(values: tuple[Any, ...]) -> dict[Any, Any]:
    return {}


def _set(values: tuple[Any, ...]) -> set[Any]:
    return {key_of(each) for each in expected(values[0], list | tuple)} if values else set()


def _decimal(values: tuple[Any, ...]) -> decimal.Decimal:
    return decimal.Decimal(text_in(values[0])[:100])


def _dtype(values: tuple[Any, ...]) -> Made:
    dtype = np.dtype(text_in(values[0])[:8])
    if dtype.kind not in "biufSU" or dtype.hasobject or dtype.fields is not None:
        raise PickleError("It has numbers of an unknown type.")
    return Made("dtype", (dtype,))


def _number(values: tuple[Any, ...]) -> Any:
    described, content = values
    made = expected(described, Made)
    if made.kind != "dtype":
        raise PickleError("It has a number of no type.")
    data = content.encode("latin-1") if isinstance(content, str) else expected(content, bytes)
    dtype: np.dtype[Any] = made.values[0]
    return np.frombuffer(data, dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype, 1)[0].item()


FUNCTIONS: Final[dict[tuple[str, str], Callable[[tuple[Any, ...]], Any]]] = {
    ("copy_reg", "_reconstructor"): _reconstructed,
    ("pyspark.serializers", "_restore"): _restored,
    ("collections", "OrderedDict"): _ordered,
    ("collections", "defaultdict"): _defaulting,
    ("__builtin__", "set"): _set,
    ("decimal", "Decimal"): _decimal,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "scalar"): _number,
}
"""What a pickle may call, and what is done instead: each returns plain values."""

_NAMES: Final = {("__builtin__", "object"), ("__builtin__", "tuple")}


def put_pairs(into: dict[Any, Any], pairs: Sequence[Any]) -> None:
    """Add keys and values, one after the other, to a dict."""
    if len(pairs) % 2:
        raise PickleError("It has a key without a value.")
    for at in range(0, len(pairs), 2):
        into[key_of(pairs[at])] = pairs[at + 1]


def key_of(value: Any) -> _Scalar:
    """Return a key of a dict or a set; tuples of tuples could take for ever to hash."""
    if value is None or isinstance(value, str | bytes | int | float | decimal.Decimal):
        return value
    raise PickleError("It has keys that are neither text nor numbers.")


def expected(value: Any, kind: Any) -> Any:
    """Return a value that is of a type."""
    if not isinstance(value, kind):
        raise PickleError("It has values of unexpected types.")
    return value


def text_in(value: Any) -> str:
    """Return text, which Python 2 wrote as bytes."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(expected(value, str))


def shown(value: Any) -> str:
    """Return a few words for an error; what a pickle holds is never shown whole."""
    return f"{value.module[:80]}.{value.name[:80]}" if isinstance(value, Global) else f"a {type(value).__name__}"
