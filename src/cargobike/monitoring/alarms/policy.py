"""How many alarms of how many windows count: one window alone may be a false alarm, three of five are none."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cargobike.core.errors import InvalidInputError

_FORM: Final = re.compile(r"\s*(\d{1,6})\s*(?:of|/)\s*(\d{1,6})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Policy:
    """An alarm is raised while at least `needed` of the last `windows` windows are unusual.

    Example:
        >>> policy = Policy.parse("2 of 3")
        >>> policy.raised([True, False, True, False, False])
        [False, False, True, False, False]
    """

    needed: int
    windows: int

    def __post_init__(self) -> None:
        if not 1 <= self.needed <= self.windows:
            raise InvalidInputError(
                f"The policy '{self.needed} of {self.windows}' can not be kept; write at least 1, and not more than "
                "there are windows, such as '3 of 5'."
            )

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Return the policy that a text such as `3 of 5` means.

        Raises:
            InvalidInputError: If it means none.
        """
        match = _FORM.fullmatch(str(text))
        if match is None:
            raise InvalidInputError(f"{text!r} is no policy for alarms; write how many of how many, such as '3 of 5'.")
        return cls(int(match[1]), int(match[2]))

    def raised(self, unusual: Iterable[bool]) -> list[bool]:
        """Return for each window, in order, whether an alarm is raised when it has been judged."""
        recent: deque[bool] = deque(maxlen=self.windows)
        answers = []
        for one in unusual:
            recent.append(bool(one))
            answers.append(sum(recent) >= self.needed)
        return answers

    def since(self, unusual: Iterable[bool]) -> int | None:
        """Return the number of the window, from 0, with which the alarm that is raised now began; `None` without one.

        That is the first of the unusual windows for which it was raised, not the one that completed their number.

        Example:
            >>> Policy.parse("2 of 3").since([False, True, False, True, True])
            1
        """
        judged = [bool(one) for one in unusual]
        raised = self.raised(judged)
        if not raised or not raised[-1]:
            return None
        first = len(raised) - 1
        while first and raised[first - 1]:
            first -= 1
        counted = range(max(0, first - self.windows + 1), first + 1)
        return next(window for window in counted if judged[window])

    def __str__(self) -> str:
        return f"{self.needed} of {self.windows}"
