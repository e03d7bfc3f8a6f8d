"""A loader that belongs to a trial: its place is kept in the trial's checkpoints, and its pace is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import cloudpickle
import msgspec

from cargobike.core.registering.feeding import Consumed, Feed, Follower
from cargobike.data.loading.loader import Loader
from cargobike.data.loading.options import Options
from cargobike.data.sources.brought import BroughtFiles
from cargobike.data.sources.opening import open_again
from cargobike.data.sources.source import Source, SourceSpec

_AT_END: Final = "at_end"


class FollowedLoader(Loader):
    """A loader whose trial is told what is drawn; see `core/registering/feeding.py: Placed`.

    A checkpoint that is saved with the last batch of an epoch belongs to that epoch: a function that goes on from it
    finds nothing left, also one that makes a single pass or counts epochs itself, and not the next epoch.
    """

    _follower: Follower | None = None
    _is_taken_up = False
    _is_at_end = False

    def follow(self, follower: Follower) -> None:
        """Tell a trial from now on what is drawn."""
        self._follower = follower

    def consumed(self) -> Consumed:
        """Return what was drawn, and how long that was waited for."""
        return Consumed(self.stats.rows, self.stats.waited_s)

    @property
    def steps_left(self) -> int:
        """How many batches this rank still gets in the present epoch."""
        return 0 if self._is_at_end else self._position.steps_left

    @property
    def epoch(self) -> int:
        """Which epoch is under way, or comes next."""
        return super().epoch - self._is_at_end

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is; see `Loader.state_dict`."""
        state = super().state_dict()
        return {**state, _AT_END: True} if self._is_at_end else state

    def load_state_dict(self, state: object) -> None:
        """Go where a loader was; see `Loader.load_state_dict`."""
        super().load_state_dict(state)
        self._is_taken_up = True
        self._is_at_end = isinstance(state, Mapping) and state.get(_AT_END) is True and super().epoch > 0

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch; to what is left of it, if it is the one that a checkpoint has begun."""
        if not self._is_taken_up or epoch != self.epoch:
            self._is_at_end = False
            super().set_epoch(epoch)

    def begin(self) -> None:
        """Agree with the other ranks where to begin, if that was not done yet."""
        if self._follower is not None:
            self._follower.begins()

    def __iter__(self) -> Iterator[Any]:
        follower = self._follower
        self.begin()
        self._is_taken_up = False
        if self._is_at_end:
            self._is_at_end = False
            return
        try:
            for batch in super().__iter__():
                self._is_at_end = self._position.is_at_start  # of the next epoch
                if follower is not None:
                    follower.drew()
                yield batch
        finally:
            self._is_at_end = False

    def for_rank(self, rank: int, world_size: int) -> Self:
        """Return a loader for another rank; it is not the trial's own, so its trial is not told what it draws."""
        other = super().for_rank(rank, world_size)
        other._follower = None
        return other


def open_loader(feed: Feed, root: Path, rank: int, world_size: int, bring: Callable[[str], None]) -> FollowedLoader:
    """Return the loader that was given at launch, for one rank."""
    details = feed.details
    options = Options(**details["options"], **(cloudpickle.loads(feed.objects) if feed.objects else {}))
    loader = FollowedLoader.__new__(FollowedLoader)
    loader._set_up(source_of(feed, root, bring), options, rank, world_size)
    if details.get("state"):
        loader.load_state_dict(details["state"])
    elif details.get("epoch"):
        loader.set_epoch(details["epoch"])
    return loader


def source_of(feed: Feed, root: Path, bring: Callable[[str], None]) -> Source:
    """Open the data of a feed on this machine: where it lies, or from files of the project."""
    spec = feed.details.get("spec")
    return BroughtFiles(feed, root, bring) if spec is None else open_again(msgspec.convert(spec, SourceSpec))
