"""Whether a trial reports what it is judged by: a search that stops trials early can do nothing with other names."""

from __future__ import annotations

import logging
from collections.abc import Collection

from cargobike.core.errors import InvalidInputError, nearest

log = logging.getLogger(__name__)


class ReportNames:
    """Watches the names in the reports of one trial of a search that was told to stop trials early.

    An objective that was asked for may come in a report of its own, or at every tenth step; lacking it is a mistake
    only once the function has returned. If none was asked for and the first report leaves it open, the next is one.

    Args:
        objective: What was asked for as `metric`; if nothing was, the only name in the first report is taken.
        is_whole: Whether the function begins at its beginning; otherwise the objective may have been reported before.
    """

    def __init__(self, objective: str | None, *, is_whole: bool = True) -> None:
        self._asked = objective
        self._objective = objective
        self._is_whole = is_whole
        self._is_reported = False
        self._complaint = ""
        self._lacking: tuple[int, list[str]] | None = None

    def can_be_judged(self, names: Collection[str], step: int) -> bool:
        """Tell whether a report at a milestone can be judged.

        Raises:
            InvalidInputError: If nothing says what the objective is, at an earlier milestone neither; has the names.
        """
        if self._objective is None:
            self._objective = next(iter(names)) if len(names) == 1 else ""
        if self._objective in names:
            self._is_reported = True
            return True
        if self._is_reported:
            return False
        if self._lacking is None:
            self._lacking = (step, list(names))
            return False
        if step > self._lacking[0]:
            if not self._objective:
                raise InvalidInputError(self._mistake([*self._lacking[1], *names]))
            if not self._complaint:
                self._complaint = self._mistake([*self._lacking[1], *names])
                log.warning("%s", self._complaint)
        return False

    def check_returned(self, names: Collection[str]) -> None:
        """Check the names of all reports, and those in the dict that the function returned.

        Raises:
            InvalidInputError: If the objective was never reported, though other names were; or if the score is another
                number than the one that its trials were judged by.
        """
        if self._complaint and self._is_whole and not self._is_reported:
            raise InvalidInputError(self._complaint)
        if self._asked is None and self._is_reported and len(names) == 1 and self._objective not in names:
            returned = next(iter(names))
            raise InvalidInputError(
                f"The train function returned {returned!r}, but reports {self._objective!r}, by which running trials "
                f"are compared. Report {returned!r} as well and say metric={returned!r}."
            )

    def _mistake(self, names: list[str]) -> str:
        reported = " and ".join(map(repr, dict.fromkeys(names))) or "nothing"
        if not self._objective:
            return (
                f"The train function reports {reported}, and it is not clear by which of them running trials are to "
                f"be compared. Say so, for example `metric={names[0] if names else 'loss'!r}`."
            )
        return (
            f"Running trials are compared by {self._objective!r}, but the train function reports {reported}. "
            f"Report it by that name, `trial.report({self._objective}=…, step=…)`, or give metric another one."
            f"{nearest(self._objective, names)}"
        )
