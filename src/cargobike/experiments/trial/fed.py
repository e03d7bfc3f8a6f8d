"""A trial's place in its data: saved with its checkpoints, the same for all ranks, and measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.feeding import Placed

if TYPE_CHECKING:
    from cargobike.core.running.member import Gang

TELL_EVERY_S = 0.5
_NAME = "place in the data"


class Fed:
    """Follows what a trial is fed with.

    A place belongs to the checkpoint with which it was saved. The function's first `load` of a checkpoint brings its
    place back; a function that loads none begins with the first row, as it does with everything else. In a gang it is
    enough that one rank loads, as where rank 0 loads and sends its weights to the others: before the first rows, ranks
    tell each other where they begin.

    Args:
        data: What the function gets.
        tell: Tells the driver how many rows were drawn and how many seconds were waited for them, in this attempt.
        gang: The other ranks; `None` if there are none, or nothing that any of them could have loaded.
    """

    def __init__(self, data: Placed, tell: Callable[[int, float], None], gang: Gang | None = None) -> None:
        self._data = data
        self._tell = tell
        self._gang = gang
        self._pid = os.getpid()
        self._place: dict[str, Any] | None = None
        self._next_tell = 0.0
        data.follow(self)

    def place(self) -> dict[str, Any]:
        """Return where the trial is, for a checkpoint."""
        return self._data.state_dict()

    def go_on(self, place: Mapping[str, Any]) -> None:
        """Go on where a checkpoint says."""
        self._place = dict(place)
        self._data.load_state_dict(place)

    def begins(self) -> None:
        """Agree with the other ranks where to begin, once."""
        gang, self._gang = self._gang, None
        if gang is None or os.getpid() != self._pid:
            return
        own = b"" if self._place is None else msgspec.json.encode(self._place, order="sorted")
        places = {place for place in gang.exchange(_NAME, own, of="workers") if place}
        if len(places) > 1:
            raise InvalidInputError(
                f"Ranks have loaded checkpoints with {len(places)} different places in the data. Load the same one in "
                "every rank, or in rank 0 only."
            )
        if places and self._place is None:
            self.go_on(msgspec.json.decode(places.pop()))

    def drew(self) -> None:
        """Tell the driver now and then how it goes."""
        now = time.monotonic()
        if now < self._next_tell or os.getpid() != self._pid:
            return
        self._next_tell = now + TELL_EVERY_S
        consumed = self._data.consumed()
        self._tell(consumed.rows, consumed.waited_s)
