"""Make a path longer: hold each packet that is routed into a TUN device for some time. Runs in the router.

delay_line.py DEVICE MILLISECONDS [LOSS]

For kernels without `netem`. Some ten thousand packets a second: enough for 100 Mbit/s of data, or their confirmations.
"""

from __future__ import annotations

import contextlib
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
    with contextlib.suppress(OSError):  # a wire does not wait for a processor
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    print("ready", flush=True)
    held: deque[tuple[float, bytes]] = deque()
    chance = random.Random(1)
    while True:
        left_s = held[0][0] - time.monotonic() if held else 1.0
        if left_s > 0:
            select.select([descriptor], [], [], left_s)  # finer than the milliseconds of `poll`
        while held and held[0][0] <= time.monotonic():
            os.write(descriptor, held.popleft()[1])
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                packet = os.read(descriptor, 65536)
                if not loss or chance.random() >= loss:
                    held.append((time.monotonic() + delay_s, packet))  # now: none may leave early, as if by a short cut


if __name__ == "__main__":
    name, milliseconds, *rest = sys.argv[1:]
    main(name, float(milliseconds) / 1e3, float(rest[0]) if rest else 0.0)
