"""Several transfers at once, and limits, over the whole product inside the rig."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from figures import Receiver, jain, rate, share
from namespaces import RECEIVER, Rig
from product import swarm

SETTLE_S = 12.0
BESIDE_S = 10.0
MEASURED_S = 5.0
RECEIVED_S = 20.0
"""Longer, since a receiver reads whole pieces, and the kernel asks for more when much of its memory is free."""


def several(made: Rig, starts: Sequence[float], leaves_at: float | None = None) -> str:
    """Run transfers that begin at different times, then a TCP flow beside them; return a row.

    Args:
        made: The rig.
        starts: When each begins, in seconds.
        leaves_at: When the first of them is ended.
    """
    with swarm(made, int(made.mbit / 8 * (max(starts) + SETTLE_S + 12 + BESIDE_S))) as one:
        foreground = Receiver(made, 5000)
        began, gets = time.monotonic(), []
        for start in starts:
            time.sleep(max(0.0, began + start - time.monotonic()))
            gets.append(one.get())
        if leaves_at is not None:
            time.sleep(max(0.0, began + leaves_at - time.monotonic()))
            gets.pop(0).kill()
        time.sleep(SETTLE_S)
        entered = time.monotonic()
        made.python(made.sender, "flows.py", "send", RECEIVER, "5000", str(BESIDE_S), "cubic").wait(timeout=60)
        front = foreground.counts()
        first = min((step / 10 for step, count in front.items() if count), default=entered)
        counts = [one.sockets.counts(process.pid) for process in gets]
    shares = [share(count, entered - 8, entered - 0.3, made.mbit) for count in counts]
    fair = sum(shares) / len(shares)
    words = f"{len(starts)}, begun at {', '.join(f'{start:.0f}' for start in starts)} s"
    return (
        f"| {words + (', the first then leaves' if leaves_at is not None else ''):50} "
        f"| {', '.join(f'{one:.0%}' for one in shares):20} | {jain(shares):.2f} "
        f"| {min(shares) / fair - 1:+.0%} … {max(shares) / fair - 1:+.0%} | {sum(shares):.0%} "
        f"| {share(front, first, first + 5, made.mbit):.0%} "
        f"| {share(front, first + 5, first + BESIDE_S, made.mbit):.0%} |"
    )


def limits(made: Rig) -> Iterator[str]:
    """Set limits of each kind while two transfers run; yield a row for each: what was allowed, and what came."""
    with swarm(made, int(made.mbit / 8 * 60)) as one:
        pids = [one.get().pid, one.get().pid]

        def measured() -> list[float]:
            """Return the rates of both, after the change has had its time."""
            time.sleep(2 + MEASURED_S)
            now = time.monotonic() - 0.5
            return [rate(one.sockets.counts(pid), now - MEASURED_S, now) for pid in pids]

        def limit(*arguments: str) -> None:
            one.seed.call("limit", "--network", "rig", *arguments)

        limit("--send", "4MB/s")
        yield limit_row("sent in all", 4e6, sum(measured()))
        limit("--send", "none", "--hours", "00:00-24:00 send=2MB/s")
        yield limit_row("sent at this hour of the day", 2e6, sum(measured()))
        paths = one.seed.call("status", "--network", "rig")["paths"]
        assert isinstance(paths, list)
        limit("--hours", "00:00-24:00 send=none", "--member", f"{paths[0]['peer']}=1MB/s")
        slower, faster = sorted(measured())
        yield limit_row("sent to one member", 1e6, slower, f"; to the other {faster / 1e6:.1f} MB/s")
    with swarm(made, int(made.mbit / 8 * 10)) as one:
        process = one.get(receive="1.5MB/s")
        time.sleep(4 + RECEIVED_S)  # first the kernel's memory for what is not read yet is filled
        now = time.monotonic() - 0.5
        received = rate(one.sockets.counts(process.pid), now - RECEIVED_S, now)
        yield limit_row("received", 1.5e6, received)


def limit_row(words: str, allowed: float, came: float, more: str = "") -> str:
    """Return a row of the table of limits."""
    return f"| {words:30} | {allowed / 1e6:.1f} MB/s | {came / 1e6:.2f} MB/s, {came / allowed - 1:+.0%}{more} |"
