"""Answers of the API: one shape that is documented, checked by types, and sent."""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ParamSpec

import msgspec
import pydantic
from starlette.responses import Response

from cargobike.ui.answers import Answer, Problem

_P = ParamSpec("_P")


@functools.cache
def model_of(shape: type[Answer]) -> type[pydantic.BaseModel]:
    """Return a shape as a model of pydantic, which documents it and can check an answer."""
    hints = typing.get_type_hints(shape, include_extras=True)
    fields: dict[str, Any] = {name: (_as_documented(hints[name]), ...) for name in shape.__struct_fields__}
    return pydantic.create_model(shape.__name__, __doc__=shape.__doc__, __module__=shape.__module__, **fields)


def _as_documented(hint: Any) -> Any:
    """Return a type whose limits and words are those of pydantic, wherever they stand in it."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        limits = [_as_field(one) if isinstance(one, msgspec.Meta) else one for one in hint.__metadata__]
        return Annotated[(_as_documented(parts[0]), *limits)]
    if typing.get_origin(hint) in (typing.Literal, None):
        return hint
    inner = tuple(_as_documented(part) for part in parts)
    if inner == parts:
        return hint
    return functools.reduce(operator.or_, inner) if isinstance(hint, types.UnionType) else hint.__origin__[inner]


def _as_field(meta: msgspec.Meta) -> Any:
    return pydantic.Field(**{name: value for name, value in meta.__rich_repr__() if value is not None})


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request makes no sense."},
    401: {"model": Problem, "description": "A token is needed."},
    404: {"model": Problem, "description": "What was asked for does not exist."},
    413: {"model": Problem, "description": "The body is too long."},
    414: {"model": Problem, "description": "The address is too long."},
    421: {"model": Problem, "description": "This server does not answer to that host name."},
    422: {"model": Problem, "description": "A value in the request cannot be used."},
    503: {"model": Problem, "description": "The project cannot be read just now."},
}
"""How refusals that any route may answer with are documented."""


def sends(make: Callable[_P, Answer | None]) -> Callable[_P, Response]:
    """Turn a function that makes an answer into an endpoint that sends it; its return type is what is documented."""

    @functools.wraps(make)
    def endpoint(*args: _P.args, **kwargs: _P.kwargs) -> Response:
        return answer(make(*args, **kwargs))

    return endpoint


def answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return data as a response; numbers that JSON does not have must have been packed."""
    return Response(encoded(value), status, media_type="application/json", headers=dict(headers or {}))


def encoded(value: object) -> bytes:
    """Encode answers and plain data, NumPy arrays included; NaN and infinities become `null`."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: object) -> object:
    as_list: Callable[[], object] | None = getattr(value, "tolist", None)
    return str(value) if as_list is None else as_list()
