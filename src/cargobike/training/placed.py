"""A loader that gives each rank its share and knows its own place in the data, such as one that `launch` feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import torch

from cargobike.core.errors import InvalidInputError
from cargobike.training.pace import Pace
from cargobike.training.process_group import Group


@runtime_checkable
class KnowsItsPlace(Protocol):
    """Iterating yields what is left of an epoch; the state is the same for all ranks, and fits any number of them."""

    @property
    def epoch(self) -> int:
        """Which epoch comes next, or is under way."""
        ...

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the place as plain data."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a place."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class PlacedLoader:
    """Such a loader, prepared: its batches are moved to the device of the rank, and its place is part of `run.state()`.

    Args:
        loader: The loader.
        group: The ranks.
        pace: What counts batches.
        move: Moves a batch to a device.

    Raises:
        InvalidInputError: If it was made for another number of ranks.
    """

    def __init__(
        self, loader: KnowsItsPlace, group: Group, pace: Pace, move: Callable[[Any, torch.device], Any]
    ) -> None:
        ranks = getattr(loader, "world_size", group.world_size)
        if ranks != group.world_size:
            raise InvalidInputError(
                f"The loader was made for {ranks} ranks, and there are {group.world_size}. Make it inside the train "
                "function, where it knows its rank, or give it to launch(data=…)."
            )
        self.loader = loader
        self._group, self._pace, self._move = group, pace, move

    def __iter__(self) -> Iterator[Any]:
        device = self._group.device
        getattr(self.loader, "begin", _do_nothing)()  # only then all ranks know what is left
        left = getattr(self.loader, "steps_left", None)
        if left == 0:  # too little for a step of all ranks: the next epoch comes
            left = len(self)
        for batch in self.loader:
            self._pace.begin_batch(left)
            left = None if left is None else left - 1
            yield self._move(batch, device) if device is not None and device.type != "cpu" else batch

    def __len__(self) -> int:
        """Return how many batches a whole epoch has."""
        steps = getattr(self.loader, "steps", None)
        return steps if isinstance(steps, int) else len(self.loader)  # type: ignore[arg-type]

    @property
    def epoch(self) -> int:
        """The epoch that the next pass draws."""
        return self.loader.epoch

    @property
    def position(self) -> int:
        """How many batches of the present epoch came before, counted in batches of this number of ranks."""
        left = getattr(self.loader, "steps_left", None)
        return 0 if left is None else max(0, len(self) - left)

    def set_epoch(self, epoch: int) -> None:
        """Draw this epoch next."""
        self.loader.set_epoch(epoch)

    def state(self) -> dict[str, Any]:
        """Return where training stands in its data: behind what was handed out last."""
        return {"epoch": self.loader.epoch, "own": self.loader.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on where such a state says."""
        if "own" in state:
            self.loader.load_state_dict(state["own"])
        else:  # of a run that drew from another kind of loader
            self.loader.set_epoch(int(state["epoch"]))


def _do_nothing() -> None:
    """Stand in for what other loaders have nothing of."""


def refuse_wrapped(loader: Any) -> None:
    """Refuse a DataLoader around a loader that knows its place: both would count, and skip what the other has skipped.

    Raises:
        InvalidInputError: Saying what to give.
    """
    if isinstance(getattr(getattr(loader, "dataset", None), "loader", None), KnowsItsPlace):
        raise InvalidInputError(
            "This DataLoader draws from a loader that gives each rank its share and knows its place already. Give that "
            "one itself, as in prepare(model, optimizer, data): it reads ahead in threads."
        )
