"""What is remembered beside a state: the reports that were made before it, and where the trial was in its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cargobike.experiments.trial.sent_reports import Reports


class Surroundings(NamedTuple):
    """What surrounded a state when it was saved."""

    reports: Reports | None = None
    place: dict[str, Any] | None = None


NOTHING: Final = Surroundings()
"""For a state that nothing is remembered beside."""


@dataclass(slots=True)
class Remembering:
    """Knows what surrounds a state now, and goes on from what surrounded one: once, with the first that is loaded.

    Attributes:
        reports: Returns the reports that were made so far.
        on_reports: Called with those of a checkpoint of the same trial, or `None`.
        place: Returns where the trial is in its data, as plain data; `None` if it has no place there.
        on_place: Called with the place of a checkpoint that has one.
    """

    reports: Callable[[], Reports | None] = lambda: None
    on_reports: Callable[[Reports | None], None] | None = None
    place: Callable[[], dict[str, Any] | None] = lambda: None
    on_place: Callable[[dict[str, Any]], None] | None = None

    def now(self) -> Surroundings:
        """Return what surrounds a state that is saved now."""
        return Surroundings(self.reports(), self.place())

    def go_on_after(self, reports: Reports | None, *, is_own: bool) -> None:
        """Count on from reports, if they are the trial's own."""
        on_reports, self.on_reports = self.on_reports, None
        if on_reports is not None and is_own:
            on_reports(reports)

    def go_on_at(self, place: dict[str, Any] | None) -> None:
        """Go on at a place in the data."""
        on_place, self.on_place = self.on_place, None
        if on_place is not None and place is not None:
            on_place(place)
