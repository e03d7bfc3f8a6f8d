"""Where constraints hold: finding such places with bounded effort, and the way from any place to one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from cargobike.core.errors import SpaceError
from cargobike.core.records import Params
from cargobike.search.spaces.constraints import Constraint

Units = tuple[float, ...]
Decode = Callable[[Sequence[float]], Params]
"""Returns the parameters at a place of the unit cube."""

DRAWS = 10_000
"""A space of which fewer than one in so many draws keeps the constraints is refused."""
WALKED = 100_000
"""A countable space of up to so many combinations is walked through, if draws do not find any."""
_ANCHORS = 32
_HALVINGS = 30


class Feasible:
    """Some places where all constraints hold, which lead there from anywhere else.

    Args:
        constraints: What must hold.
        decode: Returns the parameters at a place.
        width: How many numbers a place has.
        listed: Places where constraints hold, to take if draws do not find any: those of a small countable space.

    Raises:
        SpaceError: If there is no place where they hold, or too few to be found.
    """

    def __init__(
        self, constraints: Sequence[Constraint], decode: Decode, width: int, *, listed: Iterable[Units]
    ) -> None:
        self._constraints = constraints
        self._decode = decode
        self._anchors: list[Units] = []
        held = [0] * len(constraints)
        rng = random.Random(0)  # of its own: a search must not depend on how often a space was made
        for _ in range(DRAWS):
            place = tuple(rng.random() for _ in range(width))
            params = decode(place)
            holding = [constraint.holds(params) for constraint in constraints]
            if all(holding):
                self._anchors.append(place)
                if len(self._anchors) == _ANCHORS:
                    return
            held = [count + holds for count, holds in zip(held, holding, strict=True)]
        if not self._anchors:
            self._anchors = list(islice(listed, _ANCHORS))
        if not self._anchors:
            raise SpaceError(
                "nothing in this search space keeps its constraints, or so little that it cannot be found:",
                [
                    *(
                        f"{constraint.text}: holds in {count} of {DRAWS} draws"
                        for constraint, count in zip(constraints, held, strict=True)
                    ),
                    "widen the ranges or the constraints; what an equation determines is no parameter: leave it out "
                    "and compute it in the train function",
                ],
            )

    def holds(self, params: Params) -> bool:
        """Tell whether parameters keep all constraints."""
        return all(constraint.holds(params) for constraint in self._constraints)

    def nearest(self, place: Sequence[float]) -> Params:
        """Return parameters that keep the constraints: the first found to do so on the way to the nearest anchor."""

        def away(anchor: Units) -> float:
            return sum((one - other) ** 2 for one, other in zip(anchor, place, strict=True))

        anchor = min(self._anchors, key=away)
        low, high, params = 0.0, 1.0, self._decode(anchor)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            between = self._decode([start + middle * (end - start) for start, end in zip(place, anchor, strict=True)])
            if self.holds(between):
                high, params = middle, between
            else:
                low = middle
        return params
