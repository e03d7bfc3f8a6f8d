"""Calls of our own that are steps by themselves when a pipeline makes them.

A door marks such a call with `own_step`. Outside of a pipeline that costs a look at a variable. Inside, the pipeline is
asked to make the call: it records it, keeps its result by reference, and does not make it a second time.

A result is kept by reference if it has a method `kept_as()` that returns a `Kept`; the product that has its kind
registers what opens it again (`Product.opened`). A call that was begun by a process that was killed can be found
again: what it makes records `step_token()`, by which its `recover` finds it. A pipeline calls `recover` before it makes
a call that was begun and has no recorded end, inside `stepping(None, token)`, with the token that the call had.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load

_PRODUCTS = "cargobike.core.registering.products:products"
"""By name: every launch loads this module, and needs none of the products to begin its first trial."""

P = ParamSpec("P")
R = TypeVar("R")


class Kept(NamedTuple):
    """Names something that a project keeps: `("model", "digits:3")`, `("experiment", "20261117-1a2b")`."""

    kind: str
    id: str


@runtime_checkable
class Keepable(Protocol):
    """What can be kept by reference."""

    def kept_as(self) -> Kept:
        """Return what it is kept as."""
        ...


class OwnCall(NamedTuple):
    """A call of our own.

    Attributes:
        name: What people write: `models.register`.
        recover: The `module:name` of a function `(token, project, *args, **kwargs)`, with the arguments of the call,
            that returns what a call with that token made, or goes on with what it began; `None` if it is to be made
            again. Empty if a call may be made again as it is, since that changes nothing.
    """

    name: str
    recover: str = ""


class Stepper(Protocol):
    """A pipeline that is running."""

    def own_call(self, call: OwnCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a call as a step, or return what it returned before."""
        ...


_stepper: ContextVar[Stepper | None] = ContextVar("cargobike_stepper", default=None)
_token: ContextVar[str] = ContextVar("cargobike_step_token", default="")


def own_step(name: str, *, recover: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a public call as one that is a step by itself inside a pipeline; see `OwnCall`."""
    call = OwnCall(name, recover)

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            stepper = _stepper.get()
            if stepper is None:
                return function(*args, **kwargs)
            result: R = stepper.own_call(call, function, args, kwargs)
            return result

        return called

    return mark


@contextlib.contextmanager
def stepping(stepper: Stepper | None, token: str = "") -> Iterator[None]:
    """Let a pipeline make the calls of our own inside; `None` while a step runs, whose calls are its own affair.

    Args:
        stepper: The pipeline.
        token: Names the step that runs, for what it makes.
    """
    before, token_before = _stepper.set(stepper), _token.set(token)
    try:
        yield
    finally:
        _stepper.reset(before)
        _token.reset(token_before)


def step_token() -> str:
    """Return what names the step that runs: whatever the step makes records it; empty outside of a pipeline."""
    return _token.get()


def open_kept(kept: Kept, project: ProjectFolder) -> Any:
    """Return what is kept in a project under a name.

    Raises:
        NotFoundError: If it is not there any more, or no product knows its kind.
    """
    for product in load(_PRODUCTS)():
        if path := product.opened.get(kept.kind):
            return load(path)(kept.id, project)
    raise NotFoundError(f"No product here can open a {kept.kind} ({kept.id}).", wanted=kept.id)
