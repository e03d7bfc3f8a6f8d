"""How much of a link a foreground flow gets beside transfers in the background, and how much they use when it is idle.

    python benchmarks/sharing/give_way.py [--parts one,several,limits,long,lossy] [--mbit 80] [--buffers 50,300]
        [--delays 20,50,100,200] [--only NAME]

`one`: each background runs alone for some seconds, then one TCP flow (CUBIC) sends beside it, then it is alone again.
`several`: two to four of ours at once, and a TCP flow beside them. `limits`: what was allowed, and what came.
`long`: paths with a delay of their own. `lossy`: 100 Mbit/s over 100 ms, where one of 200 packets is lost by chance.
Needs root; each part takes five minutes or so. Ours is `cargobike share serve` and `get`, in projects and processes of
their own, in network namespaces that this makes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import ExitStack

from backgrounds import BACKGROUNDS, PEERS, Background
from figures import STEP_S, Figures, Receiver, Times, share
from namespaces import HERE, RECEIVER, Rig, is_possible, rig
from several import limits, several

sys.path.insert(0, str(HERE.parent))

from rig.venvs import python_of

CASES = (((0.0, 0.0), None), ((0.0, 5.0), None), ((0.0, 3.0, 6.0), 10.0), ((0.0, 2.0, 4.0, 6.0), None))
"""When transfers begin, and when the first of them leaves."""

DELAYS = {20.0: 50.0, 50.0: 100.0, 100.0: 150.0, 200.0: 150.0}
"""Round trips, and depths of the queue, in ms."""


def measure(made: Rig, start: Background, times: Times) -> Figures:
    """Run a background with a foreground in its midst."""
    with ExitStack() as ending:
        ending.callback(made.stop_all)
        foreground = Receiver(made, 5000)
        read = start(made, times, ending)
        began = time.monotonic()
        time.sleep(times.alone_s)
        entered = time.monotonic()
        made.python(made.sender, "flows.py", "send", RECEIVER, "5000", str(times.beside_s), "cubic").wait(timeout=60)
        left = time.monotonic()
        time.sleep(max(0.0, began + times.all_s + 0.5 - time.monotonic()))
        front, back = foreground.counts(), read()
    entered = min((step * STEP_S for step, count in front.items() if count), default=entered)  # once it has started
    returned = [
        at
        for at in range(int(times.after_s * 10) - 5)
        if share(back, left + at / 10, left + at / 10 + 0.5, made.mbit) > 0.8
    ]
    return Figures(
        first=share(front, entered, entered + 5, made.mbit),
        later=share(front, entered + 5, entered + times.beside_s, made.mbit),
        idle=share(back, entered - times.alone_s + 3, entered - 0.3, made.mbit),
        back_s=returned[0] / 10 if returned else None,
    )


def alone(made: Rig, control: str, seconds: float) -> tuple[float, float]:
    """Return what one TCP flow gets of the link for itself: in its first 5 s, and later."""
    try:
        receiver = Receiver(made, 5000)
        made.python(made.sender, "flows.py", "send", RECEIVER, "5000", str(seconds), control).wait(timeout=60)
        counts = receiver.counts()
    finally:
        made.stop_all()
    entered = min((step * STEP_S for step, count in counts.items() if count), default=0.0)
    return share(counts, entered, entered + 5, made.mbit), share(counts, entered + 5, entered + seconds, made.mbit)


def one_by_one(mbit: float, depths: list[float], names: list[str]) -> None:
    """Measure each background."""
    times = Times()
    print("| queue | background | foreground, first 5 s | after 5 s | background on the idle link | came back after |")
    print("|---|---|---|---|---|---|")
    with rig(mbit, depths[0]) as made:
        for depth in depths:
            made.shape(depth)
            for name in names:
                if depth == depths[-1] or not name.startswith(PEERS):  # peers once, in the deepest queue
                    print(measure(made, BACKGROUNDS[name], times).row(name, depth), flush=True)


def long_paths(mbit: float, delays: list[float]) -> None:
    """Measure ours on paths with a delay of their own, beside what the foreground gets alone."""
    print(
        "| round trip, queue | foreground alone: first 5 s, after | beside ours | ours on the idle link | came back |"
    )
    print("|---|---|---|---|---|")
    for delay_ms in delays:
        depth = DELAYS.get(delay_ms, 150.0)
        with rig(mbit, depth, delay_ms) as made:
            first, later = alone(made, "cubic", 10)
            found = measure(made, BACKGROUNDS["Cargobike"], Times(after_s=10 + delay_ms / 5))
            back = "not" if found.back_s is None else f"{found.back_s:.1f} s"
            print(
                f"| {delay_ms:.0f} ms, {depth:.0f} ms | {first:.0%}, {later:.0%} "
                f"| {found.first:.0%}, {found.later:.0%} | {found.idle:.0%} | {back} |",
                flush=True,
            )


def lossy_path() -> None:
    """Measure ours and single TCP flows on a long line that loses packets by chance."""
    with rig(100, 100, 100, 0.005) as made:
        shares = {control: alone(made, control, 15)[1] for control in ("cubic", "bbr")}
        found = measure(made, BACKGROUNDS["Cargobike"], Times(alone_s=20, beside_s=6, after_s=1))
        others = ", ".join(f"{control} {number:.0%}" for control, number in shares.items())
        print(
            f"\n100 Mbit/s, 100 ms, 0.5 % lost by chance: ours {found.idle:.0%} of the link; one TCP flow: {others}",
            flush=True,
        )


def main() -> int:
    """Measure what is asked for and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="one,several,limits,long,lossy")
    parser.add_argument("--mbit", type=float, default=80)
    parser.add_argument("--buffers", default="50,300", help="depths of the queue, in ms")
    parser.add_argument("--delays", default="20,50,100,200", help="round trips of long paths, in ms")
    parser.add_argument("--only", help="a part of the name of the backgrounds to measure")
    given = parser.parse_args()
    if reason := is_possible():
        print(f"give_way.py {reason}", file=sys.stderr)
        return 1
    depths, parts = [float(text) for text in given.buffers.split(",")], given.parts.split(",")
    names = [name for name in BACKGROUNDS if given.only is None or given.only in name]
    if shutil.which("rsync") is None:
        names = [name for name in names if not name.startswith("rsync")]
    if "one" in parts and any(name.startswith("libtorrent") for name in names):
        python_of("libtorrent", HERE.parents[1])
    print(f"link of {given.mbit:.0f} Mbit/s\n")
    if "one" in parts:
        one_by_one(given.mbit, depths, names)
    if "several" in parts:
        print("\n| transfers | shares | Jain's index | from the mean | together | foreground, first 5 s | after 5 s |")
        print("|---|---|---|---|---|---|---|")
        with rig(given.mbit, depths[-1]) as made:
            for starts, leaves_at in CASES:
                print(several(made, starts, leaves_at), flush=True)
    if "limits" in parts:
        print("\n| limit of what is | allowed | came |\n|---|---|---|")
        with rig(given.mbit, depths[-1]) as made:
            for row in limits(made):
                print(row, flush=True)
    if "long" in parts:
        print()
        long_paths(given.mbit, [float(text) for text in given.delays.split(",")])
    if "lossy" in parts:
        lossy_path()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
