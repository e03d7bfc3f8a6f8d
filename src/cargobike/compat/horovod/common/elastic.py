"""States that survive a change of ranks: kept in memory, restored after a loss, given to ranks that are new."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cargobike.compat.horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from cargobike.training.regrouping.member import regrouping_member

_R = TypeVar("_R")

_TELL_EVERY_S: Final = 1.0


class State:
    """What a program keeps while ranks come and go; frameworks and users derive their own from it.

    Args:
        bcast_object: Gives all ranks an object of rank 0.
        get_rank: Returns this process's rank.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._told_at = 0.0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Add functions to call after ranks have changed, to scale a learning rate for instance."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Do what is to be done after ranks have changed."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def reset(self) -> None:
        """Do what this kind of state needs after ranks have changed."""

    def commit(self) -> None:
        """Save the state in memory, and see whether ranks want to come or have to go.

        Raises:
            HostsUpdatedInterrupt: In all ranks alike, if so.
        """
        self.save()
        self._tell_progress()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """See whether ranks want to come or have to go; all ranks must call it.

        Raises:
            HostsUpdatedInterrupt: In all ranks alike, if so.
        """
        here = regrouping_member()
        if here is None:
            return
        news = here.changes()
        # All ranks must stop at the same commit: what rank 0 has heard counts.
        agreed = self._bcast_object(None if news is None else {"only_leave": news.only_leave})
        if agreed is not None:
            raise HostsUpdatedInterrupt(bool(agreed["only_leave"]))

    def save(self) -> None:
        """Keep the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give all ranks the state of rank 0."""
        raise NotImplementedError

    def _tell_progress(self) -> None:
        now = time.monotonic()
        here = regrouping_member()
        if here is not None and now >= self._told_at + _TELL_EVERY_S:
            self._told_at = now
            here.progressed()


class ObjectState(State):
    """A state of plain objects, each an attribute.

    Args:
        bcast_object: Gives all ranks an object of rank 0.
        get_rank: Returns this process's rank.
        **kwargs: The attributes.

    Example:
        >>> state = ObjectState(lambda given: given, lambda: 0, epoch=0)
        >>> state.epoch = 3
        >>> state.restore()
        >>> state.epoch
        0
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state: dict[str, Any] = dict(kwargs)
        self._set_attributes(self._saved_state)
        self._saved_state = copy.deepcopy(self._saved_state)

    def save(self) -> None:
        """Keep a copy of each attribute."""
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        """Set each attribute to what was saved last."""
        self._set_attributes(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        """Set each attribute to that of rank 0, and save it."""
        if self._saved_state:
            own = {name: getattr(self, name) for name in self._saved_state}
            self._set_attributes(self._bcast_object(own))
            self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in own}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def run_fn(func: Callable[..., _R], reset: Callable[[], Any]) -> Callable[..., _R]:
    """Make a function of a state one that begins again, with its state, whenever ranks have changed.

    Args:
        func: Called with the state and further arguments.
        reset: Leaves the job and joins it again.
    """

    @functools.wraps(func)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> _R:
        is_synchronous = False
        while True:
            try:
                if not is_synchronous:
                    state.sync()
                return func(state, *args, **kwargs)
            except HorovodInternalError:
                if regrouping_member() is None:  # there is no launcher that could find others
                    raise
                state.restore()
                is_synchronous = False
            except HostsUpdatedInterrupt as change:
                is_synchronous = change.skip_sync
            reset()
            state.on_reset()

    return wrapper
