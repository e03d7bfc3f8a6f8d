"""The contract of what sets off pipelines: every kind of trigger passes these tests.

Subclass `TriggerContract` in a test module, and say how to make the trigger and how to let it happen.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import msgspec
import pytest

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Seen, Trigger, look_of
from cargobike.store.files import project

__all__ = ["TriggerContract"]

_PATIENCE_S = 30.0


class TriggerContract(ABC):
    """Tests of one kind of trigger in a project of its own."""

    @abstractmethod
    def make(self) -> Trigger:
        """Make a trigger in the project in use, for something that exists and has happened before."""

    @abstractmethod
    def happen(self) -> None:
        """Let it happen once more."""

    @abstractmethod
    def count(self, cause: dict[str, object]) -> int:
        """Return for how many happenings a cause stands."""

    @pytest.fixture
    def trigger(self) -> Trigger:
        """Return the trigger under test."""
        return self.make()

    @pytest.fixture
    def here(self) -> ProjectFolder:
        """Return the project in use."""
        return project.current()

    def test_it_is_plain_data(self, trigger: Trigger) -> None:
        """A trigger is kept with a schedule."""
        assert msgspec.json.decode(msgspec.json.encode(trigger), type=Trigger) == trigger
        assert str(trigger) == f"{trigger.subject} {trigger.kind}"

    def test_a_first_look_only_marks(self, trigger: Trigger, here: ProjectFolder) -> None:
        """What happened before it was asked for sets nothing off."""
        seen = look_of(trigger)(trigger, "", here)
        assert seen.cause is None
        assert seen.mark

    def test_looking_changes_nothing(self, trigger: Trigger, here: ProjectFolder) -> None:
        """The same mark gives the same answer, as often as it is given."""
        look = look_of(trigger)
        mark = look(trigger, "", here).mark
        assert [look(trigger, mark, here) for _ in range(3)] == [Seen(mark)] * 3

    def test_what_happens_is_seen_once(self, trigger: Trigger, here: ProjectFolder) -> None:
        """A cause comes with a mark after which it does not come again."""
        mark = look_of(trigger)(trigger, "", here).mark
        self.happen()
        seen = look_until_it_happened(trigger, mark, here)
        assert seen.cause is not None
        assert self.count(seen.cause) == 1
        assert msgspec.json.decode(msgspec.json.encode(seen.cause)) == seen.cause
        assert look_of(trigger)(trigger, seen.mark, here).cause is None

    def test_what_was_not_recorded_is_seen_again(self, trigger: Trigger, here: ProjectFolder) -> None:
        """A scheduler that was killed before it could keep a mark looks with the one before."""
        mark = look_of(trigger)(trigger, "", here).mark
        self.happen()
        assert look_until_it_happened(trigger, mark, here).cause
        self.happen()
        again = look_until_it_happened(trigger, mark, here, at_least=2, count=self.count)
        assert again.cause is not None
        assert self.count(again.cause) == 2

    def test_a_mark_of_another_version_does_no_harm(self, trigger: Trigger, here: ProjectFolder) -> None:
        """It counts as no mark, or is refused in our own words."""
        try:
            seen = look_of(trigger)(trigger, "what is this?", here)
        except CargobikeError:
            return
        assert seen.mark


def look_until_it_happened(
    trigger: Trigger, mark: str, here: ProjectFolder, *, at_least: int = 1, count: object = None
) -> Seen:
    """Look from a mark on, as a scheduler does, until there is a cause.

    Args:
        trigger: What to look at.
        mark: Where to begin.
        here: The project.
        at_least: The cause has to stand for so many happenings; fewer are looked at again from the beginning.
        count: Counts the happenings of a cause.

    Raises:
        AssertionError: If there is none for long.
    """
    look, give_up_at, since = look_of(trigger), time.monotonic() + _PATIENCE_S, mark
    while time.monotonic() < give_up_at:
        seen = look(trigger, since, here)
        if seen.cause is not None and (not callable(count) or count(seen.cause) >= at_least):
            return seen
        since = seen.mark if seen.cause is None else mark
        time.sleep(0.01)
    raise AssertionError(f"{trigger} was not seen for {_PATIENCE_S:.0f} s")
