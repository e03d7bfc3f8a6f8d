"""Several machines on one: network namespaces with addresses of their own, joined by a bridge to this one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

_TIMEOUT_S = 20.0


class Networks:
    """Namespaces that reach each other and this machine by a bridge, and nothing else.

    Args:
        count: How many of them.

    Attributes:
        head: The address of this machine on the bridge.
        addresses: The address of each namespace.
    """

    def __init__(self, count: int) -> None:
        mark = os.urandom(3).hex()
        subnet = f"10.{200 + os.getpid() % 50}.{int(mark[:2], 16)}"
        self._bridge = f"cb{mark}"
        self._names = [f"cb{mark}-{place}" for place in range(count)]
        self.head = f"{subnet}.1"
        self.addresses = tuple(f"{subnet}.{place + 2}" for place in range(count))
        self._exits = contextlib.ExitStack()
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        self._exits.callback(_ip, "link", "del", self._bridge)
        _ip("addr", "add", f"{self.head}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for name, address in zip(self._names, self.addresses, strict=True):
            _ip("netns", "add", name)
            self._exits.callback(_ip, "netns", "del", name)
            _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", name, "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def inside(self, address: str) -> list[str]:
        """Return what to put before a command for it to run in the namespace with this address."""
        return ["ip", "netns", "exec", self._names[self.addresses.index(address)]]

    def cut(self, address: str) -> None:
        """Pull the plug of a namespace."""
        _ip("link", "set", self._names[self.addresses.index(address)], "down")

    def join(self, address: str) -> None:
        """Put the plug back."""
        _ip("link", "set", self._names[self.addresses.index(address)], "up")

    def close(self) -> None:
        """Remove all of it; processes inside should have ended."""
        self._exits.close()

    def __enter__(self) -> Networks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def networks(count: int) -> Iterator[Networks | None]:
    """Make namespaces where this machine allows it; `None` where it does not."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        yield None
        return
    try:
        made = Networks(count)
    except subprocess.CalledProcessError:
        yield None
        return
    with made:
        yield made


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=_TIMEOUT_S)
