"""Where a loader is, as plain data: the same for all ranks, and enough to go on with any number of them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.shares import Last, Sharing, Stage

VERSION: Final = 1


class StageState(msgspec.Struct, frozen=True, kw_only=True):
    """How many steps were taken with a world size, a batch size and a policy for the last batch."""

    world_size: int
    batch_size: int
    last: Last
    steps: int

    def stage(self) -> Stage:
        """Return it as what is computed with."""
        return Stage(Sharing(self.world_size, self.batch_size, self.last), self.steps)


class LoaderState(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a loader.

    Attributes:
        version: Of this form.
        source: Fingerprint of what is read; of something else a position means nothing.
        rows: How many rows it has.
        shuffle: Whether they are shuffled.
        seed: What the order is drawn from.
        mix: How many groups are mixed.
        epoch: Which epoch this is, from 0.
        stages: What was done in this epoch, in order.
        skipped: Rows that could not be read and were left out, if that was asked for, since the first epoch.
    """

    version: int
    source: str
    rows: int
    shuffle: bool
    seed: int
    mix: int
    epoch: int
    stages: list[StageState]
    skipped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as numbers, strings, lists and dicts."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def read_state(given: object) -> LoaderState:
    """Return the state that `state_dict` had written.

    Raises:
        InvalidInputError: If it is something else, or from a newer version.
    """
    try:
        state = msgspec.convert(given, LoaderState)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"This is not a state of a loader: {error}. Give what `state_dict()` returned."
        ) from error
    if state.version > VERSION:
        raise InvalidInputError(
            f"This state of a loader has version {state.version}; this Cargobike knows version {VERSION}. Upgrade it."
        )
    return state
