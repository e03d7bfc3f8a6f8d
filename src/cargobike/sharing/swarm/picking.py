"""Decide which piece to ask of which source: pure, no clock, no socket.

Rare pieces come first, so that they stay in the swarm when their holder leaves; pieces that are waited for come before
all others; and in order if the content is used while it arrives. When every missing piece has been asked for, sources
that have nothing to do are asked for late ones, too, a few at a time, so that one slow source does not hold up the end
and little is sent twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

_MOST_ASKED: Final = 2
"""Of how many sources a late piece is asked at once."""
_LATE_AT_ONCE: Final = 2
"""For how many late pieces an idle source is asked at once; two keep its line full."""


class Picker:
    """Keeps who has what and who was asked for what. Not for several threads.

    Args:
        count: How many pieces there are.
        in_order: Whether early pieces come before rare ones.
        seed: Decides among equally rare ones, so that members do not all ask for the same.
        is_open: Whether all pieces may be asked for from the beginning, or only those that `open` names.

    Guarantees: a piece that was taken by a source is not given to another before it was returned, unless all missing
    pieces were taken; never twice to the same source at once; a piece that was had, or is not open, is never given; if
    some source has a missing piece that it was not asked for, and no other source was, `take` gives it.
    """

    def __init__(self, count: int, *, in_order: bool = False, seed: int | None = None, is_open: bool = True) -> None:
        self.count = count
        self.in_order = in_order
        self._had = bytearray(count)
        self._open = bytearray([is_open]) * count
        self._left = count
        self._left_open = count if is_open else 0
        self._random = random.Random(seed)
        self._ranks = list(range(count))
        self._random.shuffle(self._ranks)
        self._has: dict[str, Sequence[bool] | None] = {}
        self._asked: dict[int, set[str]] = {}
        self._wanted: dict[int, None] = {}
        self._order: list[int] = []
        self._places: dict[str, int] = {}
        self._is_stale = True

    @property
    def is_done(self) -> bool:
        """Whether all pieces are had."""
        return self._left == 0

    @property
    def missing(self) -> int:
        """How many pieces are not had."""
        return self._left

    def has(self, piece: int) -> bool:
        """Tell whether a piece is had."""
        return bool(self._had[piece])

    def join(self, source: str, flags: Sequence[bool] | None) -> None:
        """Note what a source has, now or anew; `None` for everything."""
        old = self._has.get(source, ())
        self._has[source] = flags
        if source not in self._places or old != flags:
            self._is_stale = True

    def leave(self, source: str) -> None:
        """Forget a source; what it was asked for can be asked of others."""
        if source in self._has:
            del self._has[source]
            self._is_stale = True
        for piece in [piece for piece, sources in self._asked.items() if source in sources]:
            self.give_back(source, piece)

    def open(self, pieces: Iterable[int]) -> None:
        """Note that pieces may be asked for from now on."""
        for piece in pieces:
            if not self._open[piece]:
                self._open[piece] = 1
                self._left_open += not self._had[piece]
                self._is_stale = True

    def want(self, pieces: Iterable[int]) -> None:
        """Have these come before all others, the earliest wish first."""
        for piece in pieces:
            if not self._had[piece]:
                self._wanted.setdefault(piece)

    def take(self, source: str, most: int) -> list[int]:
        """Return pieces to ask a source for; they count as asked from now on."""
        if most <= 0 or source not in self._has:
            return []
        flags = self._has[source]
        taken: list[int] = []
        for piece in self._wanted:
            if len(taken) < most and self._is_free(piece) and (flags is None or flags[piece]):
                self._ask(source, piece, taken)
        self._take_in_order(source, flags, most, taken)
        if not taken and len(self._asked) == self._left_open:
            self._take_late(source, flags, min(most, _LATE_AT_ONCE), taken)
        return taken

    def _take_late(self, source: str, flags: Sequence[bool] | None, most: int, taken: list[int]) -> None:
        """Take pieces that others were asked for, if this source has nothing else to do: the last asked for first."""
        if any(source in sources for sources in self._asked.values()):
            return
        late = [piece for piece in reversed(self._asked) if flags is None or flags[piece]]
        late.sort(key=lambda piece: (piece not in self._wanted, len(self._asked[piece])))
        for piece in late[:most]:
            if len(self._asked[piece]) < _MOST_ASKED:
                self._ask(source, piece, taken)

    def _is_free(self, piece: int) -> bool:
        """Tell whether a piece is missing, and may be asked for, and no source was."""
        return not self._had[piece] and bool(self._open[piece]) and piece not in self._asked

    def _take_in_order(self, source: str, flags: Sequence[bool] | None, most: int, taken: list[int]) -> None:
        if self._is_stale:
            self._sort()
        place, order = self._places.get(source, 0), self._order
        while place < len(order) and len(taken) < most:
            piece = order[place]
            place += 1
            if self._is_free(piece) and (flags is None or flags[piece]):
                self._ask(source, piece, taken)
        self._places[source] = place

    def _ask(self, source: str, piece: int, taken: list[int]) -> None:
        self._asked.setdefault(piece, set()).add(source)
        taken.append(piece)

    def _sort(self) -> None:
        """Put all missing pieces in order; each source goes through them from the beginning again."""
        missing = [piece for piece in range(self.count) if self._open[piece] and not self._had[piece]]
        if not self.in_order:
            partial = [flags for flags in self._has.values() if flags is not None]
            counts = [sum(column) for column in zip(*partial, strict=True)] if partial else [0] * self.count
            missing.sort(key=lambda piece: (counts[piece], self._ranks[piece]))
        self._order, self._places, self._is_stale = missing, {}, False

    def give_back(self, source: str, piece: int) -> None:
        """Note that a source does not give a piece that it was asked for."""
        sources = self._asked.get(piece)
        if sources is None or source not in sources:
            return
        sources.discard(source)
        if not sources:
            del self._asked[piece]
            self._is_stale = True  # every source may have passed it already

    def lacks(self, source: str, piece: int) -> None:
        """Note that a source has lost a piece."""
        self.give_back(source, piece)
        flags = self._has.get(source)
        if source in self._has:
            kept = list(flags) if flags is not None else [True] * self.count
            kept[piece] = False
            self.join(source, kept)

    def got(self, piece: int) -> set[str]:
        """Note that a piece is had; return the sources that were asked for it."""
        self._wanted.pop(piece, None)
        if not self._had[piece]:
            self._had[piece] = 1
            self._left -= 1
            self._left_open -= self._open[piece]
        return self._asked.pop(piece, set())

    def someone_has(self, piece: int) -> bool:
        """Tell whether any source has a piece."""
        return any(flags is None or flags[piece] for flags in self._has.values())
