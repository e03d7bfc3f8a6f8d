"""Sets of ranks that do operations among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cargobike.compat.horovod.common import world
from cargobike.core.errors import InvalidInputError
from cargobike.training.named.requests import WORLD, Request


class ProcessSet:
    """Some ranks of the job.

    Attributes:
        process_set_id: Its number; `None` until it is registered by `init` or `add_process_set`.
        ranks: In ascending order; `None` for all ranks before `init`.
    """

    process_set_id: int | None = None
    ranks: list[int] | None = None

    def __init__(self, ranks: Iterable[int]) -> None:
        self.ranks = sorted(int(rank) for rank in ranks)
        if len(set(self.ranks)) != len(self.ranks):
            raise InvalidInputError(f"ranks of a process set must differ, {self.ranks} were given.")

    def size(self) -> int | None:
        """Return how many ranks it has; `None` until it is registered."""
        return None if self.process_set_id is None else len(self.ranks or ())

    def rank(self) -> int | None:
        """Return which of them this process is, -1 if it is none of them; `None` until it is registered."""
        if self.process_set_id is None:
            return None
        own = world.here().place.rank
        return (self.ranks or []).index(own) if own in (self.ranks or ()) else -1

    def included(self) -> bool | None:
        """Tell whether this process is one of them; `None` until it is registered."""
        return None if self.process_set_id is None else world.here().place.rank in (self.ranks or ())

    def __eq__(self, other: object) -> bool:
        """Compare by ranks and id."""
        return isinstance(other, ProcessSet) and (self.process_set_id, self.ranks) == (
            other.process_set_id,
            other.ranks,
        )

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
"""All ranks; id 0."""

_registered: dict[int, ProcessSet] = {}


def begin(sets: Sequence[ProcessSet]) -> None:
    """Register the set of all ranks, and the others that `init` was given."""
    global_process_set.ranks = list(range(world.here().place.size))
    global_process_set.process_set_id = WORLD
    _registered[WORLD] = global_process_set
    for one in sets:
        add_process_set(one)


def end() -> None:
    """Forget all: none is registered any more."""
    for one in _registered.values():
        one.process_set_id = None
    _registered.clear()
    global_process_set.ranks = []


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Register a set; all ranks of the job must, also those that are not in it.

    Raises:
        ValueError: If there is one with the same ranks, or ranks that do not exist.
    """
    one = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    here = world.here()
    ranks = one.ranks or []
    if one.process_set_id is not None:
        raise InvalidInputError(f"{one} is registered already.")
    outside = [rank for rank in ranks if not 0 <= rank < here.place.size]
    if not ranks or outside:
        raise InvalidInputError(f"a process set has ranks from 0 to {here.place.size - 1}, {ranks} were given.")
    same = next((known for known in _registered.values() if known.ranks == ranks), None)
    if same is not None:
        raise InvalidInputError(f"there is a process set with the ranks {ranks} already: {same}.")
    name = f"add.{'.'.join(map(str, ranks))}"
    handle = here.engine.submit(Request(name, "add", ranks=tuple(ranks)), [])
    here.engine.wait(handle)
    one.process_set_id = handle.answer.last
    _registered[handle.answer.last] = one
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    """Forget a set; all ranks of the job must. Returns whether it was there; that of all ranks stays."""
    number = process_set.process_set_id
    if number is None or number == WORLD or number not in _registered:
        return False
    here = world.here()
    here.engine.wait(here.engine.submit(Request(f"remove.{number}", "remove", root=number), []))
    del _registered[number]
    process_set.process_set_id = None
    return True


def id_of(process_set: ProcessSet) -> int:
    """Return the id of a set that this process may use.

    Raises:
        ValueError: If it is not registered, or this process is not in it.
    """
    world.here()
    if process_set.process_set_id is None:
        raise InvalidInputError(f"{process_set} is not registered: give it to init or to add_process_set first.")
    if not process_set.included():
        raise InvalidInputError(
            f"rank {world.here().place.rank} is not in {process_set}: only its ranks may do operations in it."
        )
    return process_set.process_set_id


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """Return the ranks of all sets that are registered, by id."""
    return {number: list(one.ranks or []) for number, one in _registered.items()}
