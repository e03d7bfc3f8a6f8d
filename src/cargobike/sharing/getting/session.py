"""Run a fetch: find members, start a thread for each source, wait for the end, and say what is going on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from cargobike.core.errors import StoreError
from cargobike.sharing.getting.fetch import Fetch
from cargobike.sharing.getting.from_members import MemberSource
from cargobike.sharing.wire.member import Member
from cargobike.sharing.wire.messages import AskPeers, Peers

_log = logging.getLogger(__name__)
_MOST_SOURCES: Final = 32
_HASHERS: Final = 2
_END_S: Final = 30.0
WAIT_S: Final = 600.0


class Source(Protocol):
    """Something that delivers pieces."""

    def run(self) -> None:
        """Deliver until the fetch is over."""

    def shut(self) -> None:
        """End a wait, from another thread."""


class Session:
    """The threads of one fetch.

    Args:
        fetch: What is missing.
        dial: Connects to a member.
        peers: Where members are.
        more: Other sources.
        timeout_s: For how long nothing may come.
        may_receive: Waits until limits let so many bytes in.
    """

    def __init__(
        self,
        fetch: Fetch,
        dial: Callable[[str], Member],
        peers: Iterable[str],
        *,
        more: Iterable[Source] = (),
        timeout_s: float = WAIT_S,
        may_receive: Callable[[int], None] = lambda _count: None,
    ) -> None:
        self._may_receive = may_receive
        self.fetch, self._dial, self._timeout_s = fetch, dial, timeout_s
        self._lock = threading.Lock()
        self._hashers = ThreadPoolExecutor(_HASHERS, thread_name_prefix="cargobike-verify")
        self._sources: list[Source] = []
        self._threads: list[threading.Thread] = []
        self._known: set[str] = set()
        self._peers = list(peers)
        self._more = list(more)

    def run(self, watch: Callable[[Fetch], None] = lambda _fetch: None) -> None:
        """Get everything; `watch` is called about four times a second.

        Raises:
            WaitError: If nothing came for too long; names all sources.
            StoreError: If what came cannot be kept.
        """
        fetch = self.fetch
        try:
            fetch.last_progress_s = time.monotonic()
            if fetch.missing_pieces:
                self._check_room()
                for source in self._more:
                    self._start(source)
                for address in self._peers:
                    self.add_peer(address)
            while fetch.missing_pieces:
                fetch.check()
                if fetch.silent_s > self._timeout_s:
                    raise fetch.nothing_comes(self._timeout_s)
                watch(fetch)
                with fetch.changed:
                    fetch.changed.wait_for(lambda: fetch.has_ended, 0.25)
            fetch.check()
            watch(fetch)
        except BaseException as error:
            fetch.fail(error)  # who waits for a part of it is told the same
            raise
        finally:
            self._end()

    def add_peer(self, address: str) -> None:
        """Ask the member at an address, too."""
        with self._lock:
            if address in self._known or len(self._known) >= _MOST_SOURCES:
                return
            self._known.add(address)
        source = MemberSource(
            address, self.fetch, self._dial, self._hashers, greeted=self._meet, may_receive=self._may_receive
        )
        self._start(source)

    def _meet(self, member: Member) -> None:
        """Ask a member for others that may have it, too."""
        answer, _ = member.ask(AskPeers())
        if isinstance(answer, Peers):
            for address in answer.addresses:
                self.add_peer(address)

    def _start(self, source: Source) -> None:
        thread = threading.Thread(target=self._guard, args=(source,), name="cargobike-source", daemon=True)
        with self._lock:
            if self.fetch.is_over:
                return
            self._sources.append(source)
            self._threads.append(thread)
        thread.start()

    def _guard(self, source: Source) -> None:
        try:
            source.run()
        except BaseException as error:  # noqa: BLE001 - a thread must not end without a word
            self.fetch.fail(error)

    def _check_room(self) -> None:
        needed = self.fetch.room_needed
        lacking = self.fetch.arriving.room_lacking(needed)
        if lacking:
            raise StoreError(
                f"{needed:,} bytes are still to come, and the disk of {self.fetch.arriving.folder} has {lacking:,} "
                f"bytes too few. Make room, or name another folder."
            )

    def _end(self) -> None:
        with self._lock:
            sources, threads = list(self._sources), list(self._threads)
        for source in sources:
            source.shut()
        until = time.monotonic() + _END_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._hashers.shutdown(wait=True, cancel_futures=True)
