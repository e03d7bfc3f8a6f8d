"""Make a path longer: hold each packet that is routed into a TUN device for some time. Runs in the router.

delay_line.py DEVICE MILLISECONDS [LOSS]

For kernels without `netem`. Some ten thousand packets a second: enough for 100 Mbit/s of data, or their confirmations.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000


def main(device: str, delay_s: float, loss: float) -> None:
    """Hold packets until they are due, in their order."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
    print("ready", flush=True)
    held: deque[tuple[float, bytes]] = deque()
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    chance = random.Random(1)
    while True:
        left_s = held[0][0] - time.monotonic() if held else 1.0
        if left_s > 0:
            waiting.poll(min(left_s, 1.0) * 1000)
        now = time.monotonic()
        while held and held[0][0] <= now:
            os.write(descriptor, held.popleft()[1])
        try:
            for _ in range(64):
                packet = os.read(descriptor, 65536)
                if not loss or chance.random() >= loss:
                    held.append((now + delay_s, packet))
        except BlockingIOError:
            pass


if __name__ == "__main__":
    name, milliseconds, *rest = sys.argv[1:]
    main(name, float(milliseconds) / 1e3, float(rest[0]) if rest else 0.0)
