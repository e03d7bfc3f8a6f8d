"""Steps: functions that a pipeline runs in processes of their own, records, and does not run twice."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, overload

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.engines.registry import ENGINES
from cargobike.pipelines.driving.events import LOCAL, Options
from cargobike.pipelines.steps.current import current_driver
from cargobike.pipelines.steps.result import StepResult
from cargobike.pipelines.values.code import function_place

_MOST_RETRIES: Final = 1000


class Step:
    """A function as a step; made by `step`.

    Calling it in a pipeline asks for the step and returns at once, with what it will return. Outside of a pipeline, and
    inside of another step, it calls the function as usual.

    Attributes:
        name: What people call it.
        function: The function itself.
    """

    def __init__(self, function: Callable[..., Any], name: str, options: Options) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.name = name
        self.options = options
        try:
            self.signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None  # of some functions in C it is not known

    def __call__(self, *args: Any, **kwargs: Any) -> StepResult:
        """Ask for the step, with arguments that may be results of other steps."""
        driver = current_driver()
        if driver is None:
            plain = [_value(item) for item in args], {name: _value(item) for name, item in kwargs.items()}
            return StepResult(0, self.name, None, self.function(*plain[0], **plain[1]))
        return driver.ask(self, args, kwargs)

    def map(self, *lists: Iterable[Any], **same: Any) -> list[StepResult]:
        """Ask for the step once for each item of a list; further lists give further arguments.

        Args:
            *lists: As many items as there are to be steps, all of the same length.
            **same: Arguments that are the same for all of them.
        """
        columns = [list(items) for items in lists]
        if not columns or len({len(column) for column in columns}) != 1:
            lengths = ", ".join(str(len(column)) for column in columns) or "no list"
            raise InvalidInputError(f"{self.name}.map needs lists of the same length; {lengths} were given.")
        return [self(*items, **same) for items in zip(*columns, strict=True)]

    @functools.cached_property
    def place(self) -> str:
        """Where its function can be found again: `file.py:name`; empty if it is not at the top of a file."""
        return function_place(self.function)

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    def __reduce__(self) -> Any:
        return Step, (self.function, self.name, self.options)


def _value(item: Any) -> Any:
    return item.result() if isinstance(item, StepResult) else item


@overload
def step(
    function: Callable[..., Any],
    /,
    *,
    name: str = "",
    retries: int = 0,
    backoff: Seconds = 1.0,
    timeout: Seconds | None = None,
    cache: bool | Seconds = False,
    engine: str = "local",
) -> Step: ...


@overload
def step(
    function: None = None,
    /,
    *,
    name: str = "",
    retries: int = 0,
    backoff: Seconds = 1.0,
    timeout: Seconds | None = None,
    cache: bool | Seconds = False,
    engine: str = "local",
) -> Callable[[Callable[..., Any]], Step]: ...


def step(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    retries: int = 0,
    backoff: Seconds = 1.0,
    timeout: Seconds | None = None,
    cache: bool | Seconds = False,
    engine: str = "local",
) -> Step | Callable[[Callable[..., Any]], Step]:
    """Make a step of a function; also a decorator, with options or without.

    Args:
        function: What the step does. It runs in a process of its own.
        name: What to call it; the function's name by default.
        retries: How many more attempts there are after one that failed.
        backoff: How long to wait before the second attempt; each further pause is twice as long.
        timeout: How long one attempt may take, such as `60` or `"10m"`; as long as it needs by default.
        cache: Whether the result of an earlier run with the same code and inputs may be used: `True`, or not older than
            a time such as `"7d"`. A step that reads or changes anything outside should not be cached.
        engine: Where it runs: `local`, a process on this machine; another engine's name or address, such as `spark` or
            `spark://host:7077`, where it is a tracked run of one worker.

    Raises:
        InvalidInputError: For all mistakes at once.

    Example:
        >>> from cargobike import pipelines
        >>> double = pipelines.step(lambda x: 2 * x, name="double", retries=2, timeout="10s")
        >>> double(21).result()
        42
    """
    if function is None:
        return functools.partial(
            step,
            name=name,
            retries=retries,
            backoff=backoff,
            timeout=timeout,
            cache=cache,
            engine=engine,
        )
    title = name or getattr(function, "__name__", "") or type(function).__name__
    options = _read_options(function, retries=retries, backoff=backoff, timeout=timeout, cache=cache, engine=engine)
    return Step(function, title, options)


def _read_options(
    function: Any, *, retries: int, backoff: Seconds, timeout: Seconds | None, cache: bool | Seconds, engine: str
) -> Options:
    mistakes: list[str] = []
    if not callable(function):
        mistakes.append(f"a step is made of a function, not of {function!r}")
    elif isinstance(function, Step):
        mistakes.append(f"{function.name} is a step already")
    elif inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        mistakes.append(f"{function.__name__} is a generator or a coroutine; a step is a plain function that returns")
    if type(retries) is not int or not 0 <= retries <= _MOST_RETRIES:
        mistakes.append(f"retries must be a whole number from 0 to {_MOST_RETRIES}, {retries!r} was given")
    scheme = str(engine).partition("://")[0]
    if engine != LOCAL and scheme not in {*ENGINES.names(), *ENGINES.aliases}:
        mistakes.append(ENGINES.unknown(scheme))
    seconds: list[float | None] = []
    for word, given in (("backoff", backoff), ("timeout", timeout), ("cache", math.inf if cache is True else cache)):
        try:
            seconds.append(None if given is False else read_seconds(word, given, may_be_zero=word == "backoff"))
        except InvalidInputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("This cannot be a step:", mistakes)
    kept_s = 0.0 if cache is False or cache is None else math.inf if seconds[2] is None else seconds[2]
    timeout_s = math.inf if seconds[1] is None else seconds[1]
    return Options(retries=retries, backoff_s=seconds[0] or 0.0, timeout_s=timeout_s, cache_s=kept_s, engine=engine)
