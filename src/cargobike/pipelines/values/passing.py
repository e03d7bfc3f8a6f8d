"""What a step is called with: described for the journal, fingerprinted, packed for its process, and opened there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import Kept
from cargobike.core.values.exact import pack_exactly
from cargobike.pipelines.values import pickling
from cargobike.pipelines.values.keeping import is_plain, words_for
from cargobike.pipelines.values.pickling import Promise
from cargobike.pipelines.values.value import MOST_INLINE_BYTES, Value, digest_of


class Inputs(NamedTuple):
    """What a step is called with.

    Attributes:
        described: Each argument by reference, by the name of its parameter.
        digest: The fingerprint of all, in which the results of other steps count by their place only.
        after: The steps whose results are among them, by their place.
        promises: Those results.
    """

    described: dict[str, Value]
    digest: str
    after: tuple[int, ...]
    promises: list[Promise]


def describe(
    signature: inspect.Signature | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    title: str,
    *,
    stays_here: bool = False,
) -> Inputs:
    """Describe what a step is called with.

    Args:
        signature: Of the function, if it is known.
        args: Arguments by place.
        kwargs: Arguments by name.
        title: What people call the step.
        stays_here: Whether they are not passed to another process; then objects count by their class only.

    Raises:
        InvalidInputError: If an argument cannot be passed to another process, or they do not fit the function.
    """
    promises: list[Promise] = []
    described: dict[str, Value] = {}
    for name, value in _named(signature, args, kwargs, title):
        if stays_here and not is_plain(value) and not pickling.is_kept(value):
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            described[name] = Value("pickle", digest_of(kind.encode()), text=words_for(value))
        else:
            described[name] = _described(name, value, promises, title)
    digest = digest_of(*(part.encode() for name, value in described.items() for part in (name, value.digest)))
    return Inputs(described, digest, tuple(promise.number for promise in promises), promises)


def pack(args: Sequence[Any], kwargs: Mapping[str, Any], promises: Sequence[Promise]) -> bytes:
    """Pack arguments for the process of a step; the places of results are those that `describe` gave them."""
    return pickling.dump((tuple(args), dict(kwargs)), list(promises))


def unpack(
    data: bytes, open_kept: Callable[[Kept], Any], results: Sequence[Callable[[], Any]]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Undo `pack`."""
    args, kwargs = pickling.load(data, open_kept, results)
    return args, kwargs


def resolved(value: Any, result_of: Callable[[Promise], Any]) -> Any:
    """Return a value with the results of steps in the place of promises, also inside lists, tuples and dicts."""
    if isinstance(value, Promise):
        return result_of(value)
    if type(value) is list:
        return [resolved(item, result_of) for item in value]
    if type(value) is tuple:
        return tuple(resolved(item, result_of) for item in value)
    if type(value) is dict:
        return {key: resolved(item, result_of) for key, item in value.items()}
    return value


def _named(
    signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any], title: str
) -> list[tuple[str, Any]]:
    if signature is None:
        return [*((str(place), value) for place, value in enumerate(args)), *kwargs.items()]
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidInputError(f"{title}{signature} cannot be called so: {error}.") from error
    named: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            named += [(f"{name}[{place}]", item) for place, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named += value.items()
        else:
            named.append((name, value))
    return named


def _places(wanted: Sequence[Promise], promises: list[Promise]) -> list[int]:
    """Return the places of results among those that a step is given; new ones are added."""
    known = {id(promise): place for place, promise in enumerate(promises)}
    for promise in wanted:
        if id(promise) not in known:
            known[id(promise)] = len(promises)
            promises.append(promise)
    return [known[id(promise)] for promise in wanted]


def _described(name: str, value: Any, promises: list[Promise], title: str) -> Value:
    if isinstance(value, Promise):
        return Value("step", f"step {_places([value], promises)[0]}", value.number)
    if type(value) is list and value and all(isinstance(item, Promise) for item in value):
        places = " ".join(map(str, _places(value, promises)))
        return Value("step", f"steps {places}", [item.number for item in value])
    if pickling.is_kept(value):
        thing = value.kept_as()
        return Value("kept", digest_of(thing.kind.encode(), thing.id.encode()), thing=(thing.kind, thing.id))
    if is_plain(value):
        packed = pack_exactly(value)
        data = msgspec.json.encode(packed)
        if len(data) <= MOST_INLINE_BYTES:
            return Value("plain", digest_of(data), packed)
        return Value("json", digest_of(data), size_bytes=len(data), text=f"{type(value).__name__} of {len(value)}")
    try:
        data = pickling.to_compare(value, promises)
    except Exception as error:
        raise InvalidInputError(
            f"The argument {name!r} of {title} is a {type(value).__name__}, which cannot be passed to another process "
            f"({type(error).__name__}: {error}). Pass what is needed to make it, and make it in the step."
        ) from error
    return Value("pickle", digest_of(data), size_bytes=len(data), text=words_for(value))
