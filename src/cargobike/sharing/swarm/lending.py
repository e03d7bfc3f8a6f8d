"""Members that cannot be dialled give pieces, too: they dial, and the end that they dialled asks.

Such a member calls a second time with `Greeting.may_be_asked`. From then on that connection has its roles reversed, and
nothing else about it differs: both ends have proved who they are, questions and answers are the same. The end that was
dialled (`lenders`) asks there for what other members ask it for. The one that calls answers from what it holds itself,
so that no question goes further than one step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.sharing.swarm.lenders import CALLS
from cargobike.sharing.wire.member import Member

_log = logging.getLogger(__name__)
_MOST_LENT_TO: Final = 16
_END_S: Final = 10.0


class Lending:
    """Calls members that cannot dial us, and answers what they ask.

    Args:
        dial: Connects to an address with a greeting that says that we may be asked.
        talk: Answers a member until it goes.
    """

    def __init__(self, dial: Callable[[str], Member], talk: Callable[[Member], None]) -> None:
        self._dial, self._talk = dial, talk
        self._lock = threading.Lock()
        self._threads: dict[threading.Thread, tuple[str, Member | None]] = {}
        self._is_closed = False

    @property
    def addresses(self) -> tuple[str, ...]:
        """Whom we have called."""
        with self._lock:
            return tuple(sorted({address for address, member in self._threads.values() if member is not None}))

    def call(self, address: str) -> None:
        """Call a member that wants to ask us, unless that was done already; returns at once."""
        with self._lock:
            there = [one for one, _ in self._threads.values()]
            if self._is_closed or (address not in there and len(set(there)) >= _MOST_LENT_TO):
                return
            threads = [
                threading.Thread(target=self._run, args=(address,), name="cargobike-lend", daemon=True)
                for _ in range(CALLS - there.count(address))
            ]
            self._threads.update(dict.fromkeys(threads, (address, None)))
        for thread in threads:
            thread.start()

    def _run(self, address: str) -> None:
        thread = threading.current_thread()
        try:
            with self._dial(address) as member:
                with self._lock:
                    if self._is_closed:
                        return
                    self._threads[thread] = address, member
                self._talk(member)
        except (CargobikeError, OSError) as error:
            _log.debug("%s asks no more: %s", address, error)
        except Exception:  # noqa: BLE001 - other members are answered all the same
            _log.exception("The conversation with %s failed", address)
        finally:
            with self._lock:
                self._threads.pop(thread, None)

    def close(self) -> None:
        """End all conversations; returns when they have ended."""
        with self._lock:
            self._is_closed = True
            threads = dict(self._threads)
        for _, member in threads.values():
            if member is not None:
                member.channel.shut()
        for thread in threads:
            thread.join(_END_S)
