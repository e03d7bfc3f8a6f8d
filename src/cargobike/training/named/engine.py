"""The operations of one rank: takes requests, does them with the others, answers when they are done."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import threading
import time
from collections import Counter, deque
from datetime import timedelta
from typing import Any

import msgspec
import torch
import torch.distributed as dist

from cargobike.core.errors import ConnectionLostError, InvalidInputError, WaitError
from cargobike.training.named.channel import open_links
from cargobike.training.named.execution import Finish, begin, fused, zeros_for
from cargobike.training.named.handles import CollectiveError, Handle
from cargobike.training.named.lane import Lane
from cargobike.training.named.requests import FORESEEN, WORLD, Agreed, Request
from cargobike.training.named.talking import Asking, Deciding, Frames, Talk
from cargobike.training.named.timeline import Timeline

WARN_S = 60.0
STALL_S = 1800.0
_IN_FLIGHT = 2
_TICK_MS = 500
_PARKED_S = 0.005


class Engine:
    """One rank's named operations, which may be submitted from any thread, in any order.

    The loop in `_drive` reads decisions and does what was decided, in order. A thread of its own runs it, except while
    a caller of `run` does: that saves a caller who waits anyway two changes of threads, which cost as much as a small
    reduction. A gang of one has no thread. `close` ends all.

    Args:
        store: Where ranks find each other: a part of torch's store that is for this engine alone.
        rank: This rank.
        size: How many there are.
        secret: Known to the ranks of this gang only; one from the store if left out.
        stall_s: How long an operation waits for ranks that do not submit it before it fails.
        warn_s: After how long a line in the log says who is missing.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        *,
        secret: bytes = b"",
        stall_s: float = STALL_S,
        warn_s: float = WARN_S,
    ) -> None:
        self.rank, self.size, self.stall_s = rank, size, stall_s
        self.secret = secret or _shared_secret(store, rank)
        self.timeline: Timeline | None = None
        self._store = store
        self._numbers: Counter[tuple[int, str]] = Counter()
        self._lock = threading.Lock()
        self._flying: dict[tuple[int, str], Handle] = {}
        self._underway: deque[tuple[list[Handle], Finish]] = deque()
        self._broken = self._lost = ""
        self._closing = False
        self.lanes = {WORLD: self._open(WORLD, tuple(range(size)))}
        self._baton = threading.Lock()
        self._parking = threading.Condition()
        self._callers = self._calls = 0
        self._parked = False
        if size > 1:
            self._begin_talk(stall_s, warn_s)

    def _begin_talk(self, stall_s: float, warn_s: float) -> None:
        self._frames: Frames = deque()
        links = open_links(self._store, self.rank, self.size, self.secret, stall_s)
        decides = self.rank == 0
        self._talk: Talk = Deciding(links, self._frames, stall_s, warn_s) if decides else Asking(links, self._frames)
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        self._ranks_by_number = {link.fileno(): rank for rank, link in links.items()}
        for number in self._ranks_by_number:
            self._poll.register(number, select.POLLIN)
        self._thread = threading.Thread(target=self._attend, name=f"cargobike-named-{self.rank}", daemon=True)
        self._thread.start()

    # What callers do -------------------------------------------------------------------------------------------------

    def submit(self, request: Request, tensors: list[torch.Tensor]) -> Handle:
        """Begin an operation; `wait` gives its result. Does not change `tensors` before all ranks have agreed.

        Raises:
            ValueError: If one of the same name is on its way.
            CollectiveError: If a rank is gone, or this engine was closed.
        """
        handle = self._register(request, tensors)
        if not handle.is_done:
            self._ask(handle.request)
            self._wake()
        return handle

    def wait(self, handle: Handle) -> list[Any]:
        """Return what an operation gives, one for each tensor.

        Raises:
            CollectiveError: If ranks disagree, or some are missing or gone; the message names them.
        """
        if not handle.is_done and not handle.wait(self._patience_s(handle)):
            raise self._too_late(handle)
        if handle.error:
            raise CollectiveError(handle.error)
        return handle.results

    def run(self, request: Request, tensors: list[torch.Tensor]) -> list[Any]:
        """Do an operation and return what it gives; as `submit` and `wait`, and faster."""
        handle = self._register(request, tensors)
        if not handle.is_done:
            with self._lock:
                self._callers += 1
            try:
                self._ask(handle.request)
                if not self._parked:
                    self._ring()
                with self._baton:
                    self._drive(handle)
            finally:
                with self._lock:
                    self._callers -= 1
                    self._calls += 1
        return self.wait(handle)

    def next_name(self, kind: str, of: int) -> str:
        """Return the name of the next operation that has none; the same in ranks that do the same."""
        with self._lock:
            self._numbers[(of, kind)] += 1
            return f"noname.{self._numbers[(of, kind)]}"

    def abort(self, why: str) -> None:
        """Let all that is on its way fail, and all that comes: a rank is known to be gone. `close` must follow."""
        self._break(why)
        for lane in list(self.lanes.values()):
            lane.abort()

    def close(self) -> None:
        """Leave; operations on their way fail, here and in ranks that wait for this one."""
        if self._closing:
            return
        self._closing = True
        if self.size > 1:
            if self.rank:
                with contextlib.suppress(OSError):
                    self._talk.ask(Request("leave", "leave"))
            self._wake()
            self._thread.join(5.0)
            for link in list(self._talk.links.values()):
                link.close()
        self._break("this rank has left the job: Horovod has been shut down")
        _retired.extend(self.lanes.values())
        if self.size > 1 and not self._thread.is_alive():
            os.close(self._bell)

    # Between callers and the loop ------------------------------------------------------------------------------------

    def _register(self, request: Request, tensors: list[torch.Tensor]) -> Handle:
        handle = Handle(request, tensors)
        with self._lock:
            if self._broken:
                raise CollectiveError(self._broken)
            if self.size == 2 and not self._flying and request.of == WORLD and request.kind in FORESEEN:
                handle.request = request = msgspec.structs.replace(request, sole=True)
            if handle.key in self._flying:
                raise InvalidInputError(
                    f"{request.name} is on its way already: synchronize it before the name is used again, or give "
                    "each operation a name of its own."
                )
            is_alone = self.lanes[request.of].size == 1
            if not is_alone:
                self._flying[handle.key] = handle
        if self.timeline is not None:
            self.timeline.submitted(request, self.rank)
        if is_alone:
            self._do_alone(handle)
        return handle

    def _ask(self, request: Request) -> None:
        try:
            self._talk.ask(request)
        except OSError as error:
            self._break(f"rank 0, which decides, is gone: {error}")
            raise CollectiveError(self._broken) from error

    def _wake(self) -> None:
        """Have the engine's own thread look at what there is to do."""
        if self._parked:
            with self._parking:
                self._parked = False
                self._parking.notify_all()
        elif self._frames or self._closing:  # what was decided or foreseen while asking; other answers wake it
            self._ring()

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    def _patience_s(self, handle: Handle) -> float:
        return 2 * self.stall_s + 10 if handle.request.kind != "join" else threading.TIMEOUT_MAX

    def _too_late(self, handle: Handle) -> WaitError:
        return WaitError(
            f"{handle.request.name} did not end within {self._patience_s(handle):g} s: rank 0, which decides, does not "
            "answer.",
            missing=["rank 0"],
        )

    # The loop --------------------------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Run the loop whenever no caller does."""
        while not self._closing:
            with self._baton:
                self._drive(None)
            with self._parking:
                self._parked = True
                seen = -1
                while self._is_parked() and (self._callers or seen != self._calls):
                    seen = self._calls
                    self._parking.wait(_PARKED_S)
                self._parked = False

    def _is_parked(self) -> bool:
        return self._parked and not self._closing

    def _drive(self, until: Handle | None) -> None:
        """Read decisions and do what was decided, until an operation is done, or callers want to do so themselves."""
        deadline = None if until is None else time.monotonic() + self._patience_s(until)
        while True:
            while self._frames:
                for together in fused(self._frames.popleft()):
                    while len(self._underway) >= _IN_FLIGHT:
                        self._finish(*self._underway.popleft())
                    self._begin(together)
            if until is not None and until.is_done:
                return
            if self._underway:
                if not self._read(0):
                    self._finish(*self._underway.popleft())
                continue
            if self._lost:  # only now: what was decided before is done first
                self._break(self._lost)
            if until is None and (self._callers or self._closing):
                return
            if until is not None and until.is_done:
                return
            self._read(_TICK_MS)
            if deadline is not None and time.monotonic() > deadline:
                return

    def _read(self, timeout_ms: int) -> bool:
        """Read what has arrived; returns whether there was anything."""
        ready = self._poll.poll(timeout_ms)
        for number, _ in ready:
            if number == self._bell:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
                continue
            rank = self._ranks_by_number[number]
            try:
                self._talk.read(rank)
            except ConnectionLostError as error:
                self._poll.unregister(number)
                self._lost = str(error)
                continue
            if rank not in self._talk.links:
                self._poll.unregister(number)
        if timeout_ms and not ready:
            self._talk.look_at_clock()
        return bool(ready)

    def _begin(self, together: list[Agreed]) -> None:
        handles = [self._handle_of(agreed) for agreed in together]
        agreed = together[0]
        for handle, each in zip(handles, together, strict=True):
            handle.answer = each
            if self.timeline is not None:
                self.timeline.agreed(each)
        if agreed.error:
            self._end(handles, [[]], agreed.error)
            return
        try:
            self._change_lanes(agreed)
            finish = begin(together, [handle.tensors for handle in handles], self.lanes[agreed.request.of])
        except Exception as error:  # noqa: BLE001 - whatever torch raises ends this operation, not this thread
            self._fail(handles, error)
            return
        if finish is None:
            self._end(handles, [[] for _ in handles])
        else:
            self._underway.append((handles, finish))

    def _change_lanes(self, agreed: Agreed) -> None:
        if agreed.request.kind == "add":
            self.lanes[agreed.last] = self._open(agreed.last, agreed.request.ranks)
        elif agreed.request.kind == "remove":
            _retired.append(self.lanes.pop(agreed.request.root, None))

    def _handle_of(self, agreed: Agreed) -> Handle:
        handle = self._flying.get((agreed.request.of, agreed.request.name))
        return handle or Handle(agreed.request, zeros_for(agreed.request))

    def _finish(self, handles: list[Handle], finish: Finish) -> None:
        try:
            results = finish()
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(handles, error)
            return
        self._end(handles, results)

    def _fail(self, handles: list[Handle], error: Exception) -> None:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        names = ", ".join(handle.request.name for handle in handles)
        message = f"{names} failed in rank {self.rank}; a rank has probably died: {text}"
        self._end(handles, [[] for _ in handles], message)
        self._break(message)

    def _end(self, handles: list[Handle], results: list[list[Any]], error: str = "") -> None:
        with self._lock:
            for handle in handles:
                self._flying.pop(handle.key, None)
                if (
                    handle.request.kind == "join"
                ):  # ranks did unequally many operations until now, and equally from here
                    self._numbers.clear()
        for handle, result in zip(handles, results, strict=True):
            if self.timeline is not None:
                self.timeline.ended(handle.request)
            handle.end(result, error)

    def _do_alone(self, handle: Handle) -> None:
        request = handle.request
        new = max(self.lanes) + 1 if request.kind == "add" else 0
        handle.answer = Agreed(request, tuple(shape[:1] for shape in request.shapes), (request.splits,), last=new)
        self._change_lanes(handle.answer)
        finish = begin([handle.answer], [handle.tensors], self.lanes[request.of])
        handle.end(finish()[0] if finish is not None else [])
        if self.timeline is not None:
            self.timeline.ended(request)

    def _break(self, why: str) -> None:
        """Let all that is on its way fail, and all that comes."""
        with self._lock:
            self._broken = self._broken or why
            handles = list(self._flying.values())
            self._flying.clear()
        for handle in handles:
            handle.end([], self._broken)

    def _open(self, number: int, ranks: tuple[int, ...]) -> Lane:
        part = dist.PrefixStore(f"lane/{number}", self._store)
        return Lane(part, ranks, self.rank, timedelta(seconds=self.stall_s))


_retired: list[Any] = []
"""Process groups that are not used any more: destroying one can wait for a thread that waits for Python's lock."""


def _shared_secret(store: Any, rank: int) -> bytes:
    """Return a secret that those know who may read the gang's store."""
    if rank == 0:
        store.set("secret", secrets.token_hex(32))
    return bytes(store.get("secret"))
