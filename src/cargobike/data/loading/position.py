"""Where a loader is: the epoch, how its rows were shared so far, and what a rank has still to read of it."""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.shares import Sharing, left_after
from cargobike.data.loading.state import VERSION, LoaderState, StageState, read_state
from cargobike.data.loading.steps import Portion
from cargobike.data.sources.source import Source


class Position:
    """The position of one rank, or of one of several processes that divide the steps of a rank among them.

    Args:
        source: What is read.
        sharing: How its rows are shared.
        rank: Which rank this is.
        shuffle: Whether rows are shuffled.
        seed: What the order is drawn from.
        mix: How many groups are mixed.

    Attributes:
        epoch: Which epoch this is, from 0.
        moves: How often the position was set anew, or reading begun; an iterator that is out of date sees it.
        worker: Which of how many processes this is.
    """

    def __init__(self, source: Source, sharing: Sharing, rank: int, *, shuffle: bool, seed: int, mix: int) -> None:
        self.rows = source.num_rows
        self.seed, self.mix = seed, mix
        self.epoch = 0
        self.moves = 0
        self.worker = (0, 1)
        self._source = source
        self._sharing = sharing
        self._rank = rank
        self._shuffle = shuffle
        self._stages: list[StageState] = []
        self._done = self._steps = 0
        self._worker_is_done = False

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.moves += 1
        self._stages = []
        self._done = self._steps = 0
        self._worker_is_done = False

    def begin(self) -> Portion:
        """Return what is still to be read in this epoch; if rows are shared in a new way, that begins here."""
        self._keep()
        if self._worker_is_done:
            self.set_epoch(self.epoch + 1)
        self.moves += 1
        whole = self._left()
        if not whole.steps and self.worker[1] == 1:  # what is left is too little for a step of all ranks
            self.set_epoch(self.epoch + 1)
            whole = self._left()
        part = whole.worker(*self.worker)
        self._done, self._steps = part.done, part.done + part.steps
        self._keep()
        return part

    def _keep(self) -> None:
        """Enter the steps of this stage among the stages."""
        if self._stages and self._steps:
            self._stages[-1] = msgspec.structs.replace(self._stages[-1], steps=self._done)

    @property
    def steps_left(self) -> int:
        """How many steps this rank has still to take in this epoch."""
        self._keep()
        return self._left().steps

    @property
    def is_at_start(self) -> bool:
        """Whether no step of this epoch was taken."""
        return not self._stages

    def _left(self) -> Portion:
        """Return what is left for this rank."""
        sharing = self._sharing
        if not self._stages or self._stages[-1].stage().sharing != sharing:
            fresh = StageState(world_size=sharing.world_size, batch_size=sharing.batch_size, last=sharing.last, steps=0)
            self._stages.append(fresh)
        *before, now = [stage.stage() for stage in self._stages]
        return Portion(left_after(self.rows, before), sharing, self._rank, now.steps)

    def step(self) -> None:
        """Count a step; after the last one of an epoch the position is the beginning of the next one."""
        self._done += 1
        if self._done < self._steps:
            return
        self._keep()
        if self.worker[1] == 1:
            self.epoch += 1
            self._stages = []
            self._steps = 0
        else:
            self._worker_is_done = True  # the others may not be: this epoch lasts until the next one begins

    def state(self, skipped: int) -> dict[str, Any]:
        """Return the position as plain data."""
        self._keep()
        return LoaderState(
            version=VERSION,
            source=self._source.fingerprint,
            rows=self.rows,
            shuffle=self._shuffle,
            seed=self.seed,
            mix=self.mix,
            epoch=self.epoch,
            stages=[stage for stage in self._stages if stage.steps],
            skipped=skipped,
        ).to_dict()

    def load(self, given: object) -> LoaderState:
        """Go to a position that was kept, and return it.

        Raises:
            InvalidInputError: If it is a position in something else.
        """
        state = read_state(given)
        source = self._source
        mistakes = []
        if state.source != source.fingerprint or state.rows != self.rows:
            mistakes.append(
                f"It belongs to another source or to another version of it ({state.rows:,} rows, fingerprint "
                f"{state.source}); {source.name} has {self.rows:,} rows, fingerprint {source.fingerprint}."
            )
        if state.shuffle != self._shuffle:
            mistakes.append(f"It was made with shuffle={state.shuffle}.")
        if mistakes:
            raise InvalidInputError("This state does not fit the loader.", mistakes)
        self.set_epoch(state.epoch)
        self.seed, self.mix = state.seed, state.mix
        self._stages = list(state.stages)
        return state
