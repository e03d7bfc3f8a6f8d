"""What a step will return: can be passed to other steps as it is, and waits where its value is needed."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import Any, Final, Protocol

from cargobike.pipelines.values.pickling import Promise

_MISSING: Final = object()


class Waits(Protocol):
    """What knows when a step has ended."""

    def wait_for(self, number: int, timeout_s: float | None) -> Any:
        """Return what a step returned, or raise why it did not."""
        ...

    def is_settled(self, number: int) -> bool:
        """Tell whether a step has ended."""
        ...


class StepResult(Promise):
    """What a step will return.

    Pass it to another step as it is: that step waits for it, and steps that do not need each other run beside each
    other. `result()` waits and returns the value. So do comparisons, arithmetic, `if`, `len`, `in`, `[…]`, loops and
    `float(…)`; attributes and methods of the value need `result()`.

    Attributes:
        number: The step's number.
        name: What the step is called.
    """

    def __init__(self, number: int, name: str, run: Waits | None, value: Any = _MISSING) -> None:
        self.number = number
        self.name = name
        self._run = run
        self._value = value

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the value.

        Args:
            timeout: How many seconds to wait; for as long as it takes by default.

        Raises:
            StepFailedError: If the step failed, or was skipped because one that it needs did.
            WaitError: If it takes longer than `timeout`.
        """
        if self._value is _MISSING:
            assert self._run is not None
            self._value = self._run.wait_for(self.number, timeout)
        return self._value

    @property
    def done(self) -> bool:
        """Whether the step has ended, with a result or without one."""
        return self._value is not _MISSING or (self._run is not None and self._run.is_settled(self.number))

    def __repr__(self) -> str:
        if self._value is not _MISSING:
            return f"<result of step {self.number} ({self.name}): {self._value!r}>"
        return f"<result of step {self.number} ({self.name}), {'there' if self.done else 'not there yet'}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"This is the result of step {self.number} ({self.name}), which may not be there yet, and has no {name!r} "
            f"of its own: write .result().{name} to wait for the value, or use it in another step."
        )

    def __reduce__(self) -> Any:
        raise TypeError(f"The result of step {self.number} ({self.name}) cannot be pickled; pickle .result() instead.")

    def __bool__(self) -> bool:
        return bool(self.result())

    def __len__(self) -> int:
        return len(self.result())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.result())

    def __contains__(self, item: object) -> bool:
        return item in self.result()

    def __getitem__(self, key: Any) -> Any:
        return self.result()[key]

    def __float__(self) -> float:
        return float(self.result())

    def __int__(self) -> int:
        return int(self.result())

    def __index__(self) -> int:
        return operator.index(self.result())

    def __str__(self) -> str:
        return str(self.result())

    def __format__(self, form: str) -> str:
        return format(self.result(), form)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return sys.modules["numpy"].asarray(self.result(), dtype=dtype)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return self.result() == _plain(other)

    def __ne__(self, other: object) -> Any:
        return self.result() != _plain(other)

    def __lt__(self, other: Any) -> Any:
        return self.result() < _plain(other)

    def __le__(self, other: Any) -> Any:
        return self.result() <= _plain(other)

    def __gt__(self, other: Any) -> Any:
        return self.result() > _plain(other)

    def __ge__(self, other: Any) -> Any:
        return self.result() >= _plain(other)

    def __add__(self, other: Any) -> Any:
        return self.result() + _plain(other)

    def __sub__(self, other: Any) -> Any:
        return self.result() - _plain(other)

    def __mul__(self, other: Any) -> Any:
        return self.result() * _plain(other)

    def __truediv__(self, other: Any) -> Any:
        return self.result() / _plain(other)

    def __floordiv__(self, other: Any) -> Any:
        return self.result() // _plain(other)

    def __mod__(self, other: Any) -> Any:
        return self.result() % _plain(other)

    def __pow__(self, other: Any) -> Any:
        return self.result() ** _plain(other)

    def __matmul__(self, other: Any) -> Any:
        return self.result() @ _plain(other)

    def __and__(self, other: Any) -> Any:
        return self.result() & _plain(other)

    def __or__(self, other: Any) -> Any:
        return self.result() | _plain(other)

    def __xor__(self, other: Any) -> Any:
        return self.result() ^ _plain(other)

    def __radd__(self, other: Any) -> Any:
        return other + self.result()

    def __rsub__(self, other: Any) -> Any:
        return other - self.result()

    def __rmul__(self, other: Any) -> Any:
        return other * self.result()

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.result()

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.result()

    def __rmod__(self, other: Any) -> Any:
        return other % self.result()

    def __rpow__(self, other: Any) -> Any:
        return other ** self.result()

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.result()

    def __rand__(self, other: Any) -> Any:
        return other & self.result()

    def __ror__(self, other: Any) -> Any:
        return other | self.result()

    def __rxor__(self, other: Any) -> Any:
        return other ^ self.result()

    def __neg__(self) -> Any:
        return -self.result()

    def __pos__(self) -> Any:
        return +self.result()

    def __invert__(self) -> Any:
        return ~self.result()

    def __abs__(self) -> Any:
        return abs(self.result())


def _plain(value: Any) -> Any:
    return value.result() if isinstance(value, StepResult) else value
