"""Cards of the start page: what a product says about what is going on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cargobike.ui.web.overview.refreshed import Refreshed

MOST_ENTRIES: Final = 6
_REST_S: Final = 1.5
_QUICK_S: Final = 0.1


class Entry(NamedTuple):
    """A line of a card: one thing.

    Attributes:
        title: What people call it.
        address: Its page.
        state: The word of its badge; empty for none.
        text: A few words about it.
        at: When, as programs write times; empty if that does not matter.
        share: How much of it is done, from 0 to 1; `None` if that is not known.
    """

    title: str
    address: str
    state: str = ""
    text: str = ""
    at: str = ""
    share: float | None = None


class Glance(NamedTuple):
    """What a card shows now.

    Attributes:
        entries: What matters most, first; a page shows the first few.
        headline: How many things go on, for the top of the page; `None` if nothing is counted there.
        words: What is counted: `experiments run`, `open alarms`.
        is_urgent: Whether a person should look at it.
        total: How many there are in all.
    """

    entries: Sequence[Entry] = ()
    headline: int | None = None
    words: str = ""
    is_urgent: bool = False
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card that a product registers in its section.

    Attributes:
        name: Tells it from all others.
        title: What stands above it.
        address: Where the title leads.
        place: Where it stands: cards with smaller numbers come first.
        look: Returns what it shows; called in the background, a few times a minute at most.
        empty: What it says when there is nothing.
        command: What to type then.
    """

    name: str
    title: str
    address: str
    place: int
    look: Callable[[], Glance]
    empty: str
    command: str = ""


class ShownCard(NamedTuple):
    """A card as a page shows it; `glance` is `None` while it is made for the first time."""

    card: Card
    glance: Glance | None
    problem: str


def _weight(shown: ShownCard) -> int:
    """Return where a card comes before its place counts: urgent ones first, those that only say what to do last."""
    if shown.glance is not None and shown.glance.is_urgent:
        return 0
    return 2 if shown.glance is not None and not shown.glance.entries and not shown.problem else 1


class Cards:
    """The cards of a server, each with what it showed last."""

    def __init__(self, cards: Sequence[Card]) -> None:
        ordered = sorted(cards, key=lambda card: card.place)
        self._cards = [(card, Refreshed(card.look, rest_s=_REST_S)) for card in ordered]

    def shown(self, patience_s: float) -> list[ShownCard]:
        """Return all cards; those that take longer than all may together show what they showed last."""
        deadline = time.monotonic() + patience_s
        rounds = [(last, last.wake()) for _, last in self._cards]
        for last, one in rounds:
            # One that takes long is only waited for if there is nothing to show instead.
            is_quick = last.took_s is None or last.took_s < _QUICK_S
            one.wait(max(0.0, deadline - time.monotonic()) if is_quick else 0.0)
        shown = [ShownCard(card, last.last, last.problem) for card, last in self._cards]
        return sorted(shown, key=_weight)
