"""Let other members in: a lobby for those who have proved nothing yet, and a thread for each that has."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.network.network import Network
from cargobike.sharing.wire.introducing import DIALECT, introduce_listened
from cargobike.sharing.wire.member import Member
from cargobike.sharing.wire.messages import Greeting
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.connection import HANDSHAKE_S
from cargobike.training.wire.lobby import Lobby
from cargobike.training.wire.sealing import ENCRYPTED

MOST_MEMBERS: Final = 64
_END_S: Final = 10.0
_log = logging.getLogger(__name__)


class Reception:
    """Listens, and runs `talk` in a thread of its own for each member that comes.

    Args:
        host: Where to listen.
        port: 0 for any that is free.
        network: Who may come.
        identity: Who we are.
        talk: Called with each member; the connection is closed when it returns.
        greet: Returns what we say to a member that has greeted.
        blocked: Returns the keys that are not let in.
    """

    def __init__(
        self,
        host: str,
        port: int,
        network: Network,
        identity: Identity,
        *,
        talk: Callable[[Member], None],
        greet: Callable[[Member], Greeting] = lambda _member: Greeting(),
        blocked: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._network, self._identity = network, identity
        self._talk, self._greet, self._blocked = talk, greet, blocked
        listener = socket.create_server((host, port), backlog=128, family=_family(host))
        self.port: int = listener.getsockname()[1]
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads: dict[threading.Thread, Channel] = {}
        lobby = Lobby([listener], network.key, self._admit, dialect=DIALECT, demanded=ENCRYPTED)
        self._lobby = threading.Thread(target=lobby.run, args=(self._stopping,), name="cargobike-lobby", daemon=True)
        self._lobby.start()

    def _admit(self, channel: Channel) -> None:
        with self._lock:
            if len(self._threads) >= MOST_MEMBERS or self._stopping.is_set():
                _log.warning("%s is sent away: %d members are connected already", channel.peer, len(self._threads))
                channel.close()
                return
            thread = threading.Thread(target=self._run, args=(channel,), name="cargobike-member", daemon=True)
            self._threads[thread] = channel
        thread.start()

    def _run(self, channel: Channel) -> None:
        try:
            channel.wait_in_kernel(HANDSHAKE_S)
            publisher = introduce_listened(channel, self._network, self._identity, self._blocked())
            member = Member(channel, publisher)
            member.hear_greeting()
            member.say(self._greet(member))
            self._talk(member)
        except (CargobikeError, OSError) as error:
            _log.debug("%s has gone: %s", channel.peer, error)
        except Exception:  # noqa: BLE001 - other members are talked to all the same
            _log.exception("The conversation with %s failed", channel.peer)
        finally:
            channel.close()
            with self._lock:
                self._threads.pop(threading.current_thread(), None)

    def close(self) -> None:
        """Let no one in any more, and end all conversations; returns when they have ended."""
        self._stopping.set()
        self._lobby.join(_END_S)
        with self._lock:
            threads = dict(self._threads)
        for channel in threads.values():
            channel.shut()
        for thread in threads:
            thread.join(_END_S)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
